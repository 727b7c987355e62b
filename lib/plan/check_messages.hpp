#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "lib/plan/check_findings.hpp"
#include "lib/plan/check_layout.hpp"

namespace hips::plan {

/// A step of any rank, numbered through: rank 0's steps, then rank 1's, ...
using StepIdx = std::uint32_t;
inline constexpr StepIdx kNoStep = std::numeric_limits<StepIdx>::max();

/// Numbers the steps of all ranks.
class StepTable {
 public:
  explicit StepTable(const Plan& plan);

  [[nodiscard]] StepIdx size() const { return first_.back(); }
  [[nodiscard]] StepIdx first(Rank rank) const { return first_[rank]; }
  [[nodiscard]] StepIdx idx(Rank rank, StepId id) const { return first_[rank] + static_cast<StepIdx>(id); }
  [[nodiscard]] Rank rank(StepIdx idx) const;
  [[nodiscard]] StepId id(StepIdx idx) const { return static_cast<StepId>(idx - first_[rank(idx)]); }
  [[nodiscard]] const Step& step(StepIdx idx) const;

 private:
  const Plan* plan_;
  std::vector<StepIdx> first_;  ///< one more than there are ranks
};

/// Which step sends each message and which one takes it. Messages without elements are in it too.
class Messages {
 public:
  /// Finds sends without receives and the reverse, names used twice, and ends that name different blocks.
  /// What is wrong stays unmatched.
  Messages(const Plan& plan, const StepTable& table, Findings& findings);

  /// The step that takes what `send` sends, or kNoStep.
  [[nodiscard]] StepIdx receiver_of(StepIdx send) const { return receiver_of_[send]; }
  /// The step that sends source number `source` (in Program::sources) of `rank`, or kNoStep.
  [[nodiscard]] StepIdx sender_of(Rank rank, std::int32_t source) const {
    return sender_of_[first_source_[rank] + static_cast<std::size_t>(source)];
  }

 private:
  std::vector<StepIdx> receiver_of_;  ///< by step
  std::vector<StepIdx> sender_of_;    ///< by source, numbered through as the steps are
  std::vector<std::size_t> first_source_;
};

}  // namespace hips::plan
