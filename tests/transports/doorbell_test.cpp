#include "transports/shm/doorbell.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <new>
#include <set>
#include <vector>

#include "transports/shm/notify_ring.hpp"

namespace hips::shm {
namespace doorbell_test {
namespace {

std::set<std::uint32_t> taken(Doorbell& bell) {
  std::set<std::uint32_t> slots;
  bell.take([&slots](std::uint32_t word, std::uint64_t bits) {
    for (std::uint32_t bit = 0; bit < 64; ++bit) {
      if ((bits >> bit & 1) != 0) slots.insert(word * 64 + bit);
    }
  });
  return slots;
}

TEST(DoorbellTest, EveryRingOfEveryWordIsTakenOnce) {
  const auto bell = std::make_unique<Doorbell>();
  std::set<std::uint32_t> rung;
  for (std::uint32_t slot = 0; slot < Doorbell::kMaxRings; slot += 37) {
    bell->ring(slot);
    bell->ring(slot);
    rung.insert(slot);
  }
  bell->ring(Doorbell::kMaxRings - 1);
  rung.insert(Doorbell::kMaxRings - 1);
  EXPECT_TRUE(bell->rung());
  EXPECT_EQ(taken(*bell), rung);
  EXPECT_FALSE(bell->rung());
  EXPECT_TRUE(taken(*bell).empty());
}

TEST(DoorbellTest, TheSleeperIsRungOrSeesTheBitInEveryInterleaving) {
  // Sender: ring, then read the sleep word. Receiver: write the sleep word, then read the bits. The test tries
  // all interleavings.
  std::vector<int> order = {0, 0, 1, 1};
  int orders = 0;
  do {
    const auto bell = std::make_unique<Doorbell>();
    bool woken = false, seen = false;
    int sender_step = 0, receiver_step = 0;
    for (const int who : order) {
      if (who == 0) {
        if (sender_step++ == 0) {
          bell->ring(70);
        } else {
          woken = bell->asleep() != 0;
        }
      } else if (receiver_step++ == 0) {
        bell->fall_asleep();
      } else {
        seen = bell->rung();
      }
    }
    EXPECT_TRUE(woken || seen);
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 6);
}

TEST(DoorbellTest, ALateWakerDoesNotEndALaterSleep) {
  const auto bell = std::make_unique<Doorbell>();
  EXPECT_EQ(bell->asleep(), 0u);
  bell->fall_asleep();
  const std::uint64_t first = bell->asleep();
  EXPECT_NE(first, 0u);
  // The receiver wakes by itself and sleeps again before the waker continues.
  bell->wake_up();
  EXPECT_EQ(bell->asleep(), 0u);
  bell->fall_asleep();
  bell->woken(first);
  EXPECT_NE(bell->asleep(), 0u);
  EXPECT_NE(bell->asleep(), first);
  bell->woken(bell->asleep());
  EXPECT_EQ(bell->asleep(), 0u) << "others need not wake it again";
}

TEST(DoorbellTest, ARingThatIsClearedCanBeRungByItsNextSender) {
  const auto bell = std::make_unique<Doorbell>();
  bell->ring(5);
  (void)taken(*bell);
  bell->ring(5);
  bell->clear(5);
  (void)taken(*bell);
  bell->ring(5);
  EXPECT_EQ(taken(*bell), std::set<std::uint32_t>{5});
}

/// A ring of eight entries with its alignment.
struct RingMemory {
  static constexpr std::uint32_t kCapacity = 8;
  alignas(64) unsigned char bytes[NotifyRing::bytes(kCapacity)] = {};
  NotifyRing* ring = new (bytes) NotifyRing;
};

TEST(NotifyRingTest, TokensKeepTheirOrderOverManyLaps) {
  const auto memory = std::make_unique<RingMemory>();
  RingSender sender(memory->ring, RingMemory::kCapacity);
  RingReceiver receiver(memory->ring, RingMemory::kCapacity);
  EXPECT_FALSE(receiver.pop().has_value());
  std::uint32_t pushed = 0, popped = 0;
  for (int round = 0; round < 1000; ++round) {
    while (sender.has_space()) sender.push(pushed++);
    EXPECT_LE(pushed - popped, RingMemory::kCapacity);
    EXPECT_GE(pushed - popped, RingMemory::kCapacity - RingMemory::kCapacity / 4 + 1);
    for (int i = 0; i < round % 9; ++i) {
      const auto token = receiver.pop();
      if (!token) break;
      EXPECT_EQ(*token, popped++);
      (void)receiver.publish_if_due();
    }
  }
  EXPECT_GT(popped, 1000u);
}

TEST(NotifyRingTest, AReceiverThatMakesRoomNotifiesTheWaitingSender) {
  const auto memory = std::make_unique<RingMemory>();
  RingSender sender(memory->ring, RingMemory::kCapacity);
  RingReceiver receiver(memory->ring, RingMemory::kCapacity);
  for (std::uint32_t i = 0; i < RingMemory::kCapacity; ++i) {
    ASSERT_TRUE(sender.has_space());
    sender.push(i);
  }
  // No sender waits yet.
  (void)receiver.pop();
  (void)receiver.pop();
  EXPECT_FALSE(receiver.publish_if_due());
  for (std::uint32_t i = 8; i < 10; ++i) {
    ASSERT_TRUE(sender.has_space());
    sender.push(i);
  }
  ASSERT_FALSE(sender.has_space());
  // Now the sender waits. It gets one notification, at a quarter of the capacity.
  (void)receiver.pop();
  EXPECT_FALSE(receiver.publish_if_due());
  (void)receiver.pop();
  EXPECT_TRUE(receiver.publish_if_due());
  EXPECT_FALSE(receiver.publish_if_due());
  EXPECT_TRUE(sender.has_space());
}

}  // namespace
}  // namespace doorbell_test
}  // namespace hips::shm
