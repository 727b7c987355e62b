#include "lib/base/log.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

// Header only: the interposer is loaded into programs that may contain another version of spdlog.
#undef SPDLOG_COMPILED_LIB
#undef SPDLOG_SHARED_LIB
#define SPDLOG_HEADER_ONLY
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace hips::log {
namespace {

constexpr std::array<std::string_view, kNumLevels> kLevelNames = {"error", "warn", "info", "debug", "trace"};
constexpr std::array<std::string_view, kNumSubsystems> kSubsystemNames = {
    "config", "topology", "plan", "transport", "exec", "bootstrap", "control", "comm", "mpi", "tools"};

template <std::size_t n>
std::optional<std::size_t> index_of(const std::array<std::string_view, n>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Levels are atomics, because every message reads them; the mutex guards everything else.
struct LogState {
  std::array<std::atomic<LogLevel>, kNumSubsystems> levels;
  std::mutex mutex;
  int rank = -1;
  std::function<void(LogLevel, std::string_view)> sink;
  std::shared_ptr<spdlog::logger> stderr_logger;

  LogState() {
    for (auto& level : levels) level.store(LogLevel::kWarn, std::memory_order_relaxed);
  }
};

/// Never destroyed: exit handlers and the control thread may log late.
LogState& state() {
  static LogState* const instance = new LogState;
  return *instance;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kTrace:
      return spdlog::level::trace;
  }
  return spdlog::level::err;
}

}  // namespace

std::string_view to_string(LogLevel level) {
  return kLevelNames[static_cast<std::size_t>(level)];
}
std::string_view to_string(Subsystem subsystem) {
  return kSubsystemNames[static_cast<std::size_t>(subsystem)];
}

std::string filter_syntax() {
  return fmt::format("LEVEL or SUBSYSTEM:LEVEL, with levels {} and subsystems {}, as in info,plan:debug",
                     fmt::join(kLevelNames, ", "), fmt::join(kSubsystemNames, ", "));
}

Result<Filter> parse_filter(std::string_view text) {
  Filter filter;
  const auto wrong = [&](std::string_view entry) {
    return fail(Code::kInvalidArgument,
                fmt::format("invalid log level \"{}\"; expected {}", entry, filter_syntax()));
  };
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view entry = trim(text.substr(begin, end - begin));
    begin = end + 1;
    const std::size_t colon = entry.find(':');
    const auto level = index_of(kLevelNames, trim(entry.substr(colon == entry.npos ? 0 : colon + 1)));
    if (!level) return wrong(entry);
    if (colon == entry.npos) {
      filter.levels.fill(static_cast<LogLevel>(*level));
      continue;
    }
    const auto subsystem = index_of(kSubsystemNames, trim(entry.substr(0, colon)));
    if (!subsystem) return wrong(entry);
    filter.levels[*subsystem] = static_cast<LogLevel>(*level);
  }
  return filter;
}

void configure(const Filter& filter, int rank) {
  LogState& s = state();
  for (std::size_t i = 0; i < filter.levels.size(); ++i)
    s.levels[i].store(filter.levels[i], std::memory_order_relaxed);
  const std::lock_guard lock(s.mutex);
  s.rank = rank;
}

void redirect(std::function<void(LogLevel, std::string_view)> sink) {
  LogState& s = state();
  const std::lock_guard lock(s.mutex);
  s.sink = std::move(sink);
}

bool passes(Subsystem subsystem, LogLevel level) {
  return level <= state().levels[static_cast<std::size_t>(subsystem)].load(std::memory_order_relaxed);
}

void write(Subsystem subsystem, LogLevel level, std::string_view message) {
  LogState& s = state();
  const std::lock_guard lock(s.mutex);
  const std::string prefix = s.rank < 0 ? "hips" : fmt::format("hips[{}]", s.rank);
  const std::string line =
      fmt::format("{} {} {}: {}", prefix, to_string(level), to_string(subsystem), message);
  if (s.sink) {
    s.sink(level, line);
    return;
  }
  if (!s.stderr_logger) {
    auto sink = std::make_shared<spdlog::sinks::stderr_sink_st>();
    sink->set_pattern("%v");
    s.stderr_logger = std::make_shared<spdlog::logger>("hips", std::move(sink));
    s.stderr_logger->set_level(spdlog::level::trace);
    s.stderr_logger->flush_on(spdlog::level::trace);
  }
  s.stderr_logger->log(spdlog_level(level), line);
}

}  // namespace hips::log
