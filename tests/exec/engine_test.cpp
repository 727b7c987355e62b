// The engine's records of requests that never complete.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

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

  Result<transport::Address> open(transport::PeerId) override { return transport::Address(); }
  void close(transport::PeerId peer) override { closed.push_back(peer); }

  std::size_t takes = SIZE_MAX;
  std::vector<transport::PeerId> closed;

 private:
  transport::Limits limits_;
};

/// Notes which endpoints its owner has closed, and when it ends.
class ClosedTransport final : public testing::PassingTransport {
 public:
  explicit ClosedTransport(std::vector<transport::PeerId>& closed)
      : PassingTransport(nullptr), closed_(closed) {}
  ~ClosedTransport() override { closed_.push_back(-1); }
  [[nodiscard]] const transport::Limits& query() const override { return limits_; }
  Result<transport::Address> open(transport::PeerId) override { return transport::Address(); }
  void close(transport::PeerId peer) override { closed_.push_back(peer); }

 private:
  transport::Limits limits_;
  std::vector<transport::PeerId>& closed_;
};

TEST(EndOfTheEngine, closes_connections_while_the_memory_of_their_requests_is_there) {
  std::vector<transport::PeerId> closed;
  {
    EngineImpl engine{Engine::Options()};
    engine.ports.push_back(std::make_unique<EnginePort>());
    engine.ports.front()->transport = std::make_unique<ClosedTransport>(closed);
    for (const transport::PeerId peer : {7, 8})
      (void)value_or_throw(engine.open(*engine.ports.front(), peer, 1));
  }
  EXPECT_EQ(closed, (std::vector<transport::PeerId>{7, 8, -1}));
}

class LostRequests : public ::testing::Test {
 protected:
  LostRequests() {
    auto transport = std::make_unique<SilentTransport>();
    transport_ = transport.get();
    engine_.ports.push_back(std::make_unique<EnginePort>());
    engine_.ports.front()->transport = std::move(transport);
    for (const transport::PeerId peer : {7, 8}) (void)value_or_throw(engine_.open(port(), peer, 1));
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
  EXPECT_EQ(port().posted_bytes, 10u);
  EXPECT_FALSE(port().connections[7]->is_usable());
  EXPECT_TRUE(port().connections[8]->is_usable());
}

TEST_F(LostRequests, that_the_transport_has_not_accepted_leave_the_batch) {
  transport_->takes = 1;
  (void)batch(8, 1);
  const std::uint32_t second = batch(8, 1);
  const std::uint32_t dead = batch(7, 1000);
  engine_.flush(port());
  ASSERT_EQ(port().num_batched, 2u);
  die(7);
  ASSERT_EQ(port().num_batched, 1u);
  EXPECT_EQ(port().batch[0].context, second);
  EXPECT_EQ(port().posted_bytes, 2u);
  Posted other;
  other.port = &port();
  other.peer = 9;
  EXPECT_EQ(engine_.add_posted(other), dead) << "the record is not free";
  transport_->takes = SIZE_MAX;
  engine_.flush(port());
  EXPECT_EQ(engine_.posted[dead].peer, 9);
  EXPECT_FALSE(port().refused);
}

TEST_F(LostRequests, end_with_the_connection_if_it_is_opened_again) {
  (void)batch(7, 1000);
  EXPECT_EQ(value_or_throw(engine_.open(port(), 7, 1)), port().connections[7]);
  EXPECT_EQ(port().posted_bytes, 1000u);
  const auto old = port().connections[7];
  const auto next = value_or_throw(engine_.open(port(), 7, 2));
  EXPECT_EQ(port().posted_bytes, 0u);
  EXPECT_EQ(old->state, Connection::State::kClosed);
  EXPECT_EQ(next->incarnation, 2u);
  EXPECT_EQ(transport_->closed, std::vector<transport::PeerId>{7});
  EXPECT_EQ(engine_.open(port(), 7, 1).error().code, Code::kPeerLost) << "an incarnation that is over";
}

TEST_F(LostRequests, of_a_port_that_is_down_are_not_followed_by_new_connections) {
  transport::Event event;
  event.kind = transport::Event::Kind::kPortDown;
  event.error = Status::error(Code::kPeerLost, "nic0 was removed", Scope::kLink);
  engine_.dispatch(port(), event);
  EXPECT_EQ(engine_.open(port(), 9, 1).error().message, "nic0 was removed");
  event.kind = transport::Event::Kind::kPortUp;
  engine_.dispatch(port(), event);
  EXPECT_TRUE(engine_.open(port(), 9, 1));
}

TEST(EngineWithoutDescriptors, says_that_it_cannot_be_woken) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Engine engine{Engine::Options()};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(engine.status().code, Code::kSystem);
  EXPECT_EQ(engine.status().sys_errno, EMFILE);
  EXPECT_TRUE(Engine(Engine::Options()).status().ok());
}

}  // namespace
}  // namespace hips::exec
