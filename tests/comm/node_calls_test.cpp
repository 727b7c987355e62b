// Calls that fail because of an exception while they make progress.

#include "lib/comm/calls/node_calls.hpp"

#include <gtest/gtest.h>

#include <hips/hips.h>

#include <array>
#include <cstdint>
#include <new>
#include <vector>

#include "lib/base/memory_registry.hpp"
#include "tests/node/teams.hpp"

namespace hips::comm {
namespace node_calls_test {
namespace {

using test::make_teams;

constexpr std::uint64_t kCount = 1U << 18U;

CallArgs allreduce(const float* in, float* out) {
  CallArgs args;
  args.in = reinterpret_cast<const std::byte*>(in);
  args.out = reinterpret_cast<std::byte*>(out);
  args.count = kCount;
  return args;
}

/// Wait options whose tick runs out of memory.
WaitOptions without_memory() {
  WaitOptions options;
  options.tick_ns = 0;
  options.on_tick = [](std::int64_t) { throw std::bad_alloc(); };
  return options;
}

TEST(NodeCalls, CompleteTheWaitingCallAndThoseBeforeItOnAnException) {
  auto teams = make_teams(2, {});
  NodeCalls calls(*teams[0]);
  std::vector<float> in(kCount, 1), out(kCount);
  NodeCall request(calls), later(calls);
  ASSERT_TRUE(request.set(allreduce(in.data(), out.data())).ok());
  ASSERT_TRUE(later.set(allreduce(in.data(), out.data())).ok());
  request.start();
  {
    NodeCall mine(calls);
    ASSERT_TRUE(mine.set(allreduce(in.data(), out.data())).ok());
    mine.start();
    EXPECT_FALSE(calls.poll_briefly(mine));
    EXPECT_THROW((void)calls.wait(mine, without_memory()), std::bad_alloc);
    EXPECT_TRUE(mine.done());
  }
  ASSERT_TRUE(request.test().has_value());
  EXPECT_EQ(request.test()->code, Code::kOutOfMemory);
  // The list is empty, and later calls fail.
  later.start();
  EXPECT_EQ(later.wait({}).code, Code::kOutOfMemory);
}

TEST(NodeCalls, TellTheOthersOfAnExceptionThatNoCallerSees) {
  int num_told = 0;
  node::NodeTeam::Config config;
  config.on_error = [&](const Status& status) {
    EXPECT_EQ(status.code, Code::kOutOfMemory);
    ++num_told;
  };
  auto teams = make_teams(2, config);
  hips_op_t op = HIPS_OP_NULL;
  ASSERT_EQ(hips_op_create(
                [](const void*, void*, std::uint64_t, hips_type_t, void*) -> void { throw std::bad_alloc(); },
                1, nullptr, nullptr, &op),
            HIPS_OK);
  std::vector<float> in(1, 1), out(1);
  std::array<NodeCalls, 2> calls{NodeCalls(*teams[0]), NodeCalls(*teams[1])};
  NodeCall first(calls[0]), second(calls[1]);
  for (NodeCall* const call : {&first, &second}) {
    CallArgs args = allreduce(in.data(), out.data());
    args.count = 1;
    args.type = DataType::kFloat32;
    args.op = static_cast<ReduceOp>(op);
    ASSERT_TRUE(call->set(args).ok());
    call->start();
  }
  // Whatever this rank waits for makes progress on all of its calls.
  calls[0].advance();
  EXPECT_EQ(num_told, 1);
  EXPECT_EQ(first.test()->code, Code::kOutOfMemory);
  EXPECT_EQ(hips_op_free(&op), HIPS_OK);
}

TEST(NodeCalls, KeepPeersFromSucceedingAfterAnException) {
  auto teams = make_teams(2, {});
  auto& memory = MemoryRegistry::process();
  std::array<float*, 2> in{}, out{};
  for (std::size_t r = 0; r < 2; ++r) {
    in[r] = reinterpret_cast<float*>(memory.allocate(kCount * sizeof(float)).value());
    out[r] = reinterpret_cast<float*>(memory.allocate(kCount * sizeof(float)).value());
  }
  NodeCalls calls(*teams[0]);
  {
    NodeCall mine(calls);
    ASSERT_TRUE(mine.set(allreduce(in[0], out[0])).ok());
    mine.start();
    EXPECT_THROW((void)calls.wait(mine, without_memory()), std::bad_alloc);
  }
  // The caller owns the buffers again.
  EXPECT_TRUE(memory.free(reinterpret_cast<std::byte*>(in[0])).ok());
  EXPECT_TRUE(memory.free(reinterpret_cast<std::byte*>(out[0])).ok());
  NodeCalls others(*teams[1]);
  NodeCall theirs(others);
  ASSERT_TRUE(theirs.set(allreduce(in[1], out[1])).ok());
  theirs.start();
  WaitOptions options;
  options.deadline_ns = SystemClock::instance().now_ns() + 50'000'000;
  EXPECT_FALSE(theirs.wait(options).ok());
  teams[1]->fail(Status::error(Code::kPeerLost, "rank 0 has failed", Scope::kCommunicator));
  EXPECT_EQ(theirs.wait({}).code, Code::kPeerLost);
  EXPECT_TRUE(memory.free(reinterpret_cast<std::byte*>(in[1])).ok());
  EXPECT_TRUE(memory.free(reinterpret_cast<std::byte*>(out[1])).ok());
}

}  // namespace
}  // namespace node_calls_test
}  // namespace hips::comm
