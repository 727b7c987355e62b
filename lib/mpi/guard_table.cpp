#include "lib/mpi/guard_table.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/base/replace_file.hpp"
#include "lib/base/unique_fd.hpp"

namespace hips::mpi {
namespace {

constexpr std::string_view kTitle = "# HiPS guard table 1";
constexpr std::string_view kRight =
    "hosts=2x4 transport=verbs mpi=Open_MPI_v4.1.4 op=sum bytes=512-1023 winner=hips hips_ns=900 "
    "host_ns=1500";
/// No table of ours comes near; a file of another kind might.
constexpr off_t kMostBytes = 16 << 20;

std::string line_text(const GuardTable::Key& key, const GuardVerdict& verdict) {
  const auto& [place, of] = key;
  return fmt::format("hosts={} transport={} mpi={} op={} bytes={}-{} winner={} hips_ns={} host_ns={}",
                     place.hosts, place.transport, place.host_mpi, to_string(of.kind), of.least_bytes(),
                     of.most_bytes(), verdict.winner == Way::kHost ? "host" : "hips", verdict.hips_ns,
                     verdict.host_ns);
}

template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<GuardKind> kind_named(std::string_view name) {
  for (int kind = 0; kind < GuardKind::kNum; ++kind)
    if (name == to_string(GuardKind::of_index(kind))) return GuardKind::of_index(kind);
  return std::nullopt;
}

/// "512-1023": a whole class, or nothing.
std::optional<GuardClass> class_of(GuardKind kind, std::string_view range) {
  const std::size_t dash = range.find('-');
  if (dash == range.npos) return std::nullopt;
  const auto least = number<std::uint64_t>(range.substr(0, dash));
  const auto most = number<std::uint64_t>(range.substr(dash + 1));
  if (!least || !most || *least == 0) return std::nullopt;
  const GuardClass of = GuardClass::of(*least, kind);
  if (of.least_bytes() != *least || of.most_bytes() != *most) return std::nullopt;
  return of;
}

/// Reads one line; gives "" or what is wrong with it.
std::string read_line(std::string_view line, GuardTable::Key& key, GuardVerdict& verdict) {
  constexpr std::string_view kNames[] = {"hosts", "transport", "mpi",     "op",
                                         "bytes", "winner",    "hips_ns", "host_ns"};
  std::vector<std::string_view> values;
  for (const std::string_view name : kNames) {
    const std::size_t end = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    if (!word.starts_with(name) || word.size() <= name.size() + 1 || word[name.size()] != '=')
      return fmt::format("\"{}\" stands where {}=... should", word, name);
    values.push_back(word.substr(name.size() + 1));
  }
  if (!line.empty()) return fmt::format("\"{}\" stands behind host_ns", line);
  const auto op = kind_named(values[3]);
  if (!op) return fmt::format("op={} is none", values[3]);
  const auto of = class_of(*op, values[4]);
  if (!of) return fmt::format("bytes={} is no class of sizes, from a power of two to the next", values[4]);
  if (values[5] != "hips" && values[5] != "host")
    return fmt::format("winner={} is neither hips nor host", values[5]);
  const auto hips_ns = number<std::int64_t>(values[6]), host_ns = number<std::int64_t>(values[7]);
  if (!hips_ns || !host_ns) return fmt::format("\"{}\" is no time in ns", !hips_ns ? values[6] : values[7]);
  key = {{std::string(values[0]), std::string(values[1]), std::string(values[2])}, *of};
  verdict = {values[5] == "host" ? Way::kHost : Way::kHips, *hips_ns, *host_ns};
  return {};
}

Status system_error(const std::string& path, const char* what) {
  const int code = errno;
  Status status =
      Status::error(Code::kSystem, fmt::format("guard table {}: {}: {}", path, what, std::strerror(code)));
  status.sys_errno = code;
  return status;
}

/// All of `text`, also when interrupted.
}  // namespace

Result<GuardTable> GuardTable::parse(std::string_view text, std::string_view name) {
  const auto wrong = [&](int number, const std::string& what) {
    return fail(Code::kInvalidArgument, fmt::format("guard table {}: line {}: {}", name, number, what));
  };
  GuardTable table;
  for (int number = 1; number == 1 || !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    // Beyond this a line of another file is not worth repeating.
    constexpr std::size_t kMostLine = 512;
    const std::string_view line = text.substr(0, std::min(end, kMostLine));
    const bool is_cut = end == text.size() || end > kMostLine;
    text.remove_prefix(std::min(end + 1, text.size()));
    if (number == 1) {
      if (line != kTitle)
        return wrong(1, fmt::format("this is no guard table: its first line is \"{}\"", kTitle));
      continue;
    }
    if (line.empty() || line.starts_with('#')) continue;
    if (is_cut) return wrong(number, "the line is cut off");
    Key key;
    GuardVerdict verdict;
    if (const std::string problem = read_line(line, key, verdict); !problem.empty())
      return wrong(number, fmt::format("{}; a line reads: {}", problem, kRight));
    if (!table.verdicts_.emplace(key, verdict).second)
      return wrong(number, "a line before says the same key");
  }
  return table;
}

std::string GuardTable::text() const {
  std::string text =
      fmt::format("{}\n# Who is faster, HiPS or the host MPI. Delete a line to try again.\n", kTitle);
  for (const auto& [key, verdict] : verdicts_) text += line_text(key, verdict) + "\n";
  return text;
}

Result<GuardTable> GuardTable::load(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid() && errno == ENOENT) return GuardTable();
  struct stat facts {};
  if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) return fail(system_error(path, "cannot be read"));
  if (!S_ISREG(facts.st_mode) || facts.st_size > kMostBytes)
    return fail(Code::kInvalidArgument, fmt::format("guard table {}: line 1: this is no guard table", path));
  std::string text(static_cast<std::size_t>(facts.st_size), '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(system_error(path, "cannot be read"));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  return parse(text, path);
}

Status GuardTable::save(const std::string& path) const {
  Status status = replace_file(path, text());
  if (!status.ok()) status.message = fmt::format("guard table {}: {}", path, status.message);
  return status;
}

const GuardTable& GuardTableFile::table() {
  if (std::exchange(is_read_, true) || path_.empty()) return table_;
  auto loaded = GuardTable::load(path_);
  if (loaded) {
    table_ = std::move(*loaded);
    return table_;
  }
  is_damaged_ = true;
  if (tells_)
    log::warn(log::Subsystem::kMpi,
              "{}. HiPS goes on without the table and leaves the file as it is; correct it, delete it, or "
              "name another file in HIPS_GUARD_TABLE",
              loaded.error().message);
  return table_;
}

void GuardTableFile::add(const GuardTable::Key& key, const GuardVerdict& verdict) {
  const auto known = table().verdicts().find(key);
  if (known != table_.verdicts().end() && known->second == verdict) return;
  table_.add(key, verdict);
  has_news_ = true;
}

void GuardTableFile::save() {
  if (path_.empty() || !has_news_ || is_damaged_) return;
  const Status status = table_.save(path_);
  if (status.ok())
    has_news_ = false;
  else
    log::warn(log::Subsystem::kMpi, "{}; the guard's verdicts of this run are lost", status.message);
}

std::string hosts_text(const std::vector<std::string>& host_of_rank) {
  std::vector<std::pair<std::string_view, int>> hosts;
  for (const std::string& host : host_of_rank) {
    const auto known =
        std::ranges::find(hosts, std::string_view(host), &std::pair<std::string_view, int>::first);
    if (known == hosts.end())
      hosts.emplace_back(host, 1);
    else
      ++known->second;
  }
  std::string text;
  for (std::size_t first = 0; first < hosts.size();) {
    std::size_t end = first;
    while (end < hosts.size() && hosts[end].second == hosts[first].second) ++end;
    text += fmt::format("{}{}x{}", first == 0 ? "" : ",", end - first, hosts[first].second);
    first = end;
  }
  return text;
}

}  // namespace hips::mpi
