#pragma once

#include <memory>
#include <utility>

#include <hips/plan.hpp>

namespace hips::plan {

/// A plan that is there already, read from a file, as a builder gives it. Keeps the programs of all ranks.
class FinishedBuilder final : public PlanBuilder {
 public:
  explicit FinishedBuilder(Plan plan) : plan_(std::move(plan)) {}
  [[nodiscard]] const PlanShape& shape() const override { return plan_.shape; }
  [[nodiscard]] Program program(Rank rank) const override {
    return plan_.programs[static_cast<std::size_t>(rank)];
  }

 private:
  Plan plan_;
};

}  // namespace hips::plan
