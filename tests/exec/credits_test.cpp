// How credits for receive slots return to the sender.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/exec/spy_transport.hpp"
#include "tests/exec/world.hpp"

namespace hips::exec::testing {
namespace {

struct Traffic {
  std::string spec, algorithm;
  std::int32_t credits = 4;
};

void PrintTo(const Traffic& traffic, std::ostream* out) {
  *out << traffic.algorithm << " on " << traffic.spec << ", " << traffic.credits << " credits";
}

/// The network's counters after `calls` sums of `count` floats.
Seen run(const Traffic& traffic, int calls, std::size_t count, inproc::Faults faults = {}) {
  Seen seen;
  World world(traffic.spec, test::seed(),
              {.request = {.algorithm = traffic.algorithm},
               .credits = traffic.credits,
               .faults = faults,
               .wrap = [&seen](std::unique_ptr<transport::Transport> inner) {
                 return std::make_unique<SpyTransport>(std::move(inner), seen);
               }});
  std::vector<std::vector<float>> buffers(static_cast<std::size_t>(world.size()), std::vector<float>(count));
  for (int call = 0; call < calls; ++call) {
    std::vector<std::shared_ptr<Operation>> operations;
    for (Rank rank = 0; rank < world.size(); ++rank) {
      auto& buffer = buffers[static_cast<std::size_t>(rank)];
      for (std::size_t i = 0; i < count; ++i)
        buffer[i] = static_cast<float>(rank + call + static_cast<int>(i % 5));
      auto* const bytes = reinterpret_cast<std::byte*>(buffer.data());
      operations.push_back(
          world[rank].team->start({.in = bytes, .out = bytes, .count = count, .type = DataType::kFloat32}));
    }
    EXPECT_TRUE(world.run(operations)) << "call " << call;
    const auto n = static_cast<float>(world.size());
    for (const auto& buffer : buffers) {
      for (std::size_t i = 0; i < count; ++i)
        EXPECT_EQ(buffer[i], n * (n - 1) / 2 + n * static_cast<float>(call + static_cast<int>(i % 5)));
    }
  }
  for (Rank rank = 0; rank < world.size(); ++rank) EXPECT_TRUE(world[rank].errors.empty());
  return seen;
}

class BothWays : public ::testing::TestWithParam<Traffic> {};

// If every channel has one in the opposite direction, segments carry the credits. A notification is needed
// only if two segments arrive before the next one is sent, which the random order of ranks causes now and
// then.
TEST_P(BothWays, SegmentsCarryAlmostAllCredits) {
  const Seen seen = run(GetParam(), 100, 64);
  EXPECT_LE(20 * seen.notes, seen.segments);
}

TEST_P(BothWays, LongCallsNeedFewNotifications) {
  const Seen seen = run(GetParam(), 5, 20000);
  EXPECT_LT(seen.notes, seen.segments / 2);
}

TEST_P(BothWays, LateAndReorderedArrivalsLoseNoCredits) {
  (void)run(GetParam(), 30, 3000, {.delay = 0.3, .reorder = 0.3, .late_completion = 0.3, .queue_full = 0.2});
}

INSTANTIATE_TEST_SUITE_P(Plans, BothWays,
                         ::testing::Values(Traffic{"switch:2", "recursive-doubling"},
                                           Traffic{"switch:4", "recursive-doubling"},
                                           Traffic{"switch:4", "hips"}, Traffic{"bcube:3,1", "hips"},
                                           Traffic{"switch:5", "flat-mesh"},
                                           Traffic{"switch:4", "recursive-doubling", 15}));

class OneWay : public ::testing::TestWithParam<Traffic> {};

// A ring has no channel in the opposite direction, and with one slot a credit cannot wait for a segment.
TEST_P(OneWay, NotificationsReturnAllCredits) {
  EXPECT_GT(run(GetParam(), 20, 2000).notes, 0);
}

INSTANTIATE_TEST_SUITE_P(Plans, OneWay,
                         ::testing::Values(Traffic{"switch:4", "flat-ring"},
                                           Traffic{"switch:5", "flat-ring", 1},
                                           Traffic{"switch:4", "hips", 1}));

}  // namespace
}  // namespace hips::exec::testing
