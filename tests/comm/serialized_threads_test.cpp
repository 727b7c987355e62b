// Programs whose threads call one at a time, as with MPI_THREAD_SERIALIZED, on communicators of one thread.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <hips/hips.hpp>

#include "tests/comm/whole_ranks.hpp"

namespace {

using hips::ReduceOp;
using hips::test::Environment;
using hips::test::Ready;

TEST(SerializedThreads, AWaitOfOneMakesProgressOnRequestsOfAnother) {
  for (const Environment& environment :
       {Environment{}, Environment{{"HIPS_TOPO", "switch:2"}, {"HIPS_TRANSPORT", "tcp"}}}) {
    const std::string text = hips::test::run(
        2,
        [](int rank, const Ready&) {
          auto first = hips::Communicator::from_environment({.thread_mode = hips::ThreadMode::kSingle});
          auto second = first.duplicate();
          std::vector<std::int64_t> long_vector(300'000, 1), number(1, 1);
          if (rank == 1) {
            // Rank 0 has started this call and waits in the next one.
            first.allreduce<std::int64_t>(long_vector, ReduceOp::kSum);
            second.allreduce<std::int64_t>(number, ReduceOp::kSum);
          } else {
            hips::Request request = first.iallreduce<std::int64_t>(long_vector, ReduceOp::kSum);
            std::thread([&] { second.allreduce<std::int64_t>(number, ReduceOp::kSum); }).join();
            request.wait();
          }
          return std::to_string(long_vector.front()) + std::to_string(long_vector.back()) +
                 std::to_string(number.front());
        },
        environment);
    EXPECT_EQ(text, "222");
  }
}

}  // namespace
