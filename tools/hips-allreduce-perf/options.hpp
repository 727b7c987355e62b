#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <hips/types.hpp>

#include "lib/base/result.hpp"

namespace hips::perf {

/// How the times of the ranks are combined; the values of -a.
enum class Average : std::int32_t { kRank0 = 0, kAverage = 1, kMin = 2, kMax = 3 };

/// The command line. Names and defaults are those of nccl-tests if it has them.
struct PerfOptions {
  std::uint64_t min_bytes = 32u << 20;
  std::uint64_t max_bytes = 32u << 20;
  std::uint64_t step_bytes = 1u << 20;
  std::uint64_t step_factor = 1;  ///< above 1: the ratio of consecutive sizes, instead of `step_bytes`
  std::int32_t iters = 20;
  std::int32_t warmup_iters = 1;
  std::int32_t check = 1;  ///< 0: N/A under #wrong
  std::vector<DataType> types = {DataType::kFloat32};
  std::vector<ReduceOp> ops = {ReduceOp::kSum};
  Average average = Average::kAverage;
  bool registered = false;  ///< allocate buffers with hips_mem_alloc()
  bool each_call = false;   ///< also time every call individually
  /// The allreduce that is timed alternately with that of HiPS.
  enum class Other : std::int32_t { kNone, kMpi, kInterposer, kNonBlocking, kPersistent, kOrdinary };
  Other compare = Other::kNone;
  bool bound = false;        ///< also time a copy of as many bytes, a lower bound within a node
  std::int32_t rounds = 11;  ///< of comparisons, tuning and fitting
  bool overlap = false;      ///< time non-blocking calls that overlap with computation
  std::int32_t tests = 100;  ///< calls of hips_test() during that computation
  std::string json_file;
  std::string tune_file;                     ///< selection table to write; empty: an ordinary run
  bool fit = false;                          ///< compute the cost model's constants from the times
  std::string topology, algorithm, pattern;  ///< empty: from the environment, else the default

  /// Each type with each operation that applies to it; never empty after parsing.
  [[nodiscard]] std::vector<std::pair<DataType, ReduceOp>> reductions() const;

  /// The sizes in bytes for elements of `type`, ascending, rounded down to whole elements like in nccl-tests.
  [[nodiscard]] std::vector<std::uint64_t> sizes(DataType type) const;
  /// The same without duplicates, which occur when several sizes round to the same number of elements.
  [[nodiscard]] std::vector<std::uint64_t> distinct_sizes(DataType type) const;
};

/// The result of parsing.
struct ParsedPerfOptions {
  PerfOptions options;
  bool stop = false;    ///< for --help, --version and errors
  int exit_status = 0;  ///< if `stop`
  std::string message;  ///< text to print if `stop`: on stdout for status 0, else on stderr
};

/// Parses the command line. Pure.
ParsedPerfOptions parse_options(int argc, const char* const* argv);

/// The names of types in nccl-tests: "float" for kFloat32, "half" for kFloat16, ... -d also accepts those of
/// to_string().
const char* type_name(DataType type);

}  // namespace hips::perf
