#pragma once

#include <vector>

#include <hips/plan.hpp>

#include "lib/plan/check/check.hpp"

namespace hips::plan {

/// Which ranks contribute to a block, and which must have its final value in the end.
class CheckGoal {
 public:
  CheckGoal(const Plan& plan, const CheckOptions& options);

  /// The only rank that contributes to the block; -1: all ranks do.
  [[nodiscard]] Rank only_contributor(BlockIdx block) const {
    switch (collective_) {
      case Collective::kBcast:
      case Collective::kScatter:
        return root_;
      case Collective::kAllgather:
      case Collective::kGather:
        return owner_[block];
      default:
        return -1;
    }
  }
  [[nodiscard]] bool needs(Rank rank, BlockIdx block) const {
    switch (collective_) {
      case Collective::kReduce:
      case Collective::kGather:
        return rank == root_;
      case Collective::kReduceScatter:
      case Collective::kScatter:
        return rank == owner_[block];
      default:
        return true;
    }
  }
  /// Does the table of owners say which rank computes each block?
  [[nodiscard]] bool owners_compute() const {
    return collective_ == Collective::kAllreduce || collective_ == Collective::kReduceScatter;
  }

 private:
  Collective collective_;
  Rank root_;
  std::vector<Rank> owner_;  ///< by block; -1: none; of several the last
};

}  // namespace hips::plan
