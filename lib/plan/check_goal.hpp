#pragma once

#include <vector>

#include <hips/plan.hpp>

#include "lib/plan/check.hpp"

namespace hips::plan {

/// Who brings a contribution to a block, and who must have its final value in the end.
class CheckGoal {
 public:
  CheckGoal(const Plan& plan, const CheckOptions& options);

  /// Whose input of the block counts; -1: everybody's.
  [[nodiscard]] Rank only_giver(BlockIdx block) const {
    switch (collective_) {
      case Collective::kBcast:
        return root_;
      case Collective::kAllgather:
        return owner_[block];
      default:
        return -1;
    }
  }
  [[nodiscard]] bool wants(Rank rank, BlockIdx block) const {
    switch (collective_) {
      case Collective::kReduce:
        return rank == root_;
      case Collective::kReduceScatter:
        return rank == owner_[block];
      default:
        return true;
    }
  }
  /// Does the table of owners say who computes each block?
  [[nodiscard]] bool owners_compute() const {
    return collective_ == Collective::kAllreduce || collective_ == Collective::kReduceScatter;
  }

 private:
  Collective collective_;
  Rank root_;
  std::vector<Rank> owner_;  ///< by block, the last that says so; -1: nobody
};

}  // namespace hips::plan
