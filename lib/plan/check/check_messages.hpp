#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "lib/plan/check/check_findings.hpp"
#include "lib/plan/check/check_layout.hpp"

namespace hips::plan {

/// The number of a step among those of all ranks: first rank 0's steps, then rank 1's, ...
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

/// The step that sends each message and the step that receives it, including messages without elements.
class Messages {
 public:
  /// Finds sends without receives, receives without sends, names that occur twice, and ends that name
  /// different blocks. Messages with an error stay unmatched.
  Messages(const Plan& plan, const StepTable& table, Findings& findings);

  /// The step that receives what `send` sends, or kNoStep.
  [[nodiscard]] StepIdx receiver_of(StepIdx send) const { return receiver_of_[send]; }
  /// The step that sends source number `source` (in Program::sources) of `rank`, or kNoStep.
  [[nodiscard]] StepIdx sender_of(Rank rank, std::int32_t source) const {
    return sender_of_[first_source_[rank] + static_cast<std::size_t>(source)];
  }

 private:
  /// A source that receives a message.
  struct Receive {
    Rank receiver;
    StepId step;
    std::int32_t source;
  };
  void number_sources();
  void match(Rank sender, std::span<const Receive> receives);
  void match_pair(Rank sender, StepId sent, const Receive& receive);

  const Plan& plan_;
  const StepTable& table_;
  Findings& findings_;
  std::vector<StepIdx> receiver_of_;  ///< by step
  std::vector<StepIdx> sender_of_;    ///< by source, numbered as the steps are
  std::vector<std::size_t> first_source_;
};

}  // namespace hips::plan
