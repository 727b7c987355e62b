// Bytes/s of each kernel - type x operation x number of inputs, inside and outside the cache - and their
// share of the memory bandwidth of plain loops. The reference is the faster of memcpy() and a triad, a = b +
// s * c, of the same size. Bytes read and written count; a kernel at 100 % is as fast as the memory.
//
//   kernels_benchmark --benchmark_filter='sum/float32'

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "lib/reduce/reduce.hpp"

namespace {

using hips::DataType;
using hips::ReduceOp;

/// Total size of the buffers of a call: they fit a core's own cache, or no cache.
constexpr std::size_t kCachedBytes = std::size_t{256} << 10, kStreamedBytes = std::size_t{192} << 20;

/// Aligned to pages, as large vectors are, and filled with ordinary numbers: 0x3c3c is about 1 as float16,
/// and its products avoid slow subnormals in every type. The buffers start at different cache lines of a
/// page; otherwise all streams would share a set of the cache.
std::byte* memory(bool cached) {
  const auto make = [](std::size_t bytes) {
    auto* data = static_cast<std::byte*>(std::aligned_alloc(4096, bytes + (std::size_t{1} << 20)));
    std::memset(data, 0x3c, bytes + (std::size_t{1} << 20));
    return data;
  };
  static std::byte* const small = make(kCachedBytes);
  static std::byte* const large = make(kStreamedBytes);
  return cached ? small : large;
}

struct Buffers {
  std::vector<const std::byte*> in;
  std::byte* out = nullptr;
  std::size_t bytes = 0;  ///< of each
};

Buffers buffers(bool cached, std::size_t num_inputs) {
  const std::size_t total = cached ? kCachedBytes : kStreamedBytes;
  constexpr std::size_t kSkew = 5 * 64;
  Buffers made;
  made.bytes = total / (num_inputs + 1) / 4096 * 4096;
  std::byte* at = memory(cached);
  made.out = at;
  for (std::size_t i = 0; i < num_inputs; ++i) made.in.push_back(at += made.bytes + kSkew);
  return made;
}

template <typename Body>
double bytes_per_second(std::size_t bytes_of_call, Body body) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  for (int round = 0; round < 7; ++round) {
    std::size_t calls = 0;
    const auto begin = Clock::now();
    std::chrono::duration<double> time{};
    do {
      body();
      ++calls;
      time = Clock::now() - begin;
    } while (time.count() < 0.02);
    best = std::max(best, static_cast<double>(calls * bytes_of_call) / time.count());
  }
  return best;
}

void triad(double* __restrict a, const double* __restrict b, const double* __restrict c, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) a[i] = b[i] + 3.0 * c[i];
}

struct Measure {
  double copy = 0, triad = 0;
  [[nodiscard]] double best() const { return std::max(copy, triad); }
};

const Measure& measure(bool cached) {
  const auto take = [](bool in_cache) {
    Measure taken;
    const Buffers one = buffers(in_cache, 1), two = buffers(in_cache, 2);
    taken.copy = bytes_per_second(2 * one.bytes, [&] {
      std::memcpy(one.out, one.in[0], one.bytes);
      benchmark::ClobberMemory();
    });
    taken.triad = bytes_per_second(3 * two.bytes, [&] {
      triad(reinterpret_cast<double*>(two.out), reinterpret_cast<const double*>(two.in[0]),
            reinterpret_cast<const double*>(two.in[1]), two.bytes / sizeof(double));
      benchmark::ClobberMemory();
    });
    return taken;
  };
  static const Measure in_cache = take(true), in_memory = take(false);
  return cached ? in_cache : in_memory;
}

void run_kernel(benchmark::State& state, DataType type, ReduceOp op, std::size_t num_inputs, bool cached) {
  const Buffers made = buffers(cached, num_inputs);
  const std::size_t elements = made.bytes / hips::size_of(type);
  // With streaming stores, which callers use for the results of large calls.
  const auto fold = cached ? hips::reduce::fold : hips::reduce::fold_streaming;
  const double best = measure(cached).best();
  const auto begin = std::chrono::steady_clock::now();
  for (auto _ : state) {
    fold(type, op, made.out, made.in, elements);
    benchmark::ClobberMemory();
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  const double bytes =
      static_cast<double>(state.iterations()) * static_cast<double>((num_inputs + 1) * made.bytes);
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
  state.counters["share_%"] = bytes / time.count() / best * 100;
}

void register_all() {
  for (int t = 0; t < hips::kNumDataTypes; ++t) {
    for (int o = 0; o < hips::kNumReduceOps; ++o) {
      const auto type = static_cast<DataType>(t);
      const auto op = static_cast<ReduceOp>(o);
      if (!hips::applies_to(op, type)) continue;
      for (const bool cached : {true, false}) {
        for (const std::size_t num_inputs : {2U, 3U, 4U, 9U}) {
          const std::string name = std::string(to_string(op)) + "/" + to_string(type) + "/" +
                                   std::to_string(num_inputs) + (cached ? "/cached" : "/memory");
          benchmark::RegisterBenchmark(name.c_str(), run_kernel, type, op, num_inputs, cached)
              ->MinTime(0.03)
              ->UseRealTime();
        }
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  for (const bool cached : {true, false})
    std::printf("%s: memcpy %.1f GB/s, triad %.1f GB/s\n", cached ? "cached" : "memory",
                measure(cached).copy / 1e9, measure(cached).triad / 1e9);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
