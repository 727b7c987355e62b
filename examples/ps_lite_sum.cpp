// A program of ps-lite on HiPS: every worker pushes the same keys many times, and all find the sum.
//
//   HIPS_ROOT=127.0.0.1:18500 mpirun -n 4 ./ps_lite_sum

#include <cstdio>
#include <exception>
#include <vector>

#include "examples/ps_lite.hpp"

namespace {

int run() {
  constexpr std::size_t kKeys = 10'000, kLength = 8;
  constexpr int kTimes = 50;
  ps::Start({.num_keys = kKeys * 7, .row_length = kLength});
  int wrong = 0;
  {
    ps::KVWorker<float> kv(0, 0);
    std::vector<ps::Key> keys(kKeys);
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = 7 * i;
    std::vector<float> vals(kKeys * kLength);
    for (std::size_t i = 0; i < vals.size(); ++i) vals[i] = static_cast<float>(i % 100);

    std::vector<int> calls;
    for (int i = 1; i < kTimes; ++i) calls.push_back(kv.Push(keys, vals));
    for (const int call : calls) kv.Wait(call);
    std::vector<float> own;
    bool was_called = false;
    kv.Wait(kv.PushPull(keys, vals, &own, nullptr, 0, [&] { was_called = true; }));
    ps::Barrier();

    std::vector<float> sums;
    kv.Wait(kv.Pull(keys, &sums));
    for (std::size_t i = 0; i < vals.size(); ++i) {
      wrong += own[i] < vals[i] * kTimes ? 1 : 0;
      wrong += sums[i] == vals[i] * static_cast<float>(kTimes * ps::NumWorkers()) ? 0 : 1;
    }
    wrong += was_called ? 0 : 1;
    if (ps::MyRank() == 0)
      std::printf("%zu keys, %d workers: %s\n", keys.size(), ps::NumWorkers(),
                  wrong == 0 ? "exact" : "WRONG");
  }
  ps::Finalize();
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ps_lite_sum: %s\n", error.what());
    return 1;
  }
}
