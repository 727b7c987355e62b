#pragma once

#include <cstddef>
#include <cstdint>

#include <hips/types.hpp>

#include "lib/ps/rank_places.hpp"

namespace hips::ps {

/// How a model is divided. The same on all ranks.
struct Shards {
  std::uint64_t count = 0;  ///< elements of the model
  DataType type = DataType::kFloat32;
  std::uint16_t num = 1;  ///< shard s is on node s; at most as many as nodes

  /// The first element of a shard; of shard `num`, the end.
  [[nodiscard]] std::uint64_t begin(std::size_t shard) const {
    const std::uint64_t even = count / num, longer = count % num;
    return shard * even + (shard < longer ? shard : longer);
  }
  [[nodiscard]] std::uint64_t length(std::size_t shard) const { return begin(shard + 1) - begin(shard); }
  [[nodiscard]] std::uint64_t bytes(std::size_t shard) const { return length(shard) * size_of(type); }
  [[nodiscard]] std::uint64_t begin_byte(std::size_t shard) const { return begin(shard) * size_of(type); }
};

}  // namespace hips::ps
