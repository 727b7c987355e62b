#pragma once

#include <cstdint>
#include <string>

namespace hips {

/// The collective operations. The values are sent between ranks.
enum class Collective : std::uint8_t {
  kAllreduce = 0,      ///< every rank gets the reduction of all vectors
  kReduceScatter = 1,  ///< rank r gets section r of the reduction
  kAllgather = 2,      ///< every rank gets all sections, in rank order
  kBcast = 3,          ///< every rank gets the root's vector
  kReduce = 4,         ///< the root gets the reduction of all vectors
  kBarrier = 5,        ///< no rank leaves before all ranks have entered
  kGather = 6,         ///< the root gets all sections, in rank order
  kScatter = 7,        ///< rank r gets section r of the root's vector
  kAlltoall = 8,       ///< rank r gets section r of every rank's vector, in rank order
};
inline constexpr int kNumCollectives = 9;

/// "allreduce", "reduce_scatter", ...
const char* to_string(Collective collective);

/// Whether the collective reduces, so that its ReduceOp matters.
constexpr bool reduces(Collective collective) {
  return collective == Collective::kAllreduce || collective == Collective::kReduceScatter ||
         collective == Collective::kReduce;
}
/// Whether each block has one contribution, so that data only moves: its plans are in place, and have copies for reductions.
constexpr bool only_moves(Collective collective) {
  return !reduces(collective) && collective != Collective::kBarrier;
}
/// Whether the collective has a root.
constexpr bool has_root(Collective collective) {
  return collective == Collective::kBcast || collective == Collective::kReduce ||
         collective == Collective::kGather || collective == Collective::kScatter;
}
/// Whether the vector consists of one section for each rank.
constexpr bool has_sections(Collective collective) {
  return collective == Collective::kReduceScatter || collective == Collective::kAllgather ||
         collective == Collective::kGather || collective == Collective::kScatter ||
         collective == Collective::kAlltoall;
}

/// Whether a rank gives a section to each rank.
constexpr bool has_pieces_for_all(Collective collective) {
  return collective == Collective::kReduceScatter || collective == Collective::kScatter ||
         collective == Collective::kAlltoall;
}

/// Bits of the root in what detail_of() gives for a call that has sections, too.
inline constexpr int kRootBits = 12;

/// Root and digest of the sections of a call, as far as it has them: what all ranks pass alike beside count, type and
/// operation. A call that has both keeps the last bits of each.
constexpr std::uint32_t detail_of(Collective collective, std::int32_t root, std::uint32_t digest) {
  if (!has_sections(collective)) return has_root(collective) ? static_cast<std::uint32_t>(root) : 0;
  if (!has_root(collective)) return digest;
  return digest << kRootBits | (static_cast<std::uint32_t>(root) & ((1U << kRootBits) - 1));
}
/// ", root 3", ", sections 1a2b3c4d", or both; "" where the collective has neither.
std::string detail_text(Collective collective, std::uint32_t detail);

}  // namespace hips
