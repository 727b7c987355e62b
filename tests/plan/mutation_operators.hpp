#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <hips/plan.hpp>

namespace hips::tests {

/// Breaks a plan in one place, as a slip in a builder or an edited file would.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  /// The kinds of change, by name.
  static const std::vector<std::string>& kinds();

  /// Changes `plan` by one change of a kind; false where the step it drew has nothing of that kind to change.
  bool mutate(Plan& plan, std::size_t kind);

  /// Which step was changed: "rank 3, step 7".
  [[nodiscard]] const std::string& where() const { return where_; }

 private:
  std::int64_t draw(std::int64_t bound) {
    return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(random_);
  }
  Rank other_rank(const Plan& plan, Rank rank);
  /// The step of the peer that sends or takes a message of this step, if it has one.
  Step* other_end(Plan& plan, Rank rank, const Step& step);
  BufferRange& any_range(Program& program, Step& step);

  std::mt19937_64 random_;
  std::string where_;
};

}  // namespace hips::tests
