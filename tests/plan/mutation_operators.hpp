#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <hips/plan.hpp>

namespace hips::tests {

/// Breaks a plan in one place, like an error in a builder or in an edited file.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  /// The kinds of change, by name.
  static const std::vector<std::string>& kinds();

  /// Makes one change of a kind. False if this kind does not apply to the step that was drawn.
  bool mutate(Plan& plan, std::size_t kind);

  /// The changed step: "rank 3, step 7".
  [[nodiscard]] const std::string& where() const { return where_; }

 private:
  std::int64_t draw(std::int64_t bound) {
    return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(random_);
  }
  Rank other_rank(const Plan& plan, Rank rank);
  /// The step of the peer that sends or receives a message of this step, if it has one.
  Step* other_end(Plan& plan, Rank rank, const Step& step);
  BufferRange& any_range(Program& program, Step& step);

  std::mt19937_64 random_;
  std::string where_;
};

}  // namespace hips::tests
