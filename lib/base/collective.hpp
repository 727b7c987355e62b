#pragma once

#include <cstdint>

namespace hips {

/// What a call does. The values travel between ranks.
enum class Collective : std::uint8_t {
  kAllreduce = 0,      ///< every rank gets the fold of all vectors
  kReduceScatter = 1,  ///< rank r gets section r of it
  kAllgather = 2,      ///< every rank gets the sections of all, in rank order
  kBcast = 3,          ///< every rank gets the root's vector
  kReduce = 4,         ///< the root gets the fold of all vectors
  kBarrier = 5,        ///< nobody leaves before everybody has come
};
inline constexpr int kNumCollectives = 6;

/// "allreduce", "reduce_scatter", ...: as the field calls them.
const char* to_string(Collective collective);

/// Does it fold, so that its operation matters?
constexpr bool folds(Collective collective) {
  return collective == Collective::kAllreduce || collective == Collective::kReduceScatter ||
         collective == Collective::kReduce;
}
/// Is one rank different from the others?
constexpr bool has_root(Collective collective) {
  return collective == Collective::kBcast || collective == Collective::kReduce;
}
/// Is the vector made of a section for each rank?
constexpr bool has_sections(Collective collective) {
  return collective == Collective::kReduceScatter || collective == Collective::kAllgather;
}

}  // namespace hips
