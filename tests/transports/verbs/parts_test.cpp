// The parts of the verbs transport that need no device.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/config/device_filter.hpp"
#include "transports/verbs/budget.hpp"
#include "transports/verbs/gid.hpp"

namespace hips::verbs {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

DeviceFilter filter(std::string_view text) {
  return DeviceFilter::parse(text, kHcaSyntax).value();
}

TEST(HcaFilter, AnEmptyOneLetsAllPass) {
  EXPECT_THAT(DeviceFilter().positions_of("mlx5_0", 1), ElementsAre(0));
}

TEST(HcaFilter, NamesAreBeginningsUnlessExact) {
  EXPECT_THAT(filter("mlx5").positions_of("mlx5_7", 1), ElementsAre(0));
  EXPECT_THAT(filter("mlx5_1").positions_of("mlx5_10", 1), ElementsAre(0));
  EXPECT_THAT(filter("=mlx5_1").positions_of("mlx5_10", 1), IsEmpty());
  EXPECT_THAT(filter("=mlx5_1").positions_of("mlx5_1", 2), ElementsAre(0));
  EXPECT_THAT(filter("mlx5").positions_of("rxe0", 1), IsEmpty());
}

TEST(HcaFilter, PortsCountWhereTheyAreNamed) {
  EXPECT_THAT(filter("mlx5_0:2").positions_of("mlx5_0", 1), IsEmpty());
  EXPECT_THAT(filter("mlx5_0:2").positions_of("mlx5_0", 2), ElementsAre(0));
}

TEST(HcaFilter, TheListIsAnOrderOfPreference) {
  const DeviceFilter list = filter("mlx5_3,mlx5_1:1,mlx5");
  EXPECT_THAT(list.positions_of("mlx5_3", 2), ElementsAre(0));
  EXPECT_THAT(list.positions_of("mlx5_1", 1), ElementsAre(1));
  EXPECT_THAT(list.positions_of("mlx5_0", 1), ElementsAre(2));
}

TEST(HcaFilter, AnEntryWrittenTwiceServesTwoRails) {
  const DeviceFilter list = filter("rxe0:1,rxe1:1,rxe0:1");
  EXPECT_THAT(list.positions_of("rxe0", 1), ElementsAre(0, 2));
  EXPECT_THAT(list.positions_of("rxe1", 1), ElementsAre(1));
}

TEST(HcaFilter, ACaretExcludes) {
  EXPECT_THAT(filter("^mlx5_3").positions_of("mlx5_3", 1), IsEmpty());
  EXPECT_THAT(filter("^mlx5_3").positions_of("mlx5_2", 1), ElementsAre(0));
  EXPECT_THAT(filter("^=mlx5_1,rxe0:1").positions_of("mlx5_10", 1), ElementsAre(0));
  EXPECT_THAT(filter("^=mlx5_1,rxe0:1").positions_of("rxe0", 1), IsEmpty());
  EXPECT_THAT(filter("^=mlx5_1,rxe0:1").positions_of("rxe0", 2), ElementsAre(0));
}

TEST(HcaFilter, WhatIsWrongIsNamed) {
  for (const char* text : {"", "^", "=", "mlx5_0:", "mlx5_0:x", "mlx5_0:0", "a,,b", "a,^b", "a b"}) {
    const auto parsed = DeviceFilter::parse(text, kHcaSyntax);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument);
    EXPECT_THAT(parsed.error().message, AllOf(HasSubstr("HIPS_IB_HCA"), HasSubstr("mlx5_0:1")));
  }
  EXPECT_THAT(DeviceFilter::parse("mlx5_0:0", kHcaSyntax).error().message, HasSubstr("invalid port \"0\""));
}

Gid gid(std::uint32_t index, Gid::Kind kind, std::array<std::uint8_t, 16> bytes) {
  return {.index = index, .kind = kind, .bytes = bytes};
}
constexpr std::array<std::uint8_t, 16> kLinkLocal{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
constexpr std::array<std::uint8_t, 16> kGlobal{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7};
constexpr std::array<std::uint8_t, 16> kIpv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3};
constexpr std::array<std::uint8_t, 16> kOtherIpv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 9, 9};

TEST(GidChoice, RoceV2OverIpv4IsTakenWhereverItStands) {
  const auto v1 = Gid::Kind::kRoceV1, v2 = Gid::Kind::kRoceV2;
  std::vector<Gid> table = {gid(0, v1, kLinkLocal), gid(1, v2, kLinkLocal), gid(2, v1, kIpv4),
                            gid(3, v2, kIpv4),      gid(4, v1, kGlobal),    gid(5, v2, kGlobal)};
  std::sort(table.begin(), table.end(), [](const Gid& a, const Gid& b) { return a.index < b.index; });
  for (std::size_t turn = 0; turn < table.size(); ++turn) {
    std::rotate(table.begin(), table.begin() + 1, table.end());
    const auto choice = choose_gid(table, -1, "rxe0:1").value();
    EXPECT_EQ(choice.gid.index, 3u);
    EXPECT_EQ(choice.gid.address(), "10.1.2.3");
    EXPECT_EQ(choice.reason, "the best of 6");
  }
}

TEST(GidChoice, ThenIpv6ThenLinkLocalThenVersion1) {
  const auto v1 = Gid::Kind::kRoceV1, v2 = Gid::Kind::kRoceV2;
  EXPECT_EQ(choose_gid(std::vector{gid(0, v2, kLinkLocal), gid(1, v2, kGlobal), gid(2, v1, kIpv4)}, -1, "p")
                .value()
                .gid.index,
            1u);
  EXPECT_EQ(choose_gid(std::vector{gid(0, v1, kIpv4), gid(1, v2, kLinkLocal)}, -1, "p").value().gid.index,
            1u);
  EXPECT_EQ(choose_gid(std::vector{gid(0, v1, kIpv4)}, -1, "p").value().gid.index, 0u);
}

TEST(GidChoice, AmongEqualsTheFirstIsTakenAndSaysSo) {
  const auto choice =
      choose_gid(std::vector{gid(4, Gid::Kind::kRoceV2, kIpv4), gid(5, Gid::Kind::kRoceV2, kOtherIpv4)}, -1,
                 "p")
          .value();
  EXPECT_EQ(choice.gid.index, 4u);
  EXPECT_EQ(choice.reason, "the first of 2 equally good ones of 2");
}

TEST(GidChoice, AnIndexIsObeyedOrRefusedWithWhatThereIs) {
  const std::vector table = {gid(0, Gid::Kind::kRoceV2, kLinkLocal), gid(1, Gid::Kind::kRoceV2, kIpv4)};
  EXPECT_EQ(choose_gid(table, 0, "p").value().gid.address(), "fe80::1");
  const auto wrong = choose_gid(table, 7, "rxe0:1");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().code, Code::kInvalidArgument);
  EXPECT_THAT(wrong.error().message,
              AllOf(HasSubstr("HIPS_IB_GID_INDEX=7"), HasSubstr("rxe0:1"), HasSubstr("10.1.2.3 at index 1")));
  EXPECT_EQ(choose_gid({}, -1, "rxe0:1").error().code, Code::kUnsupported);
}

DeviceLimits large_device() {
  return {.max_queue_pairs = 1 << 17,
          .max_send_requests = 32768,
          .max_completions = 1 << 22,
          .max_pieces = 30,
          .max_shared_receives = 32767,
          .max_reads = 16,
          .max_message_bytes = 1 << 30};
}

/// What must hold of any budget on any device.
void expect_sound(const DeviceLimits& device, const Budget& budget) {
  EXPECT_LE(budget.send_depth, device.max_send_requests);
  EXPECT_LE(budget.window + Budget::kControl, device.max_send_requests);
  EXPECT_GT(budget.send_depth, Budget::kControl);
  // Two credit messages, a hello and a disconnect message may be outstanding besides a full window.
  EXPECT_GE(Budget::kControl, 4u);
  EXPECT_GE(budget.window / 2, 1u);
  EXPECT_LE(budget.completions, device.max_completions);
  EXPECT_GE(budget.completions, budget.pairs_per_queue * budget.completions_of_one());
  EXPECT_GE(budget.pairs_per_queue, 1u);
  EXPECT_LE(budget.max_queue_pairs, device.max_queue_pairs);
  EXPECT_LE(budget.shared_receives, device.max_shared_receives);
  if (budget.own_receives < budget.max_queue_pairs) {
    EXPECT_GE(budget.shared_window / 2, 1u);
  }
}

TEST(Budget, FitsEveryDeviceThatIsLargeEnough) {
  for (std::uint32_t send : {10u, 11u, 30u, 64u, 255u, 16384u, 32768u}) {
    for (std::uint32_t completions : {20u, 21u, 50u, 255u, 4095u, 65535u, 1u << 22}) {
      for (std::uint32_t receives : {0u, 9u, 64u, 32767u}) {
        DeviceLimits device = large_device();
        device.max_send_requests = send;
        device.max_completions = completions;
        device.max_shared_receives = receives;
        const auto budget = Budget::of(device, 0, "dev");
        ASSERT_TRUE(budget.has_value()) << budget.error().message;
        SCOPED_TRACE(::testing::Message() << send << " " << completions << " " << receives);
        expect_sound(device, *budget);
      }
    }
  }
}

TEST(Budget, RequestsFindNoRoomWhereAnswersStandInTheirs) {
  constexpr std::uint32_t kDepth = 20, kRequests = kDepth - Budget::kControl;
  EXPECT_EQ(Budget::room(kDepth, 0), kRequests);
  EXPECT_EQ(Budget::room(kDepth, kRequests - 1), 1u);
  // A queue full of requests takes answers besides.
  for (std::uint32_t used = kRequests; used <= kDepth; ++used) EXPECT_EQ(Budget::room(kDepth, used), 0u);
}

TEST(Budget, TooSmallADeviceIsNamedWithTheLimit) {
  DeviceLimits device = large_device();
  device.max_send_requests = 5;
  EXPECT_THAT(Budget::of(device, 0, "dev").error().message, HasSubstr("dev supports 5 work requests"));
  device = large_device();
  device.max_completions = 10;
  EXPECT_THAT(Budget::of(device, 0, "dev").error().message, HasSubstr("dev supports 10 completions"));
  device = large_device();
  device.max_pieces = 0;
  EXPECT_THAT(Budget::of(device, 0, "dev").error().message, HasSubstr("dev supports 0 pieces"));
}

TEST(Budget, TheUserMayCapTheQueuePairs) {
  EXPECT_EQ(Budget::of(large_device(), 3, "dev")->max_queue_pairs, 3u);
  EXPECT_EQ(Budget::of(large_device(), 1 << 20, "dev")->max_queue_pairs, 1u << 17);
}

TEST(Budget, ReceivesAreSharedBeyondALimitOnly) {
  EXPECT_EQ(Budget::of(large_device(), 100, "dev")->shared_receives, 0u);
  EXPECT_GT(Budget::of(large_device(), 1000, "dev")->shared_receives, 0u);
  EXPECT_LT(Budget::of(large_device(), 1000, "dev")->own_receives, 1000u);
}

}  // namespace
}  // namespace hips::verbs
