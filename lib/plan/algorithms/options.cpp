#include "lib/plan/algorithms/options.hpp"

#include <fmt/format.h>

namespace hips::plan {

Status reject_foreign_options(std::string_view algorithm, const PlanRequest& request, TakesOptions takes) {
  std::string_view option, taker;
  if (!takes.patterns && !request.patterns.empty()) {
    option = "pattern per level";
    taker = "hips";
  } else if (!takes.leaders && request.num_leaders != 0) {
    option = "number of leaders";
    taker = "flat-ps";
  } else if (!takes.rings && request.num_rings != 0) {
    option = "number of rings";
    taker = "flat-ring";
  }
  if (option.empty()) return Status::success();
  return Status::error(Code::kInvalidArgument, fmt::format("plan: {} takes no {}; leave it out or choose {}",
                                                           algorithm, option, taker));
}

}  // namespace hips::plan
