#include "lib/cost/fan_in.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace hips::cost {

std::int64_t fan_in(const Program& program) {
  std::int64_t most = 0;
  std::map<std::tuple<Rail, std::int32_t, std::int32_t, std::int32_t>, std::int64_t> senders;
  for (const Step& step : program.steps) {
    for (const Source& source : program.sources_of(step)) {
      if (source.kind != Source::Kind::kMessage || source.rail == kNoRail) continue;
      most = std::max(most, ++senders[{source.rail, step.lane, step.stage, step.round}]);
    }
  }
  return most;
}

}  // namespace hips::cost
