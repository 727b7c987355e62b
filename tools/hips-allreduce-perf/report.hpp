#pragma once

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/hips-allreduce-perf/group.hpp"
#include "tools/hips-allreduce-perf/measure.hpp"
#include "tools/hips-allreduce-perf/options.hpp"

namespace hips::perf {

/// Writes rank 0's table and JSON file in the format of nccl-tests, which people's scripts read.
///
/// Errors   thrown: kSystem, the JSON file cannot be written.
class Report {
 public:
  Report(const Options& options, std::span<const char* const> args);

  /// `other`: what HiPS is held against, or null.
  void begin(const std::string& plan, const Contender* other, const std::vector<Process>& processes);
  void row(const Case& test, const Measured& out_of_place, const Measured& in_place,
           const std::optional<Compared>& compared = {}, const std::optional<Overlap>& overlap = {});
  void end();

  [[nodiscard]] std::int64_t num_wrong() const { return num_wrong_; }

 private:
  void summarize_comparison();
  void write_json();

  const Options& options_;
  std::string other_;  ///< the contender's label
  nlohmann::ordered_json json_;
  std::int64_t num_wrong_ = 0;
  double sum_bus_bw_ = 0;
  std::int64_t num_measured_ = 0;
  double sum_log_ratio_ = 0;  ///< over rows
  std::int64_t num_rows_ = 0, num_slower_ = 0;
};

/// A figure in exactly `width` characters where it can be: two decimals, then fewer, then an exponent.
std::string figure(double value, int width);

}  // namespace hips::perf
