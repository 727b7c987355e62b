#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lib/base/result.hpp"
#include "lib/base/trace.hpp"

namespace hips {

/// Where a rank's trace is written, and what its reader needs to know about the rank.
struct ChromeTraceOptions {
  std::string directory;  ///< created if it does not exist; the value of HIPS_TRACE
  Rank rank = 0;          ///< rank in the job; names the file: trace-<rank>.json
  Rank num_ranks = 1;     ///< size of the job; a reader finds out which files are missing
  /// Number of events that are buffered in memory; a full buffer is written immediately.
  std::size_t max_buffered_events = 16384;
  /// Offset from event time to wall-clock time. Default: CLOCK_REALTIME - CLOCK_MONOTONIC, which is right for
  /// events in the time of SystemClock.
  std::optional<std::int64_t> wall_offset_ns = std::nullopt;
};

/// Creates a sink that writes one rank's events as a Chrome trace, for Perfetto, chrome://tracing and `hips
/// trace summary`.
///
/// The file is in the JSON Array Format, one event on each line. Every span is a complete event ("ph":"X", ts
/// and dur in us); pid is the rank. A row (tid) shows the waits of a lane, the reductions of a lane, or the
/// sends of a NIC. Spans that overlap within a row get rows of their own, because viewers draw nested spans
/// only. The format needs no closing bracket, so the file of a killed process is readable too. What it recorded since it last wrote
/// is missing then: the last second, or since the last event where it waited for longer.
///
/// All ranks of one node share CLOCK_MONOTONIC. For other nodes, the first line holds the node's name and its
/// offset to wall-clock time.
///
/// Cost     copies the event; formats and writes once per second, or when the buffer is full. Memory:
///          max_buffered_events times sizeof(TraceEvent).
/// Threads  record() as TraceSink says; destroy it when no thread records. A forked child writes nothing.
/// Errors   kSystem: the directory or file cannot be created; the message names it. If a later write fails, the trace
///          ends with one line on stderr, and the job continues.
/// Source   Trace Event Format, "JSON Array Format" and "Complete Events".
/// Example  auto trace = make_chrome_trace({.directory = "/tmp/trace", .rank = 0, .num_ranks = 9});
Result<std::unique_ptr<TraceSink>> make_chrome_trace(const ChromeTraceOptions& options);

}  // namespace hips
