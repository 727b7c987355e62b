#include "lib/exec/staging_arena.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tests/exec/passing_transport.hpp"

namespace hips::exec {
namespace {

/// Counts the bytes that are registered.
class PinningTransport final : public testing::PassingTransport {
 public:
  explicit PinningTransport(bool pins) : PassingTransport(nullptr) {
    limits_.needs_local_registration = pins;
  }
  [[nodiscard]] const transport::Limits& query() const override { return limits_; }
  Result<transport::Region> register_memory(const transport::MemoryDesc& memory) override {
    bytes += memory.bytes;
    return transport::Region{.local = 1, .remote = {}};
  }
  void deregister(transport::MemoryId) override {}
  std::size_t bytes = 0;

 private:
  transport::Limits limits_;
};

TEST(StagingArena, registers_no_large_segment_of_shared_memory_with_a_nic) {
  PinningTransport memory(false), nic(true);
  StagingArena arena;
  const std::array<transport::Transport*, 1> in_memory{&memory}, with_nic{&nic};
  ASSERT_TRUE(arena.allocate(100'000, in_memory));
  EXPECT_GT(memory.bytes, std::size_t{1} << 25U);
  ASSERT_TRUE(arena.allocate(100'000, with_nic));
  EXPECT_LE(nic.bytes, std::size_t{1} << 20U);
  // The next pieces need no further segment.
  const std::size_t before = memory.bytes;
  ASSERT_TRUE(arena.allocate(100'000, in_memory));
  ASSERT_TRUE(arena.allocate(100'000, with_nic));
  EXPECT_EQ(memory.bytes, before);
  EXPECT_LE(nic.bytes, std::size_t{1} << 20U);
}

}  // namespace
}  // namespace hips::exec
