#include "lib/mpi/tuning/guard_table_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/base/os/replace_file.hpp"
#include "lib/base/os/unique_fd.hpp"

namespace hips::mpi {
namespace {

/// No guard table comes near this size; a file of another kind might.
constexpr off_t kMostBytes = 16 << 20;

Status cannot_be_read(const std::string& path) {
  const int code = errno;
  Status status = Status::error(Code::kSystem,
                                fmt::format("guard table {}: cannot be read: {}", path, std::strerror(code)));
  status.sys_errno = code;
  return status;
}

}  // namespace

Result<GuardTable> load_guard_table(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid() && errno == ENOENT) return GuardTable();
  struct stat facts {};
  if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) return fail(cannot_be_read(path));
  if (!S_ISREG(facts.st_mode) || facts.st_size > kMostBytes)
    return fail(Code::kInvalidArgument, fmt::format("guard table {}: line 1: not a guard table", path));
  std::string text(static_cast<std::size_t>(facts.st_size), '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(cannot_be_read(path));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  return GuardTable::parse(text, path);
}

Status save_guard_table(const GuardTable& table, const std::string& path) {
  Status status = replace_file(path, table.text());
  if (!status.ok()) status.message = fmt::format("guard table {}: {}", path, status.message);
  return status;
}

const GuardTable& GuardTableFile::table() {
  if (std::exchange(is_read_, true) || path_.empty()) return table_;
  auto loaded = load_guard_table(path_);
  if (loaded) {
    table_ = std::move(*loaded);
    return table_;
  }
  is_damaged_ = true;
  if (warns_)
    log::warn(log::Subsystem::kMpi,
              "{}. HiPS continues without the table and leaves the file unchanged; correct it, delete it, or "
              "name another file in HIPS_GUARD_TABLE",
              loaded.error().message);
  return table_;
}

void GuardTableFile::add(const GuardTable::Key& key, const TuningDecision& decision) {
  const auto known = table().decisions().find(key);
  if (known != table_.decisions().end() && known->second == decision) return;
  table_.add(key, decision);
  has_changed_ = true;
}

void GuardTableFile::save() {
  if (path_.empty() || !has_changed_ || is_damaged_) return;
  const Status status = save_guard_table(table_, path_);
  if (status.ok())
    has_changed_ = false;
  else
    log::warn(log::Subsystem::kMpi, "{}; tuning decisions of this run are lost", status.message);
}

}  // namespace hips::mpi
