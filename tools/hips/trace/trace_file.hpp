#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/base/trace.hpp"

namespace hips::trace {

/// The contents of one rank's trace file.
struct RankTrace {
  std::string path;
  Rank rank = -1;
  Rank num_ranks = 0;  ///< of the job; 0 if the file does not tell
  std::string host;    ///< host name; "" if the file does not tell
  std::int64_t wall_offset_ns = 0;
  bool truncated = false;  ///< the process ended without closing the file; `events` has the complete ones
  std::vector<TraceEvent> events;
};

/// Reads a file that make_chrome_trace() wrote, or the same events in Chrome's JSON Object Format. Ignores
/// events of other categories and phases.
///
/// Cost     memory for the events, but not for the JSON tree.
/// Errors   kSystem: cannot be read. kInvalidArgument: not JSON, not a trace, or an event with a missing or
///          invalid field; names file, position, field and value.
Result<RankTrace> read_trace_file(const std::string& path);

/// Reads traces, sorted by rank. A path is a trace file, or a folder with files named trace-<rank>.json.
///
/// Errors   as above; kInvalidArgument: no such folder, no trace in it, two files of one rank.
Result<std::vector<RankTrace>> read_traces(const std::vector<std::string>& paths);

}  // namespace hips::trace
