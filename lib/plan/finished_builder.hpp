#pragma once

#include <memory>
#include <utility>

#include <hips/plan.hpp>

#include "lib/plan/plan_builder.hpp"

namespace hips::plan {

/// The builder of a plan that was read from a file. Keeps the programs of all ranks.
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
