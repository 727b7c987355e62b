#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <hips/status.hpp>
#include <hips/topology.hpp>
#include <hips/types.hpp>

#include "lib/base/collective.hpp"
#include "lib/base/sections.hpp"

namespace hips::comm {

/// What a rank passes to a collective call.
///
/// | collective      | `count`              | `in`                    | `out`            | in place |
/// |-----------------|----------------------|-------------------------|------------------|-------------------|
/// | allreduce       | of the vector        | the vector              | the result       | `in` == `out` | |
/// reduce_scatter  | of all sections      | all sections            | this rank's      | `in` == `out`     |
/// | allgather       | of all sections      | this rank's section     | all sections     | `in` is where this
/// rank's section belongs in `out` | | bcast           | of the vector        | as `out`                | the
/// vector       | always            | | reduce          | of the vector        | the vector              |
/// root: the result | root: `in` == `out` | | barrier         | 0                    | null | null | |
struct CallArgs {
  Collective collective = Collective::kAllreduce;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint64_t count = 0;
  DataType type = DataType::kUint8;
  ReduceOp op = ReduceOp::kSum;
  Rank root = 0;                               ///< of bcast and reduce
  std::shared_ptr<const Sections> sections{};  ///< of reduce_scatter and allgather

  /// What else, beside collective, count, type and op, all ranks must pass alike.
  [[nodiscard]] std::uint32_t detail() const {
    if (has_sections(collective)) return sections->digest();
    return has_root(collective) ? static_cast<std::uint32_t>(root) : 0;
  }
};

/// Status of a wrong argument of one of `size` ranks, or success.
Status check_arguments(const CallArgs& args, Rank rank, Rank size);

}  // namespace hips::comm
