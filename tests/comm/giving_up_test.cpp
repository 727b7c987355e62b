// Ranks that give up: by an abort, an exception in a wait, or the end of a request's scope.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <hips/hips.hpp>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/comm/setup/split.hpp"
#include "tests/comm/whole_ranks.hpp"
#include "tests/pipe_signal.hpp"

namespace {

using hips::DataType;
using hips::ReduceOp;
using hips::Status;
using hips::test::Environment;
using hips::test::error_text;
using hips::test::internal_communicator;
using hips::test::Ready;
using hips::test::run;
using testing::AllOf;
using testing::ContainsRegex;
using testing::StartsWith;
using namespace std::chrono_literals;

const Environment kPaths[] = {
    {{"HIPS_DEAD_AFTER", "2s"}},
    {{"HIPS_DEAD_AFTER", "2s"}, {"HIPS_TOPO", "switch:4"}, {"HIPS_TRANSPORT", "shm"}},
    {{"HIPS_DEAD_AFTER", "2s"}, {"HIPS_TOPO", "switch:4"}, {"HIPS_TRANSPORT", "tcp"}},
    {{"HIPS_DEAD_AFTER", "2s"}, {"HIPS_TOPO", "switch:2/2"}}};

std::string described(const hips::Error& error) {
  return std::string(to_string(error.status().code)) + ", rank " + std::to_string(error.status().rank) +
         ", scope " + std::to_string(static_cast<int>(error.status().scope)) + ": " + error.what();
}

TEST(Abort, EndsTheCallsOfAllRanksWithOneError) {
  for (Environment path : kPaths) {
    path["HIPS_DEAD_AFTER"] = "60s";  // the error comes at once, not when ranks are looked for
    const std::string text = run(
        4,
        [](int rank, const Ready&) -> std::string {
          auto comm = hips::Communicator::from_environment();
          std::vector<float> values(1000, 1);
          comm.allreduce(values, ReduceOp::kSum);
          comm.duplicate().barrier();  // no rank is still in that call
          // Ranks 0 and 1 are blocked in a call, rank 2 has one outstanding, rank 3 aborts.
          const auto begin = std::chrono::steady_clock::now();
          std::string first;
          try {
            if (rank == 3) {
              std::this_thread::sleep_for(200ms);
              comm.abort("the input is not a number");
            }
            hips::Request request;
            if (rank == 2) request = comm.iallreduce(values, ReduceOp::kSum);
            if (rank == 2) request.wait();
            if (rank != 2) comm.allreduce(values, ReduceOp::kSum);
            return "no error";
          } catch (const hips::Error& error) {
            first = described(error);
          }
          if (std::chrono::steady_clock::now() - begin > 30s) return "late";
          // It stays failed, and a second abort changes nothing.
          if (hips_comm_abort(comm.handle(), nullptr) != HIPS_OK) return hips_last_error();
          try {
            comm.barrier();
          } catch (const hips::Error& error) {
            return described(error) == first ? first : "another error: " + described(error);
          }
          return "no error";
        },
        path);
    EXPECT_EQ(text, "aborted, rank 3, scope 3: rank 3 aborted the communicator: the input is not a number");
  }
}

// While rank 0 waits for rank 3, its memory runs out.
TEST(Exception, InAWaitEndsTheCallOnAllRanksAndNoOtherCommunicator) {
  for (Environment path : kPaths) {
    path["HIPS_DEAD_AFTER"] = "60s";  // nobody dies, and a busy machine may not run a process for seconds
    const std::string text = run(
        4,
        [](int rank, const Ready&) -> std::string {
          bool throws = false;
          const auto progress = [&] {
            if (throws) throw std::bad_alloc();
          };
          auto comm = internal_communicator({.progress = progress});
          auto other = hips::value_or_throw(hips::comm::duplicate(*comm));
          // No rank is still in the duplicate, which uses the communicator that is going to fail.
          if (const Status ready = other->call({.collective = hips::Collective::kBarrier}); !ready.ok())
            return ready.message;
          std::vector<std::int64_t> values(100'000, rank);
          const auto sum = [&](hips::comm::Communicator& on) {
            return on.allreduce(values.data(), values.data(), values.size(), DataType::kInt64,
                                ReduceOp::kSum);
          };
          throws = rank == 0;
          for (int i = 0; rank == 3 && i < 18'000 && comm->failure().ok(); ++i)
            std::this_thread::sleep_for(10ms);
          const Status status = sum(*comm);
          throws = false;
          for (int call = 0; call < 10; ++call) {
            std::fill(values.begin(), values.end(), rank);
            if (const Status fine = sum(*other); !fine.ok()) return fine.message;
            for (const std::int64_t value : values)
              if (value != 6) return "wrong sum";
          }
          return std::string(to_string(status.code)) + ": " + status.message;
        },
        path);
    EXPECT_THAT(text, AllOf(StartsWith("out of memory: rank 0"), ContainsRegex("in allreduce #[0-9]+ ")));
  }
}

// A program's callback frees a communicator while a call waits.
TEST(ProgressCallback, MayFreeACommunicator) {
  for (const Environment& path : kPaths) {
    int freed[2];
    ASSERT_EQ(pipe(freed), 0);
    const std::string text = run(
        4,
        [&freed](int rank, const Ready&) -> std::string {
          std::unique_ptr<hips::comm::Communicator> other;
          bool frees = false;
          const auto progress = [&] {
            if (!std::exchange(frees, false)) return;
            other.reset();
            (void)!write(freed[1], "x", 1);
          };
          auto comm = internal_communicator({.progress = progress});
          other = hips::value_or_throw(hips::comm::duplicate(*comm));
          std::int32_t value = 1;
          // Rank 3 calls when rank 0 has freed one in its wait.
          frees = rank == 0;
          char byte = 0;
          if (rank == 3) (void)!read(freed[0], &byte, 1);
          const Status status = comm->allreduce(&value, &value, 1, DataType::kInt32, ReduceOp::kSum);
          return status.ok() && value == 4 ? "right" : "wrong: " + status.message;
        },
        path);
    EXPECT_EQ(text, "right");
    close(freed[0]);
    close(freed[1]);
  }
}

TEST(Abort, ComesFromAnyThread) {
  const hips::test::PipeSignal aborted;
  const std::string text = run(2, [&](int rank, const Ready&) -> std::string {
    auto comm = hips::Communicator::from_environment();
    std::vector<float> values(1000, 1);
    std::string error;
    std::thread other([&] {
      std::this_thread::sleep_for(200ms);
      if (rank == 0) comm.abort("");
      if (rank == 0) aborted.give();
    });
    if (rank == 0) error = error_text([&] { comm.allreduce(values, ReduceOp::kSum); });
    other.join();
    if (rank == 1) aborted.wait();
    if (rank == 1) error = error_text([&] { comm.allreduce(values, ReduceOp::kSum); });
    return error;
  });
  EXPECT_EQ(text, "aborted: rank 0 aborted the communicator: ");
}

TEST(Abort, OfOneRankFailsItsLaterCalls) {
  const std::string text = run(1, [](int, const Ready&) -> std::string {
    auto comm = hips::Communicator::from_environment();
    std::vector<float> values(10, 1);
    hips::Request request = comm.allreduce_init(values, ReduceOp::kSum);
    if (hips_comm_abort(nullptr, "") != HIPS_ERR_INVALID_ARGUMENT) return "aborted null";
    if (hips_comm_abort(comm.handle(), nullptr) != HIPS_OK) return hips_last_error();
    const std::string started = error_text([&] { request.start(); });
    const std::string called = error_text([&] { comm.allreduce(values, ReduceOp::kSum); });
    return started == called ? called : started + "|" + called;
  });
  EXPECT_EQ(text, "aborted: rank 0 aborted the communicator: no reason given");
}

// Rank 0 starts a call, and an exception of its own ends the scope of the request. Rank 1 is late; the others
// are in the call.
TEST(RequestDestructor, GivesUpTheCallWhileAnExceptionUnwindsTheStack) {
  for (const Environment& path : kPaths) {
    const hips::test::PipeSignal given_up;
    const std::string text = run(
        4,
        [&](int rank, const Ready&) -> std::string {
          auto comm = hips::Communicator::from_environment();
          std::vector<float> values(300'000, 1);
          comm.allreduce(values, ReduceOp::kSum);
          std::string error;
          if (rank == 0) {
            try {
              const hips::Request request = comm.iallreduce(values, ReduceOp::kSum);
              throw std::runtime_error("the program's own");
            } catch (const std::runtime_error&) {
            }
            // The memory is the program's again: nothing writes it, when rank 1 comes neither.
            std::fill(values.begin(), values.end(), 7);
            std::this_thread::sleep_for(1s);
            if (std::count(values.begin(), values.end(), 7) != 300'000) return "written after the request";
            given_up.give();
          }
          if (rank == 1) given_up.wait();
          return error_text([&] { comm.allreduce(values, ReduceOp::kSum); });
        },
        path);
    EXPECT_EQ(text, "aborted: rank 0 aborted the communicator: it gave up an outstanding request");
  }
}

TEST(RequestDestructor, WaitsWhileAnExceptionUnwindsForRanksThatComeSoon) {
  const std::string text = run(3, [](int rank, const Ready&) -> std::string {
    auto comm = hips::Communicator::from_environment();
    std::vector<int> values(3000, 1);
    try {
      if (rank == 1) std::this_thread::sleep_for(300ms);
      const hips::Request request = comm.iallreduce(values, ReduceOp::kSum);
      if (rank != 1) throw std::runtime_error("the program's own");
    } catch (const std::runtime_error&) {
    }
    comm.allreduce(values, ReduceOp::kSum);
    return values.back() == 9 ? "right" : "wrong";
  });
  EXPECT_EQ(text, "right");
}

}  // namespace
