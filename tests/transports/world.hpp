#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/os/shared_memory.hpp"
#include "tests/choices.hpp"
#include "tests/hang_limit.hpp"
#include "transports/transport.hpp"

namespace hips::test {

/// A transport of the suite, and how to create n connected ranks of it in this process.
struct Backend {
  std::string name;
  /// Returns a function that creates the transport of a rank. Its captures live as long as the transports.
  std::function<std::function<std::unique_ptr<transport::Transport>(Rank)>()> start;
  bool is_bounded = false;  ///< accepts a few thousand posts at most while nobody polls
};

/// The transports that the conformance suite runs over; each program that is built from it has its own.
std::vector<Backend> backends();

inline void PrintTo(const Backend& backend, std::ostream* out) {
  *out << backend.name;
}

/// n ranks in this thread. PeerId b of any rank is rank b.
class World {
 public:
  static constexpr std::size_t kBytes = std::size_t{1} << 20;

  struct Node {
    std::unique_ptr<transport::Transport> transport;
    SharedMemory memory;
    transport::Region region;
    std::deque<transport::Event> events;  ///< polled, and not yet returned to the test
    std::deque<transport::MemoryId> sources{};
  };

  World(const Backend& backend, Rank size, std::size_t bytes = kBytes)
      : make_(backend.start()), nodes_(size) {
    for (Rank rank = 0; rank < size; ++rank) {
      Node& node = nodes_[rank];
      node.transport = make_(rank);
      auto memory = SharedMemory::create(bytes);
      EXPECT_TRUE(memory.has_value()) << memory.error().message;
      node.memory = *std::move(memory);
      auto region = node.transport->register_memory(describe(node.memory));
      EXPECT_TRUE(region.has_value()) << region.error().message;
      node.region = *std::move(region);
    }
  }

  static transport::MemoryDesc describe(const SharedMemory& memory) {
    return {.address = memory.data(),
            .bytes = memory.size(),
            .kind = transport::MemoryKind::kShared,
            .fd = memory.fd()};
  }

  [[nodiscard]] Rank size() const { return static_cast<Rank>(nodes_.size()); }
  Node& operator[](Rank rank) { return nodes_[rank]; }
  transport::Transport& transport(Rank rank) { return *nodes_[rank].transport; }
  std::span<std::byte> memory(Rank rank) { return nodes_[rank].memory.bytes(); }
  const transport::RemoteRegion& remote(Rank rank) { return nodes_[rank].region.remote; }

  /// Opens and connects two ranks.
  void join(Rank a, Rank b) {
    auto from_a = transport(a).open(b);
    auto from_b = transport(b).open(a);
    ASSERT_TRUE(from_a.has_value()) << from_a.error().message;
    ASSERT_TRUE(from_b.has_value()) << from_b.error().message;
    const Status at_a = transport(a).connect(b, *from_b);
    const Status at_b = transport(b).connect(a, *from_a);
    ASSERT_TRUE(at_a.ok()) << at_a.message;
    ASSERT_TRUE(at_b.ok()) << at_b.message;
    if (transport(a).query().arrives_before_connect) return;
    // The connection may not be complete yet; until then post() accepts nothing.
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      post(from, greeting(to));
      (void)wait(to, transport::Event::Kind::kArrival);
    }
  }

  void join_all() {
    for (Rank a = 0; a < size(); ++a) {
      for (Rank b = a + 1; b < size(); ++b) join(a, b);
    }
  }

  /// Polls one rank once; returns the number of events.
  std::size_t poll(Rank rank) {
    if (!nodes_[rank].transport) return 0;
    transport::Event events[8];
    const std::size_t count = transport(rank).poll(events);
    for (std::size_t i = 0; i < count; ++i) nodes_[rank].events.push_back(std::move(events[i]));
    return count;
  }
  void poll_all() {
    for (Rank rank = 0; rank < size(); ++rank) poll(rank);
  }

  /// Polls all until `done`; false after kHangLimit.
  bool poll_until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + kHangLimit;
    while (!done()) {
      poll_all();
      if (std::chrono::steady_clock::now() > end) return false;
    }
    return true;
  }

  /// Posts one request, polling all ranks while the queue is full.
  void post(Rank rank, transport::WorkRequest request) {
    prepare(rank, request);
    ASSERT_TRUE(poll_until([&] {
      return transport(rank).post({&request, 1}) == 1;
    })) << "the queue stayed full";
  }

  /// Registers the local memory of the request, if the transport needs that.
  void prepare(Rank rank, transport::WorkRequest& request) {
    if (!transport(rank).query().needs_local_registration) return;
    for (auto& piece : request.pieces) {
      if (piece.bytes > 0 && piece.memory < 0) piece.memory = source(rank, {piece.address, piece.bytes});
    }
    if (!request.into.empty()) request.pieces[0].memory = source(rank, request.into);
  }

  /// Waits for the next event of that kind at a rank and removes it.
  transport::Event wait(Rank rank, transport::Event::Kind kind) {
    std::optional<transport::Event> found;
    EXPECT_TRUE(poll_until([&] { return (found = take(rank, kind)).has_value(); }))
        << "the event did not come";
    return found.value_or(transport::Event{});
  }

  std::optional<transport::Event> take(Rank rank, transport::Event::Kind kind) {
    auto& events = nodes_[rank].events;
    for (auto it = events.begin(); it != events.end(); ++it) {
      if (it->kind != kind) continue;
      transport::Event event = std::move(*it);
      events.erase(it);
      return event;
    }
    return std::nullopt;
  }

  /// Polls long enough for every outstanding request to arrive.
  void settle() {
    for (int i = 0; i < 3000; ++i) poll_all();
    if (!transport_of_first().query().asynchronous) return;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    while (std::chrono::steady_clock::now() < end) poll_all();
  }

  /// The longest time from post() to the arrival at the peer, in ms.
  [[nodiscard]] int wait_limit_ms() { return transport_of_first().query().asynchronous ? 60'000 : 0; }

 private:
  static transport::WorkRequest greeting(Rank to) {
    transport::WorkRequest request;
    request.peer = to;
    request.signalled = false;
    return request;
  }

  transport::Transport& transport_of_first() {
    for (Node& node : nodes_) {
      if (node.transport) return *node.transport;
    }
    std::abort();
  }

  /// Registers exactly these bytes. Tests reuse addresses for other memory, so each call registers anew. Old
  /// registrations may end, because their requests are complete by now.
  transport::MemoryId source(Rank rank, std::span<const std::byte> bytes) {
    auto& sources = nodes_[rank].sources;
    if (sources.size() > 2000) {
      transport(rank).deregister(sources.front());
      sources.pop_front();
    }
    auto region = transport(rank).register_memory(
        {.address = const_cast<std::byte*>(bytes.data()), .bytes = bytes.size()});
    EXPECT_TRUE(region.has_value()) << region.error().message;
    sources.push_back(region ? region->local : -1);
    return sources.back();
  }

  std::function<std::unique_ptr<transport::Transport>(Rank)> make_;
  std::deque<Node> nodes_;
};

/// A put of one piece.
inline transport::WorkRequest put(transport::Verb verb, Rank peer, std::span<const std::byte> data,
                                  const transport::RemoteRegion& remote, std::uint64_t offset,
                                  std::uint32_t token = 0) {
  transport::WorkRequest request;
  request.verb = verb;
  request.peer = peer;
  request.pieces[0] = {.address = data.data(), .bytes = data.size(), .memory = -1};
  request.num_pieces = 1;
  request.remote = &remote;
  request.remote_offset = offset;
  request.token = token;
  return request;
}

/// A notification without data.
inline transport::WorkRequest notification(Rank peer, std::uint32_t token, bool signalled = false) {
  transport::WorkRequest request;
  request.peer = peer;
  request.token = token;
  request.signalled = signalled;
  return request;
}

inline std::vector<std::byte> random_bytes(std::mt19937_64& random, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t at = 0; at < count; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, count - at));
  }
  return bytes;
}

}  // namespace hips::test
