#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/hips/trace/trace_file.hpp"

namespace hips::trace {

/// One direction between two ranks over one NIC of the sender.
struct LinkUse {
  Rank sender = -1;
  Rank receiver = -1;
  Rail rail = kNoRail;  ///< of the sender; kNoRail inside a server
  std::int64_t bytes = 0;
  std::int64_t busy_ns = 0;  ///< time with at least one outstanding transfer

  [[nodiscard]] double bytes_per_s() const {
    return busy_ns > 0 ? static_cast<double>(bytes) * 1e9 / static_cast<double>(busy_ns) : 0;
  }
};

/// A rank's time in operations. Waiting, sending and reducing overlap, so that they do not add up to it.
struct RankUse {
  Rank rank = -1;
  std::string host;
  std::int64_t operation_ns = 0;
  std::int64_t wait_ns = 0;         ///< a step was waiting only for a peer's message
  std::int64_t wire_ns = 0;         ///< data was being sent
  std::int64_t reduce_ns = 0;       ///< reducing or copying
  std::int64_t times_last = 0;      ///< operations that it entered as the last rank
  std::int64_t median_late_ns = 0;  ///< delay after the first rank that enters an operation
  std::int64_t max_late_ns = 0;
};

/// What became of the updates and values of a shard of a model, whose scheduler is on one of the ranks.
struct ShardUse {
  std::uint64_t model = 0;
  std::int32_t shard = -1;
  std::int64_t num_applied = 0, num_handed_back = 0;  ///< updates
  std::int64_t num_groups = 0;                        ///< in which the applied ones travelled
  std::int64_t median_ns = 0;                         ///< from the request of an update until it was applied
  std::int64_t longest_delay = 0;                     ///< later versions that an update was applied to
  std::int64_t num_chains = 0, num_nodes = 0;         ///< in which values travelled; nodes that got them so
};

/// The summary of a set of traces.
struct Summary {
  std::vector<RankUse> ranks;                ///< by rank
  std::vector<LinkUse> links;                ///< slowest first, see summarize()
  std::vector<ShardUse> shards;              ///< of models whose updates are scheduled
  std::int64_t num_operations = 0;           ///< seen by any rank
  std::int64_t num_compared_operations = 0;  ///< seen by all ranks; the base of the delays
  std::optional<std::size_t> slowest_link;   ///< index in `links`
  std::optional<std::size_t> latest_rank;    ///< index in `ranks`
  std::vector<std::string> notes;  ///< limitations of these figures: missing ranks, clocks of different nodes
};

/// Computes the times of each rank, the slowest link and the latest rank.
///
/// A link's rate is its bytes divided by its busy time. Links with less than half of the median link's bytes
/// mostly show latency; they are sorted behind all others, and are never the slowest unless there is no
/// other. The latest rank has the largest median delay in entering an operation; on a tie, the one that was
/// last more often.
///
/// Clocks   ranks of one node share a clock. With several nodes, times are converted to wall-clock time,
/// which is as
///          exact as the nodes' clocks agree, and a note says so.
Summary summarize(std::span<const RankTrace> traces);

/// A table for people; ends with a newline.
std::string to_text(const Summary& summary);
nlohmann::json to_json(const Summary& summary);

}  // namespace hips::trace
