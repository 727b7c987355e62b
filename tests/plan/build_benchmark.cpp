// Time to make a builder and one rank's program, from 16 to a million servers. `per_digit_ns` is the time
// over K * sum of radices: it stays constant while servers grow by five orders of magnitude.

#include <numeric>

#include <benchmark/benchmark.h>

#include <hips/topology.hpp>

#include "lib/plan/builder.hpp"

namespace {

void build_one_rank(benchmark::State& state, const char* spec) {
  const hips::Topology topology = hips::parse_topology(spec);
  std::size_t steps = 0;
  for (auto _ : state) {
    const auto builder = hips::value_or_throw(hips::plan::make_builder(topology, {.algorithm = "hips"}));
    const hips::Program program = builder->program(topology.num_ranks() / 3);
    steps = program.steps.size();
    benchmark::DoNotOptimize(program.steps.data());
  }
  const auto sum_of_radices =
      std::accumulate(topology.levels.begin(), topology.levels.end(), std::int64_t{0},
                      [](std::int64_t sum, const hips::Level& level) { return sum + level.radix; });
  const auto size = static_cast<double>(std::ssize(topology.levels) * sum_of_radices);
  state.counters["servers"] = topology.num_servers();
  state.counters["steps"] = static_cast<double>(steps);
  state.counters["K*radices"] = size;
  state.counters["steps_per_digit"] = static_cast<double>(steps) / size;
  state.counters["per_digit"] = benchmark::Counter(size * static_cast<double>(state.iterations()),
                                                   benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

BENCHMARK_CAPTURE(build_one_rank, bcube_4_1, "bcube:4,1");
BENCHMARK_CAPTURE(build_one_rank, bcube_4_2, "bcube:4,2");
BENCHMARK_CAPTURE(build_one_rank, bcube_16_1, "bcube:16,1");
BENCHMARK_CAPTURE(build_one_rank, bcube_10_2, "bcube:10,2");
BENCHMARK_CAPTURE(build_one_rank, bcube_32_1, "bcube:32,1");
BENCHMARK_CAPTURE(build_one_rank, bcube_10_3, "bcube:10,3");
BENCHMARK_CAPTURE(build_one_rank, bcube_10_4, "bcube:10,4");
BENCHMARK_CAPTURE(build_one_rank, bcube_10_5, "bcube:10,5");
BENCHMARK_CAPTURE(build_one_rank, bcube_100_2, "bcube:100,2");
BENCHMARK_CAPTURE(build_one_rank, bcube_1000_1, "bcube:1000,1");

}  // namespace

BENCHMARK_MAIN();
