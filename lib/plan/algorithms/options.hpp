#pragma once

#include <string_view>

#include <hips/plan.hpp>

#include "lib/plan/plan_builder.hpp"

namespace hips::plan {

/// Which options of a request an algorithm takes.
struct TakesOptions {
  bool patterns = false, leaders = false, rings = false;
};

/// Errors   kInvalidArgument: the request has an option that `algorithm` does not take.
Status reject_foreign_options(std::string_view algorithm, const PlanRequest& request, TakesOptions takes);

}  // namespace hips::plan
