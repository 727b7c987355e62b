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

/// True for an allreduce with valid arguments. Inline and without a message: per-call overhead dominates small
/// calls. User functions and types that only they reduce take the slow path through check_arguments(): false.
inline bool is_valid_allreduce(const CallArgs& args) {
  if (args.collective != Collective::kAllreduce) return false;
  const auto type = static_cast<std::uint32_t>(args.type), op = static_cast<std::uint32_t>(args.op);
  if (type >= std::uint32_t{kNumDataTypes} || op >= std::uint32_t{kNumReduceOps} ||
      !applies_to(args.op, args.type))
    return false;
  if (args.in == nullptr || args.out == nullptr) return false;
  if (args.count > static_cast<std::uint64_t>(PTRDIFF_MAX) / sizeof(std::uint64_t)) return false;
  const std::uint64_t bytes = args.count * size_of(args.type);
  // Distance from `in` to `out`, modulo 2^64 if `out` is below.
  const std::uint64_t apart =
      reinterpret_cast<std::uintptr_t>(args.out) - reinterpret_cast<std::uintptr_t>(args.in);
  return apart == 0 || (apart >= bytes && std::uint64_t{0} - apart >= bytes);
}

/// The memory that a valid call reads and writes on a rank. An in-place call has an empty input.
struct CallMemory {
  std::span<const std::byte> in, out;
};
CallMemory memory_of(const CallArgs& args, Rank rank);

/// Returns the first invalid argument of `rank` of `size` ranks as kInvalidArgument, or success.
Status check_arguments(const CallArgs& args, Rank rank, Rank size);

}  // namespace hips::comm
