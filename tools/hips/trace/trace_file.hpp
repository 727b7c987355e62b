#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/base/trace.hpp"

namespace hips::trace {

/// What one rank's trace file holds.
struct RankTrace {
  std::string path;
  Rank rank = -1;
  Rank num_ranks = 0;  ///< of the job, as the file says; 0 where it does not
  std::string host;    ///< "" where the file does not say
  std::int64_t wall_offset_ns = 0;
  bool truncated = false;  ///< the process ended without closing it; what was complete is here
  std::vector<TraceEvent> events;
};

/// Reads a file that make_chrome_trace() wrote, or the same events in Chrome's JSON Object Format. Events
/// that are not ours (other categories, other phases) are passed over.
///
/// Cost     memory for the events, not for the text's tree.
/// Errors   kSystem: cannot be read. kInvalidArgument: not JSON, not a trace, or an event of ours with a
/// field
///          missing or of the wrong kind; names file, place, field and value.
Result<RankTrace> read_trace_file(const std::string& path);

/// Reads all trace-<rank>.json of a directory, by rank.
///
/// Errors   as above; kInvalidArgument: no such directory, no trace in it, two files of one rank.
Result<std::vector<RankTrace>> read_trace_directory(const std::string& directory);

}  // namespace hips::trace
