#include "lib/base/os/replace_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

namespace hips {
namespace {

namespace fs = std::filesystem;

Status system_error(std::string_view what, int code) {
  Status status = Status::error(Code::kSystem, fmt::format("{}: {}", what, std::strerror(code)));
  status.sys_errno = code;
  return status;
}

/// `mode` is that of fopen(). `to_disk`: flush to disk, before the file replaces another.
Status write_into(const std::string& path, std::string_view text, const char* mode, bool to_disk) {
  std::FILE* const file = std::fopen(path.c_str(), mode);
  if (file == nullptr) return system_error("cannot be written", errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size() &&
                       (!to_disk || (std::fflush(file) == 0 && fsync(fileno(file)) == 0));
  const int error = errno;
  if (std::fclose(file) != 0) return system_error("cannot be written", written ? errno : error);
  return written ? Status::success() : system_error("cannot be written", error);
}

}  // namespace

Status replace_file(const std::string& path, std::string_view text) {
  std::error_code error;
  const fs::file_status itself = fs::symlink_status(path, error);
  const bool is_link = fs::is_symlink(itself);
  const std::string target = is_link ? fs::canonical(path, error).string() : path;
  const fs::file_status there = is_link ? fs::status(path, error) : itself;
  const bool replaces = fs::is_regular_file(there) || (!is_link && !fs::exists(there));
  // Write directly into anything that is not a regular file, and through a dangling link, which creates its
  // target.
  if (!replaces || target.empty()) return write_into(path, text, "we", false);
  // The draft is in the same folder, because rename() does not cross file systems. Its name is unique,
  // because jobs and threads may write at the same time, on other nodes with the same process id.
  std::string draft;
  Status status;
  for (int number = 0;; ++number) {
    draft = fmt::format("{}.{}.{}", target, getpid(), number);
    status = write_into(draft, text, "wxe", true);
    if (status.sys_errno != EEXIST) break;
  }
  if (status.ok() && fs::exists(there)) fs::permissions(draft, there.permissions(), error);
  if (status.ok() && std::rename(draft.c_str(), target.c_str()) != 0)
    status = system_error("cannot be replaced", errno);
  if (!status.ok()) (void)std::remove(draft.c_str());
  return status;
}

}  // namespace hips
