#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

#include <fmt/format.h>

#include "lib/base/result.hpp"

namespace hips::log {

enum class Level : std::uint8_t { kError, kWarn, kInfo, kDebug, kTrace };
inline constexpr int kNumLevels = 5;

/// Who speaks; HIPS_LOG may set a level for each.
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

/// "warn", "plan", ...: the words of HIPS_LOG.
std::string_view to_string(Level level);
std::string_view to_string(Subsystem subsystem);

/// Which messages pass, by subsystem. The default lets warnings and errors pass.
struct Filter {
  std::array<Level, kNumSubsystems> levels;
  Filter() { levels.fill(Level::kWarn); }
  [[nodiscard]] bool passes(Subsystem subsystem, Level level) const {
    return level <= levels[static_cast<std::size_t>(subsystem)];
  }
  friend bool operator==(const Filter&, const Filter&) = default;
};

/// Reads "info,plan:debug": a level for all, then levels for subsystems; later entries win.
///
/// Errors   kInvalidArgument: names the entry and lists the words that are right.
Result<Filter> parse_filter(std::string_view text);

/// Sets what passes in this process and the rank in the prefix "hips[rank]"; a negative rank prints "hips".
///
/// Threads  any thread, at any time.
void configure(const Filter& filter, int rank);

/// Sends lines to `sink` instead of stderr; an empty function goes back to stderr. For tests and tools.
void redirect(std::function<void(Level, std::string_view line)> sink);

[[nodiscard]] bool passes(Subsystem subsystem, Level level);

/// One line to stderr: "hips[3] warn comm: ...". Use the functions below.
void write(Subsystem subsystem, Level level, std::string_view message);

/// Formats only what passes.
///
/// Threads  any thread.
/// Example  log::warn(log::Subsystem::kComm, "rank {} is late", rank);
template <typename... Args>
void error(Subsystem subsystem, fmt::format_string<Args...> format, Args&&... args) {
  if (passes(subsystem, Level::kError))
    write(subsystem, Level::kError, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warn(Subsystem subsystem, fmt::format_string<Args...> format, Args&&... args) {
  if (passes(subsystem, Level::kWarn))
    write(subsystem, Level::kWarn, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void info(Subsystem subsystem, fmt::format_string<Args...> format, Args&&... args) {
  if (passes(subsystem, Level::kInfo))
    write(subsystem, Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void debug(Subsystem subsystem, fmt::format_string<Args...> format, Args&&... args) {
  if (passes(subsystem, Level::kDebug))
    write(subsystem, Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void trace(Subsystem subsystem, fmt::format_string<Args...> format, Args&&... args) {
  if (passes(subsystem, Level::kTrace))
    write(subsystem, Level::kTrace, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace hips::log
