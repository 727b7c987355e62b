#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <hips/topology.hpp>
#include <hips/types.hpp>

#include "lib/base/collective.hpp"
#include "lib/base/sections.hpp"
#include "lib/node/shared_block.hpp"

namespace hips::node {

/// A collective call of one rank: the buffers belong to the team until the call has ended. Which buffer holds
/// what, and what "in place" means, is as in comm::CallArgs.
struct Call {
  Collective collective = Collective::kAllreduce;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint64_t count = 0;  ///< elements of the vector, or of all sections
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Rank root = 0;                       ///< of bcast and reduce
  const Sections* sections = nullptr;  ///< of reduce_scatter and allgather; lives until the call has ended
  /// What ranks compare, where that is not the above: the program called something else, of which this is a
  /// part.
  struct Told {
    Signature signature;
    std::uint64_t number = 0;  ///< of the program's call, for errors
  };
  std::optional<Told> told{};

  /// Elements that a rank shows the others at most.
  [[nodiscard]] std::uint64_t shown() const {
    return collective == Collective::kAllgather ? sections->longest() : count;
  }
};

/// What the collective itself adds to a signature, and the size of elements that are bytes_type(); 0 for an
/// allreduce of numbers.
std::uint64_t detail_of(const Call& call);
inline constexpr int kTypeShift = 48, kOpShift = 56;  ///< in Signature::shape, above the count

inline Signature signature_of(const Call& call) {
  // Of the type and of the operation the low byte: all that is the same on all ranks, but for that size.
  const bool plain = static_cast<std::uint32_t>(call.type) < std::uint32_t{kNumDataTypes} &&
                     call.collective == Collective::kAllreduce;
  return {call.count | std::uint64_t{static_cast<std::uint8_t>(call.type)} << kTypeShift |
              std::uint64_t{static_cast<std::uint8_t>(call.op)} << kOpShift,
          plain ? 0 : detail_of(call)};
}
/// "4 x float32, sum" of an allreduce, "bcast of 4 x float32, root 2"
std::string to_string(const Signature& signature);
/// Of which collective?
Collective collective_of(const Signature& signature);

}  // namespace hips::node
