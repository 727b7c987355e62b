// The n-th allocation of one rank fails while it makes and uses communicators, for n = 1, 2, ... until none does. The call ends
// on all ranks, and other communicators go on.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "lib/comm/setup/split.hpp"
#include "tests/choices.hpp"
#include "tests/comm/whole_ranks.hpp"

namespace {

constexpr std::int64_t kAll = -1, kOneHasFailed = -2;
/// Allocations of this thread that succeed before one fails; negative: all succeed.
thread_local std::int64_t allocations_left = kAll;

}  // namespace

// Not inlined: otherwise the compiler would see malloc behind new, and warn about delete.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (allocations_left == 0) {
    allocations_left = kOneHasFailed;
    throw std::bad_alloc();
  }
  if (allocations_left > 0) --allocations_left;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
// std::stable_sort uses this one, and then operator delete.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace allocation_test {
namespace {

using hips::DataType;
using hips::ReduceOp;
using hips::Result;
using hips::Status;
using hips::comm::Communicator;

/// Makes a communicator of all ranks from `parent`.
using Make = Result<std::unique_ptr<Communicator>> (*)(Communicator& parent);

Result<std::unique_ptr<Communicator>> duplicated(Communicator& parent) {
  return hips::comm::duplicate(parent);
}
Result<std::unique_ptr<Communicator>> split_in_reverse(Communicator& parent) {
  return hips::comm::split(parent, 0, -parent.rank());
}

Status sum(Communicator& comm, std::vector<std::int64_t>& values) {
  return comm.allreduce(values.data(), values.data(), values.size(), DataType::kInt64, ReduceOp::kSum);
}

Status started_sum(Communicator& comm, std::vector<std::int64_t>& values) {
  const auto start = [&] {
    return comm.iallreduce(values.data(), values.data(), values.size(), DataType::kInt64, ReduceOp::kSum);
  };
  try {
    auto request = start();
    return request ? (*request)->wait() : request.error();
  } catch (const std::bad_alloc&) {
    auto request = start();  // it had not begun
    return request ? (*request)->wait() : request.error();
  }
}

enum class Armed { kMaking, kCalling };

/// `step`: from one n to the next.
std::string run_rank(int rank, Make make, Armed armed, std::int64_t step) {
  auto world = hips::test::internal_communicator();
  int num_failed = 0, num_hit = 0;
  for (std::int64_t n = 0;; n += step) {
    auto parent = hips::value_or_throw(hips::comm::duplicate(*world));
    const std::size_t count = std::vector<std::size_t>{5, 3000, 100'000}[static_cast<std::size_t>(n) % 3];
    bool has_failed = false;
    Status status;
    {
      if (rank == 1 && armed == Armed::kMaking) allocations_left = n;
      Result<std::unique_ptr<Communicator>> made = nullptr;
      try {
        made = make(*parent);
      } catch (const std::bad_alloc&) {
        // The call has not begun, as with any wrong argument: the others wait for this rank.
        made = make(*parent);
      }
      const auto disarm = [&] { return std::exchange(allocations_left, kAll) == kOneHasFailed; };
      has_failed = disarm();
      status = made ? Status::success() : made.error();
      for (int call = 0; call < 2 && status.ok(); ++call) {
        std::vector<std::int64_t> values(count, 1);
        if (rank == 1 && armed == Armed::kCalling) allocations_left = n;
        status = call == 0 ? sum(**made, values) : started_sum(**made, values);
        has_failed = disarm() || has_failed;
        if (status.ok() && std::ranges::any_of(values, [](std::int64_t value) { return value != 3; }))
          return "wrong sum after allocation " + std::to_string(n);
      }
    }
    // What each rank got, and whether there was an n-th allocation.
    std::vector<std::int64_t> all{status.ok() ? 0 : 1, has_failed ? 1 : 0};
    if (Status fine = world->allreduce(all.data(), all.data(), 2, DataType::kInt64, ReduceOp::kSum);
        !fine.ok())
      return "the world: " + fine.message;
    // A call may be complete on some ranks when another one runs out of memory in it.
    if (armed == Armed::kMaking && all[0] != 0 && all[0] != world->size())
      return std::to_string(all[0]) + " ranks have an error after allocation " + std::to_string(n) + ": " +
             status.message;
    if (!status.ok() && status.code != hips::Code::kOutOfMemory) return "another error: " + status.message;
    num_failed += all[0] != 0 ? 1 : 0;
    if (all[1] == 0) break;
    ++num_hit;
  }
  if (num_hit == 0) return "no allocation failed";
  // A call allocates next to nothing, and a request that has no memory does not begin.
  if (armed == Armed::kMaking && num_failed == 0) return "none failed";
  std::vector<std::int64_t> values(100, 1);
  return sum(*world, values).ok() && values[0] == 3 ? "right" : "the world is broken";
}

void expect_right(Make make, Armed armed, const hips::test::Environment& environment = {},
                  std::int64_t step = 1) {
  hips::test::expect_texts(
      3, [&](int rank) { return run_rank(rank, make, armed, step); }, "right", environment);
}

TEST(Allocation, ThatFailsInADuplicateEndsItOnAllRanks) {
  expect_right(duplicated, Armed::kMaking);
}

TEST(Allocation, ThatFailsInASplitEndsItOnAllRanks) {
  expect_right(split_in_reverse, Armed::kMaking);
}

TEST(Allocation, ThatFailsInASplitWithASetUpEndsItOnAllRanks) {
  // More than two thousand.
  const std::int64_t step = hips::test::runs_a_sample() ? 13 : 1;
  expect_right(split_in_reverse, Armed::kMaking, {{"HIPS_TRANSPORT", "tcp"}, {"HIPS_TOPO", "switch:3"}},
               step);
}

TEST(Allocation, ThatFailsInACallEndsItOnAllRanks) {
  expect_right(duplicated, Armed::kCalling);
}

}  // namespace
}  // namespace allocation_test
