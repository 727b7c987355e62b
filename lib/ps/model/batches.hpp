#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hips::ps {

/// An update of a shard that waits to be sent.
struct WaitingUpdate {
  std::uint64_t version = 0;  ///< of the shard when the rank read it
  std::int64_t time_ns = 0;   ///< that its way to the shard takes, without others
};

/// In which order updates of one shard are applied, and which travel as one.
struct Batches {
  /// Each group is summed on its way and applied at once. It takes as long as its slowest member. By number of the update; one
  /// after the other.
  std::vector<std::vector<std::size_t>> groups;
  std::vector<std::size_t> hopeless;  ///< cannot be applied any more
};

/// Orders updates: as many as possible are applied with a delay of at most `delay_max`, and of these orders the one with the
/// least sum of the times until they are applied. `version`: of the shard when the first of them will be applied. The delay of an
/// update is the version that it is applied to less the one that its rank read; within a group as if its members were applied one
/// by one.
///
/// Cost     O(n^2) for n updates, O(n^3) where delays come near their limit. Exact where no delay comes near its limit, and for at most 10 updates; for more it may
///          miss orders in which a slow update that is due overtakes fast ones that are not.
/// Threads  pure.
/// Source   without limits, a machine that executes jobs in batches: Brucker et al., Scheduling a batching machine, 1998.
///          Ordering and combining updates of a parameter server: MLfabric (BML 2018), whose groups are of one level.
Batches plan_batches(std::span<const WaitingUpdate> updates, std::uint64_t version, std::uint64_t delay_max);

}  // namespace hips::ps
