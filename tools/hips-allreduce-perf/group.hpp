#pragma once

#include <hips/hips.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <hips/types.hpp>

#include "tools/hips-allreduce-perf/launch.hpp"
#include "tools/hips-allreduce-perf/options.hpp"

namespace hips::perf {

/// The process of a rank.
struct RankProcess {
  std::int32_t pid = 0;
  std::string host;  ///< host name
};

/// Throws the error of a status, if it is one.
void expect_ok(hips_status_t status);

/// The communicator under test; failures become hips::Error.
class PerfGroup {
 public:
  PerfGroup(PerfLaunch& launch, const PerfOptions& options);
  ~PerfGroup();
  PerfGroup(const PerfGroup&) = delete;
  PerfGroup& operator=(const PerfGroup&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] std::string describe() const { return hips_comm_describe(comm_); }

  void allreduce(const void* in, void* out, std::uint64_t count, DataType type, ReduceOp op);

  /// Complete the request with hips_wait() or hips_test().
  [[nodiscard]] hips_request_t iallreduce(const void* in, void* out, std::uint64_t count, DataType type,
                                          ReduceOp op);
  [[nodiscard]] hips_request_t allreduce_init(const void* in, void* out, std::uint64_t count, DataType type,
                                              ReduceOp op);

  // The other collectives that a benchmark needs are allreduces, too.
  void barrier();
  [[nodiscard]] double combine(double value, ReduceOp op);
  void combine(std::span<double> values, ReduceOp op);
  [[nodiscard]] std::int64_t sum(std::int64_t value);
  /// The processes of all ranks.
  [[nodiscard]] std::vector<RankProcess> processes();

 private:
  hips_comm_t comm_ = nullptr;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace hips::perf
