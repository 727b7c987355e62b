#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <hips/status.hpp>
#include <hips/topology.hpp>
#include <hips/types.hpp>

#include "lib/base/collective.hpp"
#include "lib/base/sections.hpp"

namespace hips::comm {

/// What a rank passes to a collective call.
///
///   allreduce        `in`: the vector of `count` elements; `out`: the result. In place if they are equal.
///   reduce_scatter   `in`: all sections, `count` elements together; `out`: this rank's section of the
///                    result. In place if they are equal: the result then is at the beginning.
///   allgather        `in`: this rank's section; `out`: all sections, `count` elements together. In place
///                    if `in` is the position of this rank's section in `out`.
///   gather           as allgather; `out` is ignored on all ranks but the root.
///   scatter          `in`: all sections, `count` elements together, ignored on all ranks but the root; `out`: this rank's
///                    section. The root may pass the position of its section in `in`.
///   alltoall         `in`: a section for each rank; `out`: the section of each rank for this one; `count` elements each.
///   bcast            `out`: the vector of `count` elements; `in` is ignored.
///   reduce           as allreduce; `out` is ignored on all ranks but the root.
///   barrier          no buffers.
struct CallArgs {
  Collective collective = Collective::kAllreduce;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint64_t count = 0;
  DataType type = DataType::kUint8;
  ReduceOp op = ReduceOp::kSum;
  std::int32_t priority = 0;                   ///< lower goes first when calls share a NIC
  Rank root = 0;                               ///< of bcast, reduce, gather and scatter
  std::shared_ptr<const Sections> sections{};  ///< where has_sections()

  /// The part of the signature beside collective, count, type and op: the same on all ranks.
  [[nodiscard]] std::uint32_t detail() const {
    return detail_of(collective, root, has_sections(collective) ? sections->digest() : 0);
  }

  /// Sections are equal if they are the same object.
  friend bool operator==(const CallArgs&, const CallArgs&) = default;
};

/// True for the number types and for bytes_type() of a supported size.
constexpr bool is_type(DataType type) {
  return static_cast<std::uint32_t>(type) < std::uint32_t{kNumDataTypes} || is_bytes(type);
}

/// The memory that a valid call reads and writes on a rank. An in-place call has an empty input.
struct CallMemory {
  std::span<const std::byte> in, out;
};
CallMemory memory_of(const CallArgs& args, Rank rank);

/// True if the arguments of `rank` of `size` ranks are valid. Costs some nanoseconds.
bool are_valid(const CallArgs& args, Rank rank, Rank size);
/// The first invalid one as kInvalidArgument, or success.
Status check_arguments(const CallArgs& args, Rank rank, Rank size);

}  // namespace hips::comm
