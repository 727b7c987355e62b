// The engine's records of requests that never complete.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "lib/exec/engine_impl.hpp"
#include "tests/exec/passing_transport.hpp"

namespace hips::exec {
namespace {

/// Accepts at most `takes` requests of a batch and completes none.
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
    engine_.ports.push_back(std::make_unique<EnginePort>());
    engine_.ports.front()->transport = std::move(transport);
  }
  EnginePort& port() { return *engine_.ports.front(); }

  /// Returns the number of the record.
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

TEST_F(LostRequests, to_a_dead_peer_free_their_bytes) {
  (void)batch(7, 1000);
  (void)batch(8, 10);
  engine_.flush(port());
  EXPECT_EQ(port().posted_bytes, 1010u);
  die(7);
  EXPECT_EQ(port().posted_bytes, 10u) << "accepted before the peer died";
  (void)batch(7, 1000);
  (void)batch(8, 10);
  engine_.flush(port());
  EXPECT_EQ(port().posted_bytes, 20u) << "accepted after the peer died";
}

TEST_F(LostRequests, keep_their_record_until_the_transport_accepts_them) {
  transport_->takes = 1;
  const std::uint32_t first = batch(8, 1);
  const std::uint32_t second = batch(8, 1);
  const std::uint32_t dead = batch(7, 1000);
  engine_.flush(port());
  ASSERT_EQ(port().num_batched, 2u);
  die(7);
  Posted other_record;
  other_record.port = &port();
  other_record.peer = 9;
  const std::uint32_t other = engine_.add_posted(other_record);
  EXPECT_EQ(std::set({first, second, dead, other}).size(), 4u) << "a record in the batch was reused";
  transport_->takes = SIZE_MAX;
  engine_.flush(port());
  EXPECT_EQ(port().posted_bytes, 2u);
  EXPECT_EQ(engine_.posted[other].peer, 9);
  EXPECT_EQ(engine_.add_posted(other_record), dead) << "the record is not free";
}

}  // namespace
}  // namespace hips::exec
