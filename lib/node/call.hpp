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

/// A collective call of one rank. The team uses the buffers until the call has ended. The meaning of the
/// buffers, also in place, is that of comm::CallArgs.
struct Call {
  Collective collective = Collective::kAllreduce;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint64_t count = 0;  ///< elements of the vector, or of all sections
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Rank root = 0;                       ///< where has_root()
  const Sections* sections = nullptr;  ///< where has_sections(); valid until the call has ended
  /// User-visible signature, when this call is one phase of a larger call. Ranks compare it instead of the
  /// fields above.
  struct UserCall {
    Signature signature;
    std::uint64_t number = 0;  ///< number of the user's call, for errors
  };
  std::optional<UserCall> user_call{};

  /// The largest number of elements that a rank shows to the others.
  [[nodiscard]] std::uint64_t shown() const {
    const bool gathers = collective == Collective::kAllgather || collective == Collective::kGather;
    return gathers ? sections->longest() : count;
  }
};

/// The collective's part of a signature, and the element size of a bytes_type(); 0 for an allreduce of
/// numbers.
std::uint64_t detail_of(const Call& call);
inline constexpr int kTypeShift = 48, kOpShift = 56;  ///< bit positions in Signature::shape, above the count

inline Signature signature_of(const Call& call) {
  // Only the low bytes of type and operation are equal on all ranks; detail_of() adds the size of a
  // bytes_type().
  const bool plain = static_cast<std::uint32_t>(call.type) < std::uint32_t{kNumDataTypes} &&
                     call.collective == Collective::kAllreduce;
  return {call.count | std::uint64_t{static_cast<std::uint8_t>(call.type)} << kTypeShift |
              std::uint64_t{static_cast<std::uint8_t>(call.op)} << kOpShift,
          plain ? 0 : detail_of(call)};
}
/// "4 x float32, sum" for an allreduce, otherwise as in "bcast of 4 x float32, root 2".
std::string to_string(const Signature& signature);
/// The collective of a signature.
Collective collective_of(const Signature& signature);

}  // namespace hips::node
