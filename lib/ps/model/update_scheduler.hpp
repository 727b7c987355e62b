#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include <hips/status.hpp>

#include "lib/base/trace.hpp"
#include "lib/base/wait/clock.hpp"
#include "lib/ps/mail.hpp"
#include "lib/ps/model/model_mail.hpp"
#include "lib/ps/model/node_rates.hpp"
#include "lib/ps/model/shards.hpp"
#include "lib/ps/rank_places.hpp"

namespace hips::ps {

/// Decides which updates of a model are sent when, which of them travel as one, and by which nodes values are passed on. One for
/// all nodes, on the first one.
///
/// Updates of a shard that wait while earlier ones are on their way are ordered together: see plan_batches(). Those of a group pass
/// from node to node, each of which adds its own, and the shard's NIC receives one sum. Values that several nodes
/// want pass from node to node, too, the fastest first.
///
/// Cost     a message for each update and each fetch of a shard, and one back.
/// Threads  one at a time.
/// Source   MLfabric (BML 2018): ordering by the shortest transfer, delays with a limit, aggregation at other workers.
class UpdateScheduler {
 public:
  struct Options {
    RankPlaces places;
    Shards shards;
    std::uint64_t delay_max = UINT64_MAX;
    TraceSink* trace = nullptr;  ///< gets each update and each chain of values; null: no trace
    std::uint64_t id = 0;        ///< of the model, in the trace
  };

  UpdateScheduler(Options options, Mail& mail, const Clock& clock);

  /// Errors   kMismatch: the message cannot be.
  Status on_mail(const ModelHead& head);

 private:
  struct Waiting {
    Rank rank = -1;
    std::uint32_t update = 0;
    std::uint64_t version = 0;
    std::int64_t begin_ns = 0;  ///< when it was asked for
  };
  struct Group {
    std::uint64_t number = 0;
    std::vector<Waiting> members;
  };
  /// Nodes that pass values on.
  struct Chain {
    std::uint64_t number = 0;
    std::size_t num_nodes = 0;
    std::int64_t begin_ns = 0;
  };
  struct ShardState {
    std::vector<Waiting> waiting;
    std::vector<Group> outstanding;  ///< in the order in which they begin
    std::uint64_t version = 0;       ///< once all of these are applied
    std::uint64_t num_groups = 0;
    std::vector<Rank> asking;   ///< services of nodes
    std::deque<Chain> sending;  ///< that its node is sending values to
    std::uint64_t num_chains = 0;
  };

  Status on_request(const ModelHead& head);
  Status on_applied(const ModelHead& head);
  void plan(std::uint16_t shard);
  void start(std::uint16_t shard, std::vector<Waiting> members);
  void send_values(std::uint16_t shard);
  /// `version`: of the shard, as the update found it; `group`: null: it is handed back.
  void tell_outcome(std::uint16_t shard, const Waiting& update, std::uint64_t version, const Group* group);
  void end_chain(std::uint16_t shard);
  [[nodiscard]] std::size_t node_of(Rank rank) const {
    return static_cast<std::size_t>(options_.places.node_of[static_cast<std::size_t>(rank)]);
  }
  [[nodiscard]] Rank service_of_shard(std::uint16_t shard) const { return options_.places.service_of[shard]; }

  Options options_;
  Mail& mail_;
  const Clock& clock_;
  NodeRates rates_;
  std::vector<ShardState> shards_;
};

}  // namespace hips::ps
