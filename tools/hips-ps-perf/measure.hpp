#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <hips/communicator.hpp>

#include "tools/hips-ps-perf/options.hpp"

namespace hips::ps_perf {

/// One line of the report: calls of one kind.
struct Line {
  std::string operation;  ///< "pull", "push", "localize", "intent", "step", "update"
  /// "local", "remote", "classic": on a node that a hash names; of a step: "unmoved", "localized", "intents", "replicas"; of an update: "scheduled", "at-once"
  std::string rows;
  std::size_t keys = 1, row_length = 1, outstanding = 1;
  double us_per_call = 0;    ///< median of the rounds, of medians where calls are waited for
  double keys_per_s = 0;     ///< while calls take place
  double mb_per_s = 0;       ///< 10^6 bytes of rows
  double in_ping_pongs = 0;  ///< us_per_call / ping-pong; 0: not measured
};

struct PsPerfResult {
  std::optional<double> ping_pong_us;  ///< median of the rounds
  int peer = -1;            ///< a rank of another node; -1: there is none, and only local rows are timed
  std::vector<Line> lines;  ///< on rank 0
};

/// Collective. Checks what it pulls.
///
/// Errors   throws Error of the calls; kInternal: a row was not what had been pushed.
PsPerfResult measure(Communicator& comm, const PsPerfOptions& options);

}  // namespace hips::ps_perf
