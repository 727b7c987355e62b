// The n-th allocation of one rank fails while it makes and uses communicators, for n = 1, 2, ... until none does. The call ends
// on all ranks, and other communicators go on. A call that had no memory to begin with can be made again.

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
#include "tests/comm/collective_task.hpp"
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

// Of hips_comm_create() with the program's own exchanges, which have memory. A rank that has taken part in none calls again; one
// that has no memory after the last one gets an error alone, and the others at their next call.
TEST(Allocation, ThatFailsInASetUpOverCallbacksEndsItOnAllRanks) {
  const auto body = [](int rank) -> std::string {
    auto world = hips::Communicator::from_environment();
    hips_bootstrap_t bootstrap{};
    bootstrap.struct_size = sizeof(bootstrap);
    bootstrap.rank = rank;
    bootstrap.size = world.size();
    struct Exchanges {
      hips_comm_t world;
      int num;
    } exchanges{world.handle(), 0};
    bootstrap.context = &exchanges;
    bootstrap.allgather = [](void* context, const void* send, void* recv, std::size_t bytes) {
      const std::int64_t left = std::exchange(allocations_left, kAll);
      auto& used = *static_cast<Exchanges*>(context);
      ++used.num;
      const auto status = hips_allgather(send, recv, bytes, HIPS_UINT8, used.world);
      allocations_left = left;
      return static_cast<int>(status);
    };
    int num_failed = 0;
    for (std::int64_t n = 0;; n += hips::test::runs_a_sample() ? 13 : 1) {
      if (rank == 1) allocations_left = n;
      hips_comm_t made = nullptr;
      exchanges.num = 0;
      hips_status_t status = hips_comm_create(nullptr, &bootstrap, &made);
      if (status != HIPS_OK && exchanges.num == 0) status = hips_comm_create(nullptr, &bootstrap, &made);
      const bool has_failed = std::exchange(allocations_left, kAll) == kOneHasFailed;
      const std::string message = status == HIPS_OK ? "" : hips_last_error();
      std::vector<std::int64_t> all{status == HIPS_OK ? 0 : 1, has_failed ? 1 : 0};
      world.allreduce(std::span(all), hips::ReduceOp::kSum);
      const bool was_last = all[0] == 1 && (status != HIPS_OK) == (rank == 1);
      if (all[0] != 0 && all[0] != world.size() && !was_last)
        return std::to_string(all[0]) + " ranks have an error after allocation " + std::to_string(n) + ": " +
               message;
      if (status != HIPS_OK && status != HIPS_ERR_OUT_OF_MEMORY) return "another error: " + message;
      num_failed += all[0] != 0 ? 1 : 0;
      if (status == HIPS_OK) {
        std::int64_t value = 1;
        const bool is_right =
            hips_allreduce(HIPS_IN_PLACE, &value, 1, HIPS_INT64, HIPS_SUM, made) == HIPS_OK &&
            value == world.size();
        if (is_right == was_last) return "a wrong end of a call after allocation " + std::to_string(n);
        (void)hips_comm_destroy(made);
      }
      if (all[1] == 0) return num_failed > 0 ? "right" : "none failed";
    }
  };
  hips::test::expect_texts(3, body, "right");
}

/// Makes the call; after an error that another try does not have, once more.
std::string error_of(hips::test::Task& task, hips::Communicator& comm) {
  std::string error;
  for (int tries = 0; tries < 2; ++tries) {
    try {
      task.start(comm);
      task.wait();
      return "";
    } catch (const std::bad_alloc&) {
      continue;  // of the task itself; the library's calls report it
    } catch (const std::exception& thrown) {
      const std::int64_t left = std::exchange(allocations_left, kAll);  // the text is the test's own
      error = thrown.what();
      allocations_left = left;
    }
  }
  return error;
}

/// Random calls, each again and again with the n-th allocation failing.
std::string run_calls(int rank, std::uint64_t seed, int num_tasks) {
  auto world = hips::Communicator::from_environment();
  auto comm = world.duplicate();
  int num_hit = 0;
  for (int t = 0; t < num_tasks; ++t) {
    for (std::int64_t n = 0;; ++n) {
      std::mt19937_64 program(seed + static_cast<std::uint64_t>(t));
      std::mt19937_64 own(program() + static_cast<std::uint64_t>(rank));
      auto task = hips::test::Task::draw(program, own, rank, world.size(), 20'000);
      if (rank == 1) allocations_left = n;
      const std::string error = error_of(*task, comm);
      const bool has_failed = std::exchange(allocations_left, kAll) == kOneHasFailed;
      if (error.empty()) {
        task->starts_left = 0;
        task->check();
      } else if (error.find("out of memory") == std::string::npos) {
        return "another error after allocation " + std::to_string(n) + " of task " + std::to_string(t) +
               ": " + error;
      }
      std::vector<std::int64_t> all{error.empty() ? 0 : 1, has_failed ? 1 : 0};
      world.allreduce(std::span(all), hips::ReduceOp::kSum);
      if (all[0] != 0) {
        task.reset();
        comm = world.duplicate();
      }
      if (all[1] == 0) break;
      ++num_hit;
    }
  }
  return num_hit > 0 || rank != 1 ? "right" : "no allocation failed";
}

TEST(Allocation, ThatFailsInARandomCallIsReportedOrHarmless) {
  const std::uint64_t seed = hips::test::seed();
  const int num_tasks = hips::test::runs_everything() ? 1000 : hips::test::runs_a_sample() ? 15 : 100;
  const std::vector<hips::test::Environment> backends{
      {},
      {{"HIPS_TRANSPORT", "tcp"}, {"HIPS_TOPO", "switch:3"}},
      {{"HIPS_TRANSPORT", "shm"}, {"HIPS_TOPO", "switch:3"}, {"HIPS_ALGORITHM", "flat-ring"}}};
  for (const auto& environment : backends)
    hips::test::expect_texts(
        3, [&](int rank) { return run_calls(rank, seed, num_tasks); }, "right", environment);
}

}  // namespace
}  // namespace allocation_test
