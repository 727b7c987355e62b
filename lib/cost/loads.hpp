#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "topology/tiers.hpp"

namespace hips::cost {

/// The largest vector that is priced: 1 TiB, so that a million vectors are still counted in 64 bits.
inline constexpr std::uint64_t kMostPricedBytes = std::uint64_t{1} << 40U;

/// The vector that a plan is priced for.
struct Volume {
  std::int64_t count = 0;  ///< elements
  std::int64_t element_bytes = 4;
  [[nodiscard]] std::int64_t bytes() const { return count * element_bytes; }
};

/// What passes a port, or the cables of a tier, in each direction.
struct Traffic {
  std::int64_t out_bytes = 0;
  std::int64_t in_bytes = 0;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

/// Bytes on every NIC of some servers and, for all servers of a tree, on the cables above every edge switch
/// and pod; by stage.
struct Loads {
  std::int64_t first_server = 0;
  std::int64_t num_servers = 0;  ///< covered: all of the topology's, or one
  Rail num_rails = 0;
  std::vector<topology::Tier> tiers;  ///< counted beside the NICs; empty where one server is covered
  /// False where servers relay for others and only one server's programs were seen: its NICs then carry more.
  bool complete = true;

  struct Stage {
    std::vector<Traffic> nics;                ///< [(server - first_server) * num_rails + rail]
    std::vector<std::vector<Traffic>> tiers;  ///< [tier][switch or pod]
  };
  std::vector<Stage> stages;
  Stage total;
  std::int64_t reduced_bytes = 0;  ///< folded by the rank that folds most: (operands - 1) * bytes, summed

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

/// Adds up the bytes of programs, one after the other, so that no two need to be in memory.
///
/// A message counts on every NIC of the way that topology::walk() takes from the rail that it names; relayed
/// bytes count at each relaying server, in and out. Messages between ranks of one server cost no NIC, and
/// empty messages nothing.
///
/// Cost     all servers: memory servers * rails * stages. One server: the program, whatever the size of the
///          topology.
/// Threads  none: one object, one thread.
class LoadCounter {
 public:
  /// Of all servers: add() takes the program of every rank once.
  LoadCounter(const Topology& topology, const PlanShape& shape, Volume volume);
  /// Of one server: add() takes the program of every rank of it once.
  LoadCounter(const Topology& topology, const PlanShape& shape, Volume volume, std::int64_t server);

  /// Errors (thrown) kInvalidArgument: the program is not of a covered server, or names ranks or NICs that
  /// the topology lacks.
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
  /// First element of every block, where all servers are counted: every block then occurs many times.
  std::vector<std::int64_t> boundaries_;
  Loads loads_;
};

}  // namespace hips::cost
