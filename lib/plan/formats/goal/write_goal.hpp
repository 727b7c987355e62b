#pragma once

#include <cstdint>
#include <iosfwd>

#include <hips/plan.hpp>

namespace hips::plan {

/// The vector and the speed of reductions for a schedule in GOAL.
struct GoalVolume {
  std::int64_t count = 0;  ///< elements
  std::int64_t element_bytes = 4;
  double reduce_bytes_per_s = 10e9;  ///< of a reduction, for the calc lines
};

/// Writes a plan as a schedule in the GOAL language, which LogGOPSim and ATLAHS simulate: sends, receives and
/// calc lines (ns) for reductions, with the lines that each requires.
///
///   num_ranks 9
///   rank 0 {
///   l0: send 4096b to 1 tag 17 cpu 0 nic 0
///   l1: recv 4096b from 1 tag 17 cpu 0 nic 0
///   l2: calc 410
///   l2 requires l1
///   }
///
/// A message's tag is its (lane, stage, round), so that both ends write the same tag. A step requires all
/// steps that it comes after, while the executor waits segment by segment: times are upper bounds. Empty
/// messages are left out, as they are not sent.
///
/// Owns     nothing; `out` must outlive it.
/// Cost     the steps; ranks are written one by one.
/// Source   Hoefler, Siebert, Lumsdaine: Group Operation Assembly Language, ICPP 2009; Hoefler, Schneider,
///          Lumsdaine: LogGOPSim, LSAP 2010.
/// Example  GoalWriter writer(out, builder->shape(), {.count = 1024});
///          for (Rank r = 0; r < n; ++r) writer.add(builder->program(r));
class GoalWriter {
 public:
  GoalWriter(std::ostream& out, const PlanShape& shape, GoalVolume volume);
  void add(const Program& program);

 private:
  [[nodiscard]] std::int64_t bytes(const BufferRange& range) const;
  [[nodiscard]] std::int64_t tag(const Step& step) const;

  std::ostream& out_;
  const PlanShape& shape_;
  GoalVolume volume_;
};

}  // namespace hips::plan
