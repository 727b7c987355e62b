#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "topology/tiers.hpp"

namespace hips::cost {

/// The largest vector whose cost is estimated: 1 TiB, so that 64 bits count a million vectors.
inline constexpr std::uint64_t kMostVectorBytes = std::uint64_t{1} << 40U;

/// The size of the vector for which the cost of a plan is estimated.
struct Volume {
  std::int64_t count = 0;  ///< elements
  std::int64_t element_bytes = 4;
  [[nodiscard]] std::int64_t bytes() const { return count * element_bytes; }
};

/// Bytes through a NIC, or through the cables of a tier, in each direction.
struct Traffic {
  std::int64_t out_bytes = 0;
  std::int64_t in_bytes = 0;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

/// Bytes by stage on every NIC of the covered servers and, if all servers of a tree are covered, on the
/// cables above every edge switch and pod.
struct Loads {
  std::int64_t first_server = 0;
  std::int64_t num_servers = 0;  ///< covered: all of the topology's, or one
  Rail num_rails = 0;
  std::vector<topology::Tier> tiers;  ///< counted besides the NICs; empty if one server is covered
  /// False if servers relay for others and only the programs of one server were counted: its NICs carry more.
  bool complete = true;

  struct Stage {
    std::vector<Traffic> nics;                ///< [(server - first_server) * num_rails + rail]
    std::vector<std::vector<Traffic>> tiers;  ///< [tier][switch or pod]
  };
  std::vector<Stage> stages;
  Stage total;
  std::int64_t reduced_bytes = 0;  ///< of the rank that reduces most: the sum of (operands - 1) * bytes

  [[nodiscard]] std::int32_t num_stages() const { return static_cast<std::int32_t>(stages.size()); }
  [[nodiscard]] const Traffic& at(std::int32_t stage, std::int64_t server, Rail rail) const {
    return stages[static_cast<std::size_t>(stage)].nics[index(server, rail)];
  }
  [[nodiscard]] const Traffic& total_at(std::int64_t server, Rail rail) const {
    return total.nics[index(server, rail)];
  }
  [[nodiscard]] std::size_t index(std::int64_t server, Rail rail) const {
    return static_cast<std::size_t>((server - first_server) * num_rails + rail);
  }
};

/// Adds up the bytes of programs, one at a time, so that only one needs to be in memory.
///
/// A message counts on every NIC of the route that topology::walk() takes from its rail; relayed bytes count
/// at each relaying server, in and out. Messages between ranks of one server use no NIC. Empty messages do
/// not count.
///
/// Cost     all servers: memory servers * rails * stages. One server: the program, for any size of the
///          topology.
/// Threads  none: one object, one thread.
class LoadCounter {
 public:
  /// Covers all servers. Call add() once with the program of every rank.
  LoadCounter(const Topology& topology, const PlanShape& shape, Volume volume);
  /// Covers one server. Call add() once with the program of each of its ranks.
  LoadCounter(const Topology& topology, const PlanShape& shape, Volume volume, std::int64_t server);

  /// Errors (thrown) kInvalidArgument: the program is not of a covered server, or names ranks or NICs that
  /// the topology does not have.
  void add(const Program& program);

  [[nodiscard]] Loads take();

 private:
  [[nodiscard]] Loads::Stage empty_stage() const;
  Loads::Stage& stage(std::int32_t index);
  [[nodiscard]] std::int64_t elements(BlockRange range) const;
  [[nodiscard]] std::int64_t bytes(const BufferRange& range) const;
  void add_send(Rank from, const Step& step);
  void add_arrivals(const Program& program, const Step& step);
  void check_rank(Rank rank, const char* what) const;
  void check_step(const Program& program, const Step& step) const;

  const Topology& topology_;
  const PlanShape& shape_;
  Volume volume_;
  bool all_servers_;
  /// First element of every block, if all servers are covered: every block then occurs many times.
  std::vector<std::int64_t> boundaries_;
  Loads loads_;
};

}  // namespace hips::cost
