#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hips::ps_perf {

struct PsPerfOptions {
  std::uint64_t num_keys = 100'000;
  std::vector<std::size_t> row_lengths{1, 64};  ///< floats
  std::size_t keys_per_call = 100;              ///< of the rows with several keys
  std::size_t outstanding = 64;                 ///< calls of the rows in flight
  int iterations = 2000;
  int rounds = 3;
  double zipf = 0;                 ///< exponent of the law by which steps draw keys; 0: no steps
  std::uint64_t model_floats = 0;  ///< of a model whose updates are timed; 0: none
  std::uint32_t num_shards = 0;    ///< 0: one on each node
  int num_workers = 0;             ///< the last ranks; 0: all
  std::uint64_t delay_max = UINT64_MAX;
  double seconds = 2, compute_ms = 0;
  double replica_lag = -1;        ///< updates that replicas of the model may lack; negative: there are none
  bool compares_classic = false;  ///< also time a table whose rows stay where a hash puts them
  std::string json_file;          ///< empty: none
};

/// Options, or what to print instead and the exit status with which to end.
struct ParsedPsPerf {
  PsPerfOptions options;
  std::optional<std::string> message;
  int exit_status = 0;
};

ParsedPsPerf parse_options(int argc, const char* const* argv);

}  // namespace hips::ps_perf
