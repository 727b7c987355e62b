// What the engine keeps of requests whose completion never comes.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "lib/exec/engine_impl.hpp"
#include "tests/exec/passing_transport.hpp"

namespace hips::exec {
namespace {

/// Takes as many requests as it is told to and completes none.
class SilentTransport final : public testing::PassingTransport {
 public:
  SilentTransport() : PassingTransport(nullptr) {}
  [[nodiscard]] const transport::Limits& query() const override { return limits_; }
  std::size_t post(std::span<const transport::WorkRequest> requests) override {
    return std::min(requests.size(), takes);
  }
  std::size_t poll(std::span<transport::Event>) override { return 0; }

  std::size_t takes = SIZE_MAX;

 private:
  transport::Limits limits_;
};

class LostRequests : public ::testing::Test {
 protected:
  LostRequests() {
    auto transport = std::make_unique<SilentTransport>();
    transport_ = transport.get();
    engine_.ports.push_back(std::make_unique<Port>());
    engine_.ports.front()->transport = std::move(transport);
  }
  Port& port() { return *engine_.ports.front(); }

  /// Its number.
  std::uint32_t batch(transport::PeerId peer, std::uint32_t bytes) {
    Posted record;
    record.port = &port();
    record.peer = peer;
    record.bytes = bytes;
    const std::uint32_t index = engine_.add_posted(record);
    port().posted_bytes += bytes;
    transport::WorkRequest& request = port().batch[port().num_batched];
    request = {};
    request.peer = peer;
    request.signalled = true;
    request.context = index;
    port().batched[port().num_batched++] = record;
    return index;
  }
  void die(transport::PeerId peer) {
    transport::Event event;
    event.kind = transport::Event::Kind::kPeerDead;
    event.peer = peer;
    engine_.dispatch(port(), event);
  }

  EngineImpl engine_{Engine::Options()};
  SilentTransport* transport_ = nullptr;
};

TEST_F(LostRequests, to_a_peer_that_died_leave_room_for_others) {
  (void)batch(7, 1000);
  (void)batch(8, 10);
  engine_.flush(port());
  EXPECT_EQ(port().posted_bytes, 1010u);
  die(7);
  EXPECT_EQ(port().posted_bytes, 10u) << "taken before";
  (void)batch(7, 1000);
  (void)batch(8, 10);
  engine_.flush(port());
  EXPECT_EQ(port().posted_bytes, 20u) << "taken afterwards";
}

TEST_F(LostRequests, keep_their_number_until_the_transport_has_taken_them) {
  transport_->takes = 1;
  const std::uint32_t first = batch(8, 1);
  const std::uint32_t second = batch(8, 1);
  const std::uint32_t dead = batch(7, 1000);
  engine_.flush(port());
  ASSERT_EQ(port().num_batched, 2u);
  die(7);
  Posted strangers;
  strangers.port = &port();
  strangers.peer = 9;
  const std::uint32_t other = engine_.add_posted(strangers);
  EXPECT_EQ(std::set({first, second, dead, other}).size(), 4u) << "it is still in the batch";
  transport_->takes = SIZE_MAX;
  engine_.flush(port());
  EXPECT_EQ(port().posted_bytes, 2u);
  EXPECT_EQ(engine_.posted[other].peer, 9);
  EXPECT_EQ(engine_.add_posted(strangers), dead) << "it is free now";
}

}  // namespace
}  // namespace hips::exec
