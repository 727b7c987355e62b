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
  std::int64_t busy_ns = 0;  ///< time in which at least one transfer was under way

  [[nodiscard]] double bytes_per_s() const {
    return busy_ns > 0 ? static_cast<double>(bytes) * 1e9 / static_cast<double>(busy_ns) : 0;
  }
};

/// Where a rank's time in operations went. The three overlap, so they need not add up to it.
struct RankUse {
  Rank rank = -1;
  std::string host;
  std::int64_t operation_ns = 0;
  std::int64_t wait_ns = 0;         ///< some step lacked nothing but a peer's message
  std::int64_t wire_ns = 0;         ///< something of ours was being sent
  std::int64_t reduce_ns = 0;       ///< folding or copying
  std::int64_t times_last = 0;      ///< operations that it entered as the last rank
  std::int64_t median_late_ns = 0;  ///< behind the first rank to enter the operation
  std::int64_t max_late_ns = 0;
};

/// What a set of traces says.
struct Summary {
  std::vector<RankUse> ranks;                ///< by rank
  std::vector<LinkUse> links;                ///< slowest first, see summarize()
  std::int64_t num_operations = 0;           ///< seen by any rank
  std::int64_t num_compared_operations = 0;  ///< seen by all ranks: lateness is taken from them
  std::optional<std::size_t> slowest_link;   ///< in `links`
  std::optional<std::size_t> latest_rank;    ///< in `ranks`
  std::vector<std::string> notes;  ///< what limits these figures: missing ranks, other hosts' clocks
};

/// Works out the shares of each rank, the slowest link and the latest rank.
///
/// A link's rate is its bytes by its busy time. A link that carried less than half of what the median link
/// carried mostly shows latency; such links come behind all others and are never named the slowest, unless
/// there is no other. The latest rank has the largest median delay in entering an operation, the more often
/// last one on a tie.
///
/// Clocks   ranks of one host share a clock. Where there are several hosts, times are first moved to
/// wall-clock
///          time, as good as the hosts' clocks agree, and a note says so.
Summary summarize(std::span<const RankTrace> traces);

/// A table for people; ends in a newline.
std::string to_text(const Summary& summary);
nlohmann::json to_json(const Summary& summary);

}  // namespace hips::trace
