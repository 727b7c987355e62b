#include "tools/hips-ps-perf/measurements.hpp"

#include <algorithm>
#include <utility>

namespace hips::ps_perf {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void Measurements::add(const Kind& kind, double us_per_call, double keys_per_s) {
  if (!rounds_.contains(kind)) order_.push_back(kind);
  rounds_[kind].us_per_call.push_back(us_per_call);
  rounds_[kind].keys_per_s.push_back(keys_per_s);
}

std::vector<Line> Measurements::take(std::optional<double> ping_pong_us) const {
  std::vector<Line> lines;
  for (const Kind& kind : order_) {
    const auto& [operation, rows, keys, row_length, outstanding] = kind;
    Line line{.operation = operation,
              .rows = rows,
              .keys = keys,
              .row_length = row_length,
              .outstanding = outstanding};
    line.us_per_call = median(rounds_.at(kind).us_per_call);
    line.keys_per_s = median(rounds_.at(kind).keys_per_s);
    line.mb_per_s = line.keys_per_s * static_cast<double>(row_length * sizeof(float)) / 1e6;
    if (ping_pong_us && outstanding == 1 && rows == "remote")
      line.in_ping_pongs = line.us_per_call / *ping_pong_us;
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace hips::ps_perf
