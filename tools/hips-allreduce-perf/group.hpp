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

/// What is known of a rank's process.
struct Process {
  std::int32_t pid = 0;
  std::string host;
};

/// Throws what a call's status says.
void expect_ok(hips_status_t status);

/// The communicator under test; failures become hips::Error.
class Group {
 public:
  Group(Launch& launch, const Options& options);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] std::string describe() const { return hips_comm_describe(comm_); }

  void allreduce(const void* in, void* out, std::uint64_t count, DataType type, ReduceOp op);

  /// To be ended by hips_wait() or hips_test().
  [[nodiscard]] hips_request_t iallreduce(const void* in, void* out, std::uint64_t count, DataType type,
                                          ReduceOp op);
  [[nodiscard]] hips_request_t allreduce_init(const void* in, void* out, std::uint64_t count, DataType type,
                                              ReduceOp op);

  /// Everything else that a benchmark needs of its ranks is an allreduce, too.
  void barrier();
  [[nodiscard]] double combine(double value, ReduceOp op);
  void combine(std::span<double> values, ReduceOp op);
  [[nodiscard]] std::int64_t sum(std::int64_t value);
  /// By rank.
  [[nodiscard]] std::vector<Process> processes();

 private:
  hips_comm_t comm_ = nullptr;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace hips::perf
