#pragma once

#include <cstdint>

namespace hips {

/// The collective operations. The values are sent between ranks.
enum class Collective : std::uint8_t {
  kAllreduce = 0,      ///< every rank gets the reduction of all vectors
  kReduceScatter = 1,  ///< rank r gets section r of the reduction
  kAllgather = 2,      ///< every rank gets all sections, in rank order
  kBcast = 3,          ///< every rank gets the root's vector
  kReduce = 4,         ///< the root gets the reduction of all vectors
  kBarrier = 5,        ///< no rank leaves before all ranks have entered
};
inline constexpr int kNumCollectives = 6;

/// "allreduce", "reduce_scatter", ...
const char* to_string(Collective collective);

/// Whether the collective reduces, so that its ReduceOp matters.
constexpr bool reduces(Collective collective) {
  return collective == Collective::kAllreduce || collective == Collective::kReduceScatter ||
         collective == Collective::kReduce;
}
/// Whether the collective has a root.
constexpr bool has_root(Collective collective) {
  return collective == Collective::kBcast || collective == Collective::kReduce;
}
/// Whether the vector consists of one section for each rank.
constexpr bool has_sections(Collective collective) {
  return collective == Collective::kReduceScatter || collective == Collective::kAllgather;
}

}  // namespace hips
