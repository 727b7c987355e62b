#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/exec/compiled_program.hpp"
#include "lib/exec/port_set.hpp"

namespace hips::exec {

/// First element of each block of a vector, and the end of the vector. Null: as the plan's block map says.
/// reduce_scatter and allgather need it, because the caller chooses the lengths of sections.
using Boundaries = std::shared_ptr<const std::vector<std::int64_t>>;

/// A compiled program for vectors of one length: the elements and the number of segments of each step. The
/// team makes one for each (program, count, element size) and keeps it.
struct Layout {
  struct StepLayout {
    std::int64_t first = 0;     ///< first element in the step's index space (scratch or input/output)
    std::int64_t elements = 0;  ///< 0: the step has nothing to do
    std::int32_t segments = 0;
  };
  /// A dependency on an earlier step of the same rank.
  struct Dependency {
    StepId step = -1;
    bool whole = false;  ///< wait for the whole step: the ranges do not overlap, or scratch is involved
  };

  std::uint64_t count = 0;
  Boundaries boundaries;
  std::size_t element_bytes = 0;
  std::int64_t segment_elements = 0;
  std::int64_t scratch_elements = 0;
  std::int32_t live_steps = 0;  ///< number of steps with elements > 0
  std::vector<StepLayout> steps;
  std::vector<std::int64_t> target_first;  ///< by step, kSend: first element in the receiver's output, or -1
  std::vector<std::int64_t> source_first;  ///< by source, kLocal: first element in its buffer
  /// By source, kMessage: its first segment's number in the channel.
  std::vector<std::uint32_t> first_message;
  std::vector<std::int32_t> first_dep;  ///< by step; has one more entry than steps
  std::vector<Dependency> deps;
  std::vector<std::uint32_t> in_totals, out_totals;  ///< by channel: number of segments of this operation
  PortSet ports;                                     ///< of the channels with segments

  static Layout of(const CompiledProgram& program, std::uint64_t count, std::size_t element_bytes,
                   std::size_t segment_bytes, Boundaries boundaries = {});
};

}  // namespace hips::exec
