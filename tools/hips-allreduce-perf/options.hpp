#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <hips/types.hpp>

#include "lib/base/result.hpp"

namespace hips::perf {

/// How the times of the ranks become the time that is printed; the values of -a.
enum class Average : std::int32_t { kRank0 = 0, kAverage = 1, kMin = 2, kMax = 3 };

/// The command line; names and defaults of nccl-tests where it has them.
struct Options {
  std::uint64_t min_bytes = 32u << 20;
  std::uint64_t max_bytes = 32u << 20;
  std::uint64_t step_bytes = 1u << 20;
  std::uint64_t step_factor = 1;  ///< above 1: sizes are multiplied instead of added to
  std::int32_t iters = 20;
  std::int32_t warmup_iters = 1;
  std::int32_t check = 1;  ///< 0: N/A under #wrong
  std::vector<DataType> types = {DataType::kFloat32};
  std::vector<ReduceOp> ops = {ReduceOp::kSum};
  Average average = Average::kAverage;
  bool registered = false;  ///< buffers in memory of hips_mem_alloc()
  bool each_call = false;   ///< time every call by itself, too
  /// What is timed in turns with our allreduce.
  enum class Other : std::int32_t { kNone, kMpi, kInterposer, kNonBlocking, kPersistent, kOrdinary };
  Other compare = Other::kNone;
  bool bound = false;        ///< and copying as many bytes, which no allreduce of this host can beat
  std::int32_t rounds = 11;  ///< turns for those two
  bool overlap = false;      ///< time non-blocking calls behind computation
  std::int32_t tests = 100;  ///< looks at the call meanwhile
  std::string json_file;
  std::string tune_file;                     ///< a selection table to be made; empty: an ordinary run
  bool fit = false;                          ///< make the cost model's constants of the times
  std::string topology, algorithm, pattern;  ///< empty: from the environment, else the default

  /// Each type with each operation that applies to it; never empty after parsing.
  [[nodiscard]] std::vector<std::pair<DataType, ReduceOp>> reductions() const;

  /// The sizes in bytes for elements of `type`, ascending; each holds whole elements, as nccl-tests rounds.
  [[nodiscard]] std::vector<std::uint64_t> sizes(DataType type) const;
  /// Each of them once: several may hold as many elements of a large type.
  [[nodiscard]] std::vector<std::uint64_t> distinct_sizes(DataType type) const;
};

/// What main() does after parsing.
struct Parsed {
  Options options;
  bool stop = false;    ///< --help, --version or a mistake
  int exit_status = 0;  ///< where it stops
  std::string message;  ///< what to print then: on stdout for status 0, else on stderr
};

/// Reads the command line. Pure.
Parsed parse_options(int argc, const char* const* argv);

/// nccl-tests' names of types: "float" for kFloat32, "half" for kFloat16, ...; -d takes those of to_string(),
/// too.
const char* type_name(DataType type);

}  // namespace hips::perf
