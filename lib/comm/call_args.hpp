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
///   allreduce        `in`: the vector of `count` elements; `out`: the result. In place where they are equal.
///   reduce_scatter   `in`: all sections, `count` elements together; `out`: this rank's section of the
///   result. In
///                    place where they are equal: the result then stands at the beginning.
///   allgather        `in`: this rank's section; `out`: all sections, `count` elements together. In place
///   where
///                    `in` is where this rank's section belongs in `out`.
///   bcast            `out`: the vector of `count` elements; `in` is not looked at.
///   reduce           as allreduce; elsewhere than on the root `out` is not looked at.
///   barrier          nothing.
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
