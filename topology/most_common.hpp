#pragma once

#include <cstddef>
#include <map>

namespace hips::topology {

/// Counts values, and tells the one that occurs most often: of several the largest.
template <typename Value>
class MostCommon {
 public:
  void add(const Value& value) { ++counts_[value]; }
  [[nodiscard]] Value value_or(const Value& otherwise) const {
    const Value* best = &otherwise;
    std::size_t most = 0;
    for (const auto& [value, count] : counts_) {
      if (count < most) continue;
      best = &value;
      most = count;
    }
    return *best;
  }

 private:
  std::map<Value, std::size_t> counts_;
};

}  // namespace hips::topology
