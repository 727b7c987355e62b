#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lib/base/result.hpp"
#include "lib/base/trace.hpp"

namespace hips {

/// Where a rank's trace goes, and what its reader has to know about the rank.
struct ChromeTraceOptions {
  std::string directory;  ///< made where it is missing: the value of HIPS_TRACE
  Rank rank = 0;          ///< of the job; names the file: trace-<rank>.json
  Rank num_ranks = 1;     ///< of the job; lets a reader miss files
  /// Events kept in memory; a full buffer is written out at once.
  std::size_t max_buffered_events = 16384;
  /// What to add to an event's time to get wall-clock time. Not given: CLOCK_REALTIME - CLOCK_MONOTONIC,
  /// right for events in the time of SystemClock.
  std::optional<std::int64_t> wall_offset_ns = std::nullopt;
};

/// Makes a sink that writes one rank's events as a Chrome trace, for Perfetto, chrome://tracing and
/// `hips trace summary`.
///
/// The file is in the JSON Array Format: an event on each line, every span a complete event ("ph":"X", ts and
/// dur in us), pid the rank. A row (tid) is a lane's waits, a lane's reductions, or what leaves by a NIC;
/// spans that overlap within a row get rows of their own, because viewers only draw nested ones. That format
/// needs no closing bracket, so the file of a process that was killed opens as well: it lacks the last second
/// at most.
///
/// Events of all ranks of one host share CLOCK_MONOTONIC; for other hosts the first line carries host name
/// and offset to wall-clock time.
///
/// Cost     copies the event; once per second, or when the buffer is full, formats and writes.
/// max_buffered_events
///          times sizeof(TraceEvent) bytes.
/// Threads  record() as TraceSink says; destroy when nobody records. A forked child writes nothing.
/// Errors   kSystem: directory or file cannot be made; names it. A write that fails later ends the trace with
/// one
///          line on stderr; the job goes on.
/// Source   Trace Event Format, "JSON Array Format" and "Complete Events".
/// Example  auto trace = make_chrome_trace({.directory = "/tmp/trace", .rank = 0, .num_ranks = 9});
Result<std::unique_ptr<TraceSink>> make_chrome_trace(const ChromeTraceOptions& options);

}  // namespace hips
