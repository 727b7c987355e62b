// Mail over a network that delays, reorders and refuses, by one NIC and several.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "lib/ps/transport_mail.hpp"
#include "tests/choices.hpp"
#include "transports/inproc/network.hpp"

namespace hips::ps {
namespace {

/// Two ranks with some NICs each that send each other numbers, in batches of any length that fits.
class TwoMails {
 public:
  TwoMails(std::size_t num_nics, std::uint64_t seed) : random_(seed), num_nics_(num_nics) {
    // As few as the NICs allow, which is one more than it, to more than are used.
    const auto num_slots = static_cast<std::uint32_t>(num_nics + 1 + random_() % 4);
    const inproc::Faults faults{
        .delay = chance(), .reorder = chance(), .late_completion = chance(), .queue_full = chance() / 2};
    network_ = value_or_throw(inproc::Network::create({.random = &random_, .faults = faults}));
    std::vector<std::size_t> nics(num_nics);
    std::iota(nics.begin(), nics.end(), std::size_t{0});
    std::vector<std::byte> introductions[2];
    for (Rank rank = 0; rank < 2; ++rank) {
      Side& side = sides_[rank];
      side.mail = value_or_throw(TransportMail::create(
          {.name = "test", .rank = rank, .slot_bytes = 256, .num_slots = num_slots, .peers = {1 - rank}},
          [this, rank](Rank from, std::span<const std::byte> batches) {
            return receive(rank, from, batches);
          }));
      for (std::size_t nic = 0; nic < num_nics; ++nic)
        EXPECT_EQ(value_or_throw(side.mail->add(network_->make_transport(rank, static_cast<Rail>(nic)))),
                  nic);
      introductions[rank] = value_or_throw(side.mail->open(1 - rank, nics));
    }
    for (Rank rank = 0; rank < 2; ++rank)
      EXPECT_TRUE(sides_[rank].mail->connect(1 - rank, introductions[1 - rank]).ok());
    for (Side& side : sides_) side.mail->greet_all();
  }

  /// Until each rank has `num` numbers of the other.
  void exchange(std::uint64_t num) {
    constexpr int kMostSteps = 1'000'000;
    for (int step = 0; step < kMostSteps && (sides_[0].received < num || sides_[1].received < num); ++step) {
      Side& side = sides_[random_() % 2];
      if (side.sent < num && random_() % 3 == 0) write(side, num);
      EXPECT_TRUE(side.mail->progress().has_value());
    }
    for (Side& side : sides_) {
      EXPECT_EQ(side.received, num);
      EXPECT_EQ(side.mail->num_greeted(), num_nics_);
      EXPECT_EQ(side.mail->num_connections(), num_nics_);
      EXPECT_TRUE(side.mail->lost().ok());
    }
  }

 private:
  struct Side {
    std::unique_ptr<TransportMail> mail;
    std::uint64_t sent = 0, received = 0;
  };

  double chance() { return std::uniform_real_distribution<>(0, 0.9)(random_); }
  void write(Side& side, std::uint64_t num) {
    const auto to = static_cast<Rank>(&side == &sides_[0] ? 1 : 0);
    const std::size_t room = side.mail->most_bytes() / 8, asked = 1 + random_() % room;
    std::byte* const place = side.mail->begin(to, 8 * asked);
    const std::size_t used = std::min<std::uint64_t>(random_() % (asked + 1), num - side.sent);
    for (std::size_t i = 0; i < used; ++i, ++side.sent) std::memcpy(place + 8 * i, &side.sent, 8);
    side.mail->end(to, 8 * used);
  }
  Status receive(Rank rank, Rank from, std::span<const std::byte> batches) {
    EXPECT_EQ(from, 1 - rank);
    for (; batches.size() >= 8; batches = batches.subspan(8)) {
      std::uint64_t number = 0;
      std::memcpy(&number, batches.data(), 8);
      if (number != sides_[rank].received)
        return Status::error(Code::kInternal, "number " + std::to_string(number) + " came where " +
                                                  std::to_string(sides_[rank].received) + " was expected");
      ++sides_[rank].received;
    }
    return Status::success();
  }

  std::mt19937_64 random_;
  std::size_t num_nics_;
  std::unique_ptr<inproc::Network> network_;
  Side sides_[2];
};

TEST(TransportMail, KeepsTheOrderOverAnyNumberOfNics) {
  const std::uint64_t seeds = hips::test::runs_a_sample() ? 20 : 200;
  for (std::uint64_t i = 0; i < seeds; ++i) {
    for (std::size_t num_nics = 1; num_nics <= 3; ++num_nics) {
      const std::uint64_t seed = hips::test::seed() + i;
      SCOPED_TRACE(testing::Message() << num_nics << " NICs, seed " << seed);
      TwoMails(num_nics, seed).exchange(2000);
      if (HasFailure()) return;
    }
  }
}

TEST(TransportMail, SendsOverEveryNic) {
  auto network = value_or_throw(inproc::Network::create({}));
  std::unique_ptr<TransportMail> mails[2];
  std::vector<std::byte> introductions[2];
  const std::vector<std::size_t> nics{0, 1};
  for (Rank rank = 0; rank < 2; ++rank) {
    mails[rank] = value_or_throw(TransportMail::create(
        {.name = "test", .rank = rank, .peers = {1 - rank}},
        [](Rank /*from*/, std::span<const std::byte> /*batches*/) { return Status::success(); }));
    for (const Rail nic : {0, 1}) (void)value_or_throw(mails[rank]->add(network->make_transport(rank, nic)));
    introductions[rank] = value_or_throw(mails[rank]->open(1 - rank, nics));
  }
  for (Rank rank = 0; rank < 2; ++rank)
    ASSERT_TRUE(mails[rank]->connect(1 - rank, introductions[1 - rank]).ok());
  // Frames go over the NICs by turns, so what the second one would have carried is missing.
  network->take_down(0, 1);
  mails[0]->greet_all();
  for (int round = 0; round < 100; ++round)
    for (const auto& mail : mails) ASSERT_TRUE(mail->progress().has_value());
  EXPECT_EQ(mails[1]->num_greeted(), 1U);
  EXPECT_FALSE(mails[0]->lost().ok());
  EXPECT_FALSE(mails[1]->lost().ok());
}

}  // namespace
}  // namespace hips::ps
