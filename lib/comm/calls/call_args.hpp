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
///                    result. In place where they are equal: the result then stands at the beginning.
///   allgather        `in`: this rank's section; `out`: all sections, `count` elements together. In place
///                    where `in` is where this rank's section belongs in `out`.
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
  std::int32_t priority = 0;                   ///< lower goes first where calls share a NIC
  Rank root = 0;                               ///< of bcast and reduce
  std::shared_ptr<const Sections> sections{};  ///< of reduce_scatter and allgather

  /// What else, beside collective, count, type and op, all ranks must pass alike.
  [[nodiscard]] std::uint32_t detail() const {
    if (has_sections(collective)) return sections->digest();
    return has_root(collective) ? static_cast<std::uint32_t>(root) : 0;
  }
};

/// Numbers, or bytes_type() of a size that may be.
constexpr bool is_type(DataType type) {
  return static_cast<std::uint32_t>(type) < std::uint32_t{kNumDataTypes} || is_bytes(type);
}

/// Is it an allreduce to which nothing is to be objected? Inline and without words, as a small call is short.
/// False of functions of the program and what only they fold, which take the longer way.
inline bool plainly_right(const CallArgs& args) {
  if (args.collective != Collective::kAllreduce) return false;
  const auto type = static_cast<std::uint32_t>(args.type), op = static_cast<std::uint32_t>(args.op);
  if (type >= std::uint32_t{kNumDataTypes} || op >= std::uint32_t{kNumReduceOps} ||
      !applies_to(args.op, args.type))
    return false;
  if (args.in == nullptr || args.out == nullptr) return false;
  if (args.count > static_cast<std::uint64_t>(PTRDIFF_MAX) / sizeof(std::uint64_t)) return false;
  const std::uint64_t bytes = args.count * size_of(args.type);
  // How far one is above the other, around the end of memory where it is below.
  const std::uint64_t apart =
      reinterpret_cast<std::uintptr_t>(args.out) - reinterpret_cast<std::uintptr_t>(args.in);
  return apart == 0 || (apart >= bytes && std::uint64_t{0} - apart >= bytes);
}

/// Are these allreduces the same in everything? Then what was said of one, and prepared for it, holds for the
/// other. False of other collectives, and of functions of the program, which may have gone meanwhile.
inline bool same_allreduce(const CallArgs& a, const CallArgs& b) {
  return a.collective == Collective::kAllreduce && b.collective == Collective::kAllreduce && a.in == b.in &&
         a.out == b.out && a.count == b.count && a.type == b.type && a.op == b.op &&
         a.priority == b.priority && !is_user(a.op);
}

/// Status of a wrong argument of one of `size` ranks, or success.
Status check_arguments(const CallArgs& args, Rank rank, Rank size);

}  // namespace hips::comm
