#include <charconv>

#include <fmt/format.h>

#include "tools/doctor/file_tree.hpp"
#include "tools/doctor/node.hpp"

namespace hips::doctor {
namespace {

/// A number of "Max locked memory   8388608   unlimited   bytes": the soft or hard limit; nullopt if
/// unlimited.
std::optional<std::uint64_t> column(const std::string& line, std::size_t name_length, int which) {
  std::string_view rest = std::string_view(line).substr(name_length);
  std::string_view word;
  for (int i = 0; i <= which; ++i) {
    const std::size_t begin = rest.find_first_not_of(' ');
    if (begin == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(begin);
    word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(word.size());
  }
  const auto value = parse_whole(word);
  return value ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
}

void read_rlimits(const FileTree& tree, ProcessLimits& limits) {
  constexpr std::string_view kLocked = "Max locked memory", kFiles = "Max open files";
  for (const std::string& line : tree.lines("proc/self/limits")) {
    if (line.starts_with(kLocked)) limits.locked_bytes = column(line, kLocked.size(), 0);
    if (line.starts_with(kFiles)) {
      limits.open_files = column(line, kFiles.size(), 0);
      limits.open_files_hard = column(line, kFiles.size(), 1);
    }
  }
}

void read_status(const FileTree& tree, ProcessLimits& limits) {
  constexpr std::string_view kCapabilities = "CapEff:\t", kCpus = "Cpus_allowed_list:\t";
  constexpr std::uint64_t kIpcLock = std::uint64_t{1} << 14;
  for (const std::string& line : tree.lines("proc/self/status")) {
    if (line.starts_with(kCapabilities)) {
      std::uint64_t bits = 0;
      (void)std::from_chars(line.data() + kCapabilities.size(), line.data() + line.size(), bits, 16);
      limits.may_lock_all = (bits & kIpcLock) != 0;
    }
    if (line.starts_with(kCpus)) limits.cpus = line.substr(kCpus.size());
  }
  limits.num_cpus = count_cpus(limits.cpus);
  limits.num_online_cpus = count_cpus(tree.line("sys/devices/system/cpu/online").value_or(""));
}

void read_memory(const FileTree& tree, ProcessLimits& limits) {
  const auto take = [](const std::string& line, std::string_view name, std::uint64_t unit,
                       std::uint64_t& value) {
    if (line.starts_with(name)) value = column(line, name.size(), 0).value_or(0) * unit;
  };
  for (const std::string& line : tree.lines("proc/meminfo")) {
    take(line, "MemTotal:", 1024, limits.memory_bytes);
    take(line, "MemAvailable:", 1024, limits.memory_free_bytes);
    take(line, "HugePages_Total:", 1, limits.huge_pages);
    take(line, "HugePages_Free:", 1, limits.huge_pages_free);
    take(line, "Hugepagesize:", 1024, limits.huge_page_bytes);
  }
}

/// Calls visit(first, last) for each range of "0-3,8".
template <typename Visit>
void each_range(std::string_view list, Visit&& visit) {
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), part.size() + 1));
    const std::size_t dash = part.find('-');
    const auto first = parse_whole(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_whole(part.substr(dash + 1));
    if (first && last && *first <= *last) visit(*first, *last);
  }
}

}  // namespace

std::int32_t count_cpus(std::string_view list) {
  std::int64_t count = 0;
  each_range(list, [&](std::int64_t first, std::int64_t last) { count += last - first + 1; });
  return static_cast<std::int32_t>(count);
}

bool share_cpus(std::string_view a, std::string_view b) {
  bool shared = false;
  each_range(a, [&](std::int64_t a_first, std::int64_t a_last) {
    each_range(b, [&](std::int64_t b_first, std::int64_t b_last) {
      shared = shared || (a_first <= b_last && b_first <= a_last);
    });
  });
  return shared;
}

ProcessLimits read_limits(const FileTree& tree) {
  ProcessLimits limits;
  read_rlimits(tree, limits);
  read_status(tree, limits);
  read_memory(tree, limits);
  return limits;
}

}  // namespace hips::doctor
