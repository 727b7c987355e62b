#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

#include <fmt/format.h>

#include "lib/base/result.hpp"

namespace hips::log {

enum class LogLevel : std::uint8_t { kError, kWarn, kInfo, kDebug, kTrace };
inline constexpr int kNumLevels = 5;

/// Origin of a message; HIPS_LOG can set a level for each.
enum class Subsystem : std::uint8_t {
  kConfig,
  kTopology,
  kPlan,
  kTransport,
  kExec,
  kBootstrap,
  kControl,
  kComm,
  kMpi,
  kTools
};
inline constexpr int kNumSubsystems = 10;

/// The words of HIPS_LOG: "warn", "plan", ...
std::string_view to_string(LogLevel level);
std::string_view to_string(Subsystem subsystem);

/// The log level of each subsystem. By default warnings and errors pass.
struct Filter {
  std::array<LogLevel, kNumSubsystems> levels;
  Filter() { levels.fill(LogLevel::kWarn); }
  [[nodiscard]] bool passes(Subsystem subsystem, LogLevel level) const {
    return level <= levels[static_cast<std::size_t>(subsystem)];
  }
  friend bool operator==(const Filter&, const Filter&) = default;
};

/// What parse_filter() takes, for messages: "LEVEL or SUBSYSTEM:LEVEL, with levels ...".
std::string filter_syntax();

/// Parses "info,plan:debug": a level for all subsystems, or for one. Later entries override earlier ones.
///
/// Errors   kInvalidArgument: names the entry and lists the valid words.
Result<Filter> parse_filter(std::string_view text);

/// Sets the filter of this process, and the rank in the prefix "hips[rank]"; a negative rank prints "hips".
///
/// Threads  any thread, at any time.
void configure(const Filter& filter, int rank);

/// Sends lines to `sink` instead of stderr, for tests and tools. An empty function restores stderr.
void redirect(std::function<void(LogLevel, std::string_view line)> sink);

[[nodiscard]] bool passes(Subsystem subsystem, LogLevel level);

/// Writes one line to stderr: "hips[3] warn comm: ...". Prefer the functions below.
void write(Subsystem subsystem, LogLevel level, std::string_view message);

/// Log functions: a message that does not pass is not formatted.
///
/// Threads  any thread.
/// Example  log::warn(log::Subsystem::kComm, "rank {} is late", rank);
template <typename... Args>
void error(Subsystem subsystem, fmt::format_string<Args...> format, Args&&... args) {
  if (passes(subsystem, LogLevel::kError))
    write(subsystem, LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warn(Subsystem subsystem, fmt::format_string<Args...> format, Args&&... args) {
  if (passes(subsystem, LogLevel::kWarn))
    write(subsystem, LogLevel::kWarn, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void info(Subsystem subsystem, fmt::format_string<Args...> format, Args&&... args) {
  if (passes(subsystem, LogLevel::kInfo))
    write(subsystem, LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void debug(Subsystem subsystem, fmt::format_string<Args...> format, Args&&... args) {
  if (passes(subsystem, LogLevel::kDebug))
    write(subsystem, LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void trace(Subsystem subsystem, fmt::format_string<Args...> format, Args&&... args) {
  if (passes(subsystem, LogLevel::kTrace))
    write(subsystem, LogLevel::kTrace, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace hips::log
