#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/exec/compiled_program.hpp"

namespace hips::exec {

/// Where the blocks of a vector begin, by block, and at last where the vector ends; null: where the plan's
/// block map says. Sections of a rank's own choosing, as in reduce_scatter and allgather, are no shares of a
/// vector.
using Boundaries = std::shared_ptr<const std::vector<std::int64_t>>;

/// A compiled program for vectors of one length: where each step's elements lie and how many segments it has.
/// Made once for each (program, count, element size) and kept by the team.
struct Layout {
  struct StepLayout {
    std::int64_t first = 0;     ///< element in the step's own index space (scratch or input/output)
    std::int64_t elements = 0;  ///< 0: the step has nothing to do
    std::int32_t segments = 0;
  };
  /// What a step waits for in an earlier step of its rank.
  struct Dependency {
    StepId step = -1;
    bool whole = false;  ///< ranges do not overlap, or scratch is involved: all of it
  };

  std::uint64_t count = 0;
  Boundaries boundaries;
  std::size_t element_bytes = 0;
  std::int64_t segment_elements = 0;
  std::int64_t scratch_elements = 0;
  std::int32_t live_steps = 0;  ///< with elements > 0
  std::vector<StepLayout> steps;
  std::vector<std::int64_t> target_first;  ///< by step, kSend: first element in the receiver's output, or -1
  std::vector<std::int64_t> source_first;  ///< by source, kLocal: first element in its buffer
  std::vector<std::uint32_t>
      first_message;                    ///< by source, kMessage: its first segment's number in the channel
  std::vector<std::int32_t> first_dep;  ///< by step, one more than steps
  std::vector<Dependency> deps;
  std::vector<std::uint32_t> in_totals, out_totals;  ///< by channel: segments of this operation

  static Layout of(const CompiledProgram& program, std::uint64_t count, std::size_t element_bytes,
                   std::size_t segment_bytes, Boundaries boundaries = {});
};

}  // namespace hips::exec
