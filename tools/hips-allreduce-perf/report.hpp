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

/// Writes the table and the JSON file of rank 0 in the format of nccl-tests, which users' scripts parse.
///
/// Errors   thrown: kSystem, the JSON file cannot be written.
class PerfReport {
 public:
  PerfReport(const PerfOptions& options, std::span<const char* const> args);

  /// `other`: the allreduce that HiPS is compared with, or null.
  void begin(const std::string& plan, const OtherAllreduce* other, const std::vector<RankProcess>& processes);
  void row(const Case& test, const Measured& out_of_place, const Measured& in_place,
           const std::optional<Compared>& compared = {}, const std::optional<Overlap>& overlap = {});
  void end();

  [[nodiscard]] std::int64_t num_wrong() const { return num_wrong_; }

 private:
  [[nodiscard]] bool compares() const { return options_.compare != PerfOptions::Other::kNone; }
  void print_settings(const std::string& plan, const std::string& other,
                      const std::vector<RankProcess>& processes) const;
  void add_config(const std::string& plan, const std::vector<RankProcess>& processes);
  void print_columns() const;
  void summarize_comparison();
  void write_json();

  const PerfOptions& options_;
  std::string other_;  ///< label of the other allreduce
  nlohmann::ordered_json json_;
  std::int64_t num_wrong_ = 0;
  double sum_bus_bw_ = 0;
  std::int64_t num_measured_ = 0;
  double sum_log_ratio_ = 0;  ///< over rows
  std::int64_t num_rows_ = 0, num_slower_ = 0;
};

/// A number in exactly `width` characters if possible: two decimals, then fewer, then an exponent.
std::string figure(double value, int width);

}  // namespace hips::perf
