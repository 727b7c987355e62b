// The contract of transports/transport.hpp, tested for every transport. Add a transport to backends() in
// local_backends.cpp, or in a file of its own if it needs a device.

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "tests/hang_limit.hpp"
#include "tests/transports/world.hpp"

namespace hips::test {
namespace conformance_test {
namespace {

using transport::Event;
using transport::MemoryDesc;
using transport::MemoryKind;
using transport::RemoteRegion;
using transport::Verb;
using transport::WorkRequest;

class Conformance : public ::testing::TestWithParam<Backend> {
 protected:
  std::mt19937_64 random_{seed()};
};

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

TEST_P(Conformance, ANotificationWithoutDataArrivesWithItsToken) {
  World world(GetParam(), 2);
  world.join_all();
  world.post(0, notification(1, 0xfffffffe));
  const Event event = world.wait(1, Event::Kind::kArrival);
  EXPECT_EQ(event.token, 0xfffffffe);
  EXPECT_EQ(event.peer, 0);
  EXPECT_TRUE(event.error.ok());
  world.settle();
  EXPECT_TRUE(world[1].events.empty()) << "it arrived more than once";
}

TEST_P(Conformance, PiecesAreWrittenConsecutivelyFromTheOffset) {
  World world(GetParam(), 2, 1 << 17);
  world.join_all();
  for (std::size_t header_bytes : {0u, 1u, 64u}) {
    for (std::size_t payload_bytes : {0u, 1u, 7u, 4096u, 100'000u}) {
      const auto header = random_bytes(random_, header_bytes);
      const auto payload = random_bytes(random_, payload_bytes);
      const std::size_t offset = random_() % 5000;
      std::ranges::fill(world.memory(1), std::byte{0x5a});
      WorkRequest request = put(Verb::kPutNotify, 1, header, world.remote(1), offset, 7);
      request.pieces[1] = {.address = payload.data(), .bytes = payload.size(), .memory = -1};
      request.num_pieces = 2;
      world.post(0, request);
      (void)world.wait(1, Event::Kind::kArrival);

      const auto memory = world.memory(1);
      EXPECT_TRUE(equal(memory.subspan(offset, header_bytes), header));
      EXPECT_TRUE(equal(memory.subspan(offset + header_bytes, payload_bytes), payload));
      // Expect: the bytes around it are unchanged.
      const auto after = memory.subspan(offset + header_bytes + payload_bytes);
      EXPECT_EQ(std::ranges::count(memory.first(offset), std::byte{0x5a}),
                static_cast<std::ptrdiff_t>(offset));
      EXPECT_EQ(std::ranges::count(after, std::byte{0x5a}), static_cast<std::ptrdiff_t>(after.size()));
      (void)world.wait(0, Event::Kind::kCompletion);
    }
  }
}

TEST_P(Conformance, APutWithoutNotificationRaisesNoArrival) {
  World world(GetParam(), 2);
  world.join_all();
  const auto data = random_bytes(random_, 1000);
  world.post(0, put(Verb::kPut, 1, data, world.remote(1), 24));
  (void)world.wait(0, Event::Kind::kCompletion);
  // The completion promises only that the source may be overwritten.
  world.settle();
  EXPECT_TRUE(equal(world.memory(1).subspan(24, 1000), data));
  EXPECT_TRUE(world[1].events.empty());
}

TEST_P(Conformance, AnArrivalComesAfterItsOwnDataAndAllEarlierPuts) {
  World world(GetParam(), 2);
  world.join_all();
  for (int round = 0; round < 200; ++round) {
    const std::size_t num_puts = random_() % 6;
    const auto data = random_bytes(random_, 8 * (num_puts + 1));
    std::ranges::fill(world.memory(1).first(data.size()), std::byte{0});
    for (std::size_t i = 0; i <= num_puts; ++i) {
      WorkRequest request = put(i < num_puts ? Verb::kPut : Verb::kPutNotify, 1,
                                std::span(data).subspan(8 * i, 8), world.remote(1), 8 * i);
      request.signalled = i == num_puts;
      world.post(0, request);
    }
    (void)world.wait(1, Event::Kind::kArrival);
    ASSERT_TRUE(equal(world.memory(1).first(data.size()), data)) << "round " << round;
    (void)world.wait(0, Event::Kind::kCompletion);
  }
}

TEST_P(Conformance, AGetReadsThePeersMemory) {
  World world(GetParam(), 2);
  world.join_all();
  const auto data = random_bytes(random_, 5000);
  std::ranges::copy(data, world.memory(1).begin() + 123);
  std::vector<std::byte> into(5000);
  WorkRequest request;
  request.verb = Verb::kGet;
  request.peer = 1;
  request.into = into;
  request.remote = &world.remote(1);
  request.remote_offset = 123;
  request.context = 99;
  world.post(0, request);
  EXPECT_EQ(world.wait(0, Event::Kind::kCompletion).context, 99u);
  EXPECT_TRUE(equal(into, data));
  world.settle();
  EXPECT_TRUE(world[1].events.empty()) << "a get is silent at the peer";
}

TEST_P(Conformance, ALargeMessageArrivesCompletely) {
  const std::size_t bytes = 24 << 20;
  World world(GetParam(), 2, bytes + 64);
  world.join_all();
  ASSERT_GE(world.transport(0).query().max_message_bytes, bytes);
  const auto data = random_bytes(random_, bytes);
  world.post(0, put(Verb::kPutNotify, 1, data, world.remote(1), 64));
  (void)world.wait(1, Event::Kind::kArrival);
  EXPECT_TRUE(equal(world.memory(1).subspan(64), data));
  (void)world.wait(0, Event::Kind::kCompletion);
}

TEST_P(Conformance, EachSignalledRequestCompletesOnceWithItsContext) {
  World world(GetParam(), 2);
  world.join_all();
  std::set<std::uint64_t> expected;
  std::size_t arrivals = 0;
  const auto data = random_bytes(random_, 64);
  for (std::uint64_t i = 0; i < 500; ++i) {
    WorkRequest request = put(i % 3 == 0 ? Verb::kPut : Verb::kPutNotify, 1, data, world.remote(1), 0);
    request.signalled = random_() % 2 == 0;
    request.context = i;
    if (request.signalled) expected.insert(i);
    if (i % 3 != 0) ++arrivals;
    world.post(0, request);
  }
  world.settle();
  EXPECT_EQ(world[1].events.size(), arrivals);
  std::multiset<std::uint64_t> seen;
  for (const Event& event : world[0].events) {
    EXPECT_EQ(event.kind, Event::Kind::kCompletion);
    EXPECT_EQ(event.peer, 1);
    seen.insert(event.context);
  }
  EXPECT_TRUE(std::ranges::equal(seen, expected));
}

TEST_P(Conformance, ASourceMayBeOverwrittenAfterItsCompletion) {
  World world(GetParam(), 2);
  world.join_all();
  std::array<std::byte, 256> source;
  for (int round = 0; round < 200; ++round) {
    source.fill(static_cast<std::byte>(round));
    world.post(0, put(Verb::kPutNotify, 1, source, world.remote(1), 0));
    (void)world.wait(0, Event::Kind::kCompletion);
    source.fill(std::byte{0xff});
    (void)world.wait(1, Event::Kind::kArrival);
    ASSERT_EQ(std::ranges::count(world.memory(1).first(256), static_cast<std::byte>(round)), 256);
  }
}

TEST_P(Conformance, ACompletionAlsoFreesTheSourcesOfEarlierUnsignalledRequests) {
  World world(GetParam(), 2);
  world.join_all();
  std::vector<std::byte> source(8 * 64);
  for (int round = 0; round < 100; ++round) {
    std::ranges::fill(source, static_cast<std::byte>(round));
    for (std::size_t i = 0; i < 8; ++i) {
      WorkRequest request =
          put(Verb::kPut, 1, std::span(source).subspan(64 * i, 64), world.remote(1), 64 * i);
      request.signalled = i == 7;
      world.post(0, request);
    }
    (void)world.wait(0, Event::Kind::kCompletion);
    std::ranges::fill(source, std::byte{0xff});
    world.post(0, notification(1, 0));
    (void)world.wait(1, Event::Kind::kArrival);
    ASSERT_EQ(std::ranges::count(world.memory(1).first(source.size()), static_cast<std::byte>(round)), 512);
  }
}

TEST_P(Conformance, AFullQueueAcceptsRequestsAgainAfterPolls) {
  World world(GetParam(), 2);
  world.join_all();
  // Rank 0 posts and no rank polls.
  std::uint32_t posted = 0;
  bool full = false;
  int refusals = 0;
  while (posted < 20'000 && !full) {
    const WorkRequest request = notification(1, posted);
    if (world.transport(0).post({&request, 1}) == 1) {
      ++posted;
      refusals = 0;
    } else {
      full = ++refusals == 100;  // injected refusals are not in a row
    }
  }
  ASSERT_TRUE(full || !GetParam().is_bounded);
  if (!full) GTEST_SKIP() << "capability missing: a bound on what is posted and not polled";
  EXPECT_GE(posted, std::min<std::size_t>(world.transport(0).query().max_posted, 4));
  // Rank 1 polls, and rank 0 posts the rest.
  for (std::uint32_t more = 0; more < 1000; ++more) world.post(0, notification(1, posted++));
  ASSERT_TRUE(world.poll_until([&] { return world[1].events.size() == posted; }));
  std::set<std::uint32_t> tokens;
  for (const Event& event : world[1].events) tokens.insert(event.token);
  EXPECT_EQ(tokens.size(), posted);
  EXPECT_EQ(*tokens.rbegin(), posted - 1);
}

TEST_P(Conformance, PostAcceptsABatchFromTheFront) {
  World world(GetParam(), 2);
  world.join_all();
  std::vector<WorkRequest> batch;
  for (std::uint32_t i = 0; i < 5000; ++i) batch.push_back(notification(1, i, true));
  std::span<const WorkRequest> rest(batch);
  ASSERT_TRUE(world.poll_until([&] {
    rest = rest.subspan(world.transport(0).post(rest));
    return rest.empty();
  }));
  ASSERT_TRUE(
      world.poll_until([&] { return world[1].events.size() == 5000 && world[0].events.size() == 5000; }));
  std::set<std::uint32_t> tokens;
  for (const Event& event : world[1].events) tokens.insert(event.token);
  EXPECT_EQ(tokens.size(), 5000u);
}

TEST_P(Conformance, APeerThatNeverPollsDoesNotDelayOthers) {
  World world(GetParam(), 3);
  world.join_all();
  // Rank 2 does not poll; rank 0 posts to it until the queue is full.
  const WorkRequest to_sleepy = notification(2, 1);
  for (int refusals = 0, posted = 0; refusals < 100 && posted < 2000;) {
    const bool taken = world.transport(0).post({&to_sleepy, 1}) == 1;
    refusals = taken ? 0 : refusals + 1;
    posted += taken;
    world.poll(0);
  }
  // Expect: ranks 0 and 1 still exchange messages.
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const WorkRequest request = notification(1, i);
    bool taken = false;
    for (int tries = 0; tries < 100'000 && !taken; ++tries) {
      taken = world.transport(0).post({&request, 1}) == 1;
      world.poll(0);
      world.poll(1);
    }
    ASSERT_TRUE(taken);
  }
  for (int i = 0; i < 3000; ++i) world.poll(1);
  EXPECT_EQ(world[1].events.size(), 1000u);
}

TEST_P(Conformance, TwentySevenRanksExchangeMessagesWithAll) {
  const Rank size = 27;
  const std::uint32_t rounds = 20;
  World world(GetParam(), size, 1 << 16);
  world.join_all();
  std::vector<std::uint64_t> values(size * rounds);
  std::iota(values.begin(), values.end(), 1000);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (Rank from = 0; from < size; ++from) {
      for (Rank to = 0; to < size; ++to) {
        if (from == to) continue;
        const auto& value = values[from * rounds + round];
        WorkRequest request = put(Verb::kPutNotify, to, std::as_bytes(std::span(&value, 1)), world.remote(to),
                                  8 * (from * rounds + round), round);
        request.signalled = false;
        world.post(from, request);
      }
    }
  }
  ASSERT_TRUE(world.poll_until([&] {
    for (Rank rank = 0; rank < size; ++rank) {
      if (world[rank].events.size() < (size - 1) * rounds) return false;
    }
    return true;
  }));
  for (Rank rank = 0; rank < size; ++rank) {
    std::set<std::pair<Rank, std::uint32_t>> seen;
    for (const Event& event : world[rank].events) {
      EXPECT_TRUE(seen.insert({event.peer, event.token}).second);
      std::uint64_t value = 0;
      std::memcpy(&value, world.memory(rank).data() + 8 * (event.peer * rounds + event.token), 8);
      EXPECT_EQ(value, values[event.peer * rounds + event.token]);
    }
    EXPECT_EQ(seen.size(), (size - 1) * rounds);
    EXPECT_FALSE(seen.contains({rank, 0}));
  }
}

TEST_P(Conformance, ABusyPeerDoesNotStarveTheOthers) {
  World world(GetParam(), 3);
  world.join_all();
  // Rank 0 posts more than rank 2 polls; rank 1 posts once.
  world.post(1, notification(2, 77));
  bool heard = false;
  for (int i = 0; i < 20'000 && !heard; ++i) {
    const std::array<WorkRequest, 2> flood = {notification(2, 1), notification(2, 1)};
    (void)world.transport(0).post(flood);
    Event event;
    if (world.transport(2).poll({&event, 1}) == 1) heard = event.token == 77;
  }
  EXPECT_TRUE(heard);
}

TEST_P(Conformance, RequestsPostedBeforeThePeerConnectsArrive) {
  World world(GetParam(), 2);
  auto from0 = world.transport(0).open(1);
  auto from1 = world.transport(1).open(0);
  const bool at_once = world.transport(0).query().arrives_before_connect;
  ASSERT_TRUE(world.transport(0).connect(1, *from1).ok());
  if (!at_once) {
    // post() may report "full" until the peer has connected; the request then arrives.
    const WorkRequest early = notification(1, 5);
    const bool taken = world.transport(0).post({&early, 1}) == 1;
    ASSERT_TRUE(world.transport(1).connect(0, *from0).ok());
    if (!taken) world.post(0, early);
    EXPECT_EQ(world.wait(1, Event::Kind::kArrival).token, 5u);
  } else {
    world.post(0, notification(1, 5));
    EXPECT_EQ(world.wait(1, Event::Kind::kArrival).token, 5u);
    ASSERT_TRUE(world.transport(1).connect(0, *from0).ok());
  }
  world.post(1, notification(0, 6));
  EXPECT_EQ(world.wait(0, Event::Kind::kArrival).token, 6u);
}

TEST_P(Conformance, CloseEndsTheEventsOfThatPeerOnly) {
  World world(GetParam(), 3);
  world.join_all();
  for (int i = 0; i < 3; ++i) {
    world.post(1, notification(0, 1));
    world.post(0, notification(1, 1, true));
  }
  world.transport(0).close(1);
  world[0].events.clear();
  // Rank 1 gets kPeerDead after the earlier arrivals.
  EXPECT_EQ(world.wait(1, Event::Kind::kPeerDead).peer, 0);
  world.settle();
  EXPECT_TRUE(world[0].events.empty()) << "an event of a closed endpoint";
  world.post(2, notification(0, 9));
  EXPECT_EQ(world.wait(0, Event::Kind::kArrival).peer, 2);
  world.transport(0).close(1);  // a closed and an unknown peer: no effect
  world.transport(0).close(17);
}

TEST_P(Conformance, AClosedPeerCanBeOpenedAgain) {
  World world(GetParam(), 2);
  for (std::uint32_t round = 0; round < (runs_everything() ? 100 : 25); ++round) {
    world.join(0, 1);
    for (std::uint32_t i = 0; i < 7; ++i) world.post(0, notification(1, round * 10 + i));
    std::set<std::uint32_t> tokens;
    for (int i = 0; i < 7; ++i) tokens.insert(world.wait(1, Event::Kind::kArrival).token);
    EXPECT_EQ(*tokens.begin(), round * 10);
    EXPECT_EQ(tokens.size(), 7u);
    world.transport(round % 2).close(1 - round % 2);
    EXPECT_EQ(world.wait(1 - round % 2, Event::Kind::kPeerDead).error.code, Code::kPeerLost);
    world.transport(1 - round % 2).close(round % 2);
    world.settle();
    EXPECT_TRUE(world[0].events.empty() && world[1].events.empty());
  }
}

TEST_P(Conformance, OtherMemoryCanBeRegisteredAfterDeregistration) {
  World world(GetParam(), 2);
  world.join_all();
  const auto data = random_bytes(random_, 100);
  for (int round = 0; round < 20; ++round) {
    auto memory = SharedMemory::create(4096 + 4096 * static_cast<std::size_t>(round)).value();
    auto region = world.transport(1).register_memory(World::describe(memory)).value();
    const std::size_t offset = memory.size() - data.size();
    world.post(0, put(Verb::kPutNotify, 1, data, region.remote, offset));
    (void)world.wait(1, Event::Kind::kArrival);
    (void)world.wait(0, Event::Kind::kCompletion);
    EXPECT_TRUE(equal(memory.bytes().subspan(offset), data));
    world.transport(1).deregister(region.local);
  }
}

TEST_P(Conformance, DataForDeregisteredMemoryIsDropped) {
  World world(GetParam(), 2);
  if (!world.transport(1).query().registers_freely) GTEST_SKIP() << "capability missing: registers_freely";
  world.join_all();
  const auto data = random_bytes(random_, 100'000);
  std::vector<std::byte> memory(data.size());
  for (std::uint32_t round = 0; round < 50; ++round) {
    auto region =
        world.transport(1).register_memory({.address = memory.data(), .bytes = memory.size()}).value();
    // Deregister before the post, or at a random moment after it.
    const std::uint64_t polls = random_() % 8;
    if (polls == 0) world.transport(1).deregister(region.local);
    world.post(0, put(Verb::kPut, 1, data, region.remote, 0));
    world.post(0, put(Verb::kPutNotify, 1, data, world.remote(1), 0, 2 * round));
    if (polls > 0) {
      for (std::uint64_t i = 0; i < polls; ++i) world.poll_all();
      world.transport(1).deregister(region.local);
    }
    std::ranges::fill(memory, std::byte{7});
    // Register the same memory again.
    auto next = world.transport(1).register_memory({.address = memory.data(), .bytes = 10}).value();
    EXPECT_EQ(world.wait(1, Event::Kind::kArrival).token, 2 * round);
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(world.wait(0, Event::Kind::kCompletion).kind, Event::Kind::kCompletion);
    ASSERT_EQ(std::ranges::count(memory, std::byte{7}), static_cast<std::ptrdiff_t>(memory.size()));
    world.post(0, put(Verb::kPutNotify, 1, std::span(data).first(10), next.remote, 0, 2 * round + 1));
    EXPECT_EQ(world.wait(1, Event::Kind::kArrival).token, 2 * round + 1);
    EXPECT_EQ(world.wait(0, Event::Kind::kCompletion).kind, Event::Kind::kCompletion);
    EXPECT_TRUE(
        equal(std::span<const std::byte>(memory).first(10), std::span<const std::byte>(data).first(10)));
    world.transport(1).deregister(next.local);
  }
  EXPECT_TRUE(world[0].events.empty() && world[1].events.empty());
}

TEST_P(Conformance, APartOfASegmentCanBeRegisteredBeforeTheWhole) {
  World world(GetParam(), 2);
  world.join_all();
  auto memory = SharedMemory::create(8192).value();
  MemoryDesc half = World::describe(memory);
  half.bytes = 4096;
  auto region = world.transport(1).register_memory(half).value();
  const auto data = random_bytes(random_, 4096);
  world.post(0, put(Verb::kPutNotify, 1, data, region.remote, 0));
  (void)world.wait(1, Event::Kind::kArrival);
  world.transport(1).deregister(region.local);
  region = world.transport(1).register_memory(World::describe(memory)).value();
  world.post(0, put(Verb::kPutNotify, 1, data, region.remote, 4096));
  (void)world.wait(1, Event::Kind::kArrival);
  EXPECT_TRUE(equal(memory.bytes().first(4096), data));
  EXPECT_TRUE(equal(memory.bytes().subspan(4096), data));
}

TEST_P(Conformance, AttachedMemoryIsThePeersMemory) {
  World world(GetParam(), 2);
  world.join_all();
  auto span = world.transport(0).attach(1, world.remote(1));
  if (!world.transport(0).query().attaches_memory) {
    ASSERT_FALSE(span.has_value());
    EXPECT_EQ(span.error().code, Code::kUnsupported);
    GTEST_SKIP() << "capability missing: attaches_memory";
  }
  ASSERT_TRUE(span.has_value()) << span.error().message;
  ASSERT_EQ(span->size(), World::kBytes);
  (*span)[17] = std::byte{42};
  EXPECT_EQ(world.memory(1)[17], std::byte{42});
  world.memory(1)[18] = std::byte{43};
  EXPECT_EQ((*span)[18], std::byte{43});
}

TEST_P(Conformance, OrdinaryMemoryWorksLikeSharedMemory) {
  World world(GetParam(), 2);
  world.join_all();
  std::vector<std::byte> memory(1000);
  auto region = world.transport(1).register_memory(
      {.address = memory.data(), .bytes = memory.size(), .kind = MemoryKind::kHost});
  if (!region) {
    ASSERT_EQ(region.error().code, Code::kUnsupported) << region.error().message;
    GTEST_SKIP() << "capability missing: registration of ordinary memory";
  }
  const auto data = random_bytes(random_, 1000);
  world.post(0, put(Verb::kPutNotify, 1, data, region->remote, 0));
  (void)world.wait(1, Event::Kind::kArrival);
  EXPECT_TRUE(equal(memory, data));
}

TEST_P(Conformance, PhantomMemoryMovesSizesOnly) {
  World world(GetParam(), 2);
  world.join_all();
  const std::size_t bytes = std::size_t{1} << 38;
  auto region =
      world.transport(1).register_memory({.address = nullptr, .bytes = bytes, .kind = MemoryKind::kPhantom});
  if (!region) {
    ASSERT_EQ(region.error().code, Code::kUnsupported) << region.error().message;
    GTEST_SKIP() << "capability missing: phantom memory";
  }
  // A quarter of a terabyte of phantom bytes, and real bytes into phantom memory.
  WorkRequest request = put(Verb::kPutNotify, 1, {}, region->remote, 0, 3);
  request.pieces[0].bytes = bytes;
  world.post(0, request);
  EXPECT_EQ(world.wait(1, Event::Kind::kArrival).token, 3u);
  const auto data = random_bytes(random_, 100);
  world.post(0, put(Verb::kPutNotify, 1, data, region->remote, 4, 4));
  EXPECT_EQ(world.wait(1, Event::Kind::kArrival).token, 4u);
  // Phantom bytes leave real memory unchanged.
  std::ranges::fill(world.memory(1), std::byte{7});
  request.pieces[0].bytes = World::kBytes;
  request.remote = &world.remote(1);
  world.post(0, request);
  (void)world.wait(1, Event::Kind::kArrival);
  EXPECT_EQ(std::ranges::count(world.memory(1), std::byte{7}), static_cast<std::ptrdiff_t>(World::kBytes));
}

TEST_P(Conformance, ADestroyedPeerRaisesPeerDeadAfterItsMessages) {
  World world(GetParam(), 3);
  world.join_all();
  const auto data = random_bytes(random_, 1000);
  // More messages than one poll returns, and rank 1 is not polled meanwhile.
  const auto count =
      static_cast<std::uint32_t>(std::min<std::size_t>(20, world.transport(0).query().max_posted));
  std::size_t completed = 0;
  for (std::uint32_t sent = 0; sent < count;) {
    WorkRequest request = put(Verb::kPutNotify, 1, data, world.remote(1), 1000 * sent, sent);
    world.prepare(0, request);
    sent += static_cast<std::uint32_t>(world.transport(0).post({&request, 1}));
    completed += world.poll(0);
  }
  const auto end = std::chrono::steady_clock::now() + kHangLimit;
  while (completed < count && std::chrono::steady_clock::now() < end) completed += world.poll(0);
  ASSERT_EQ(completed, count);
  world[0].transport.reset();
  ASSERT_TRUE(world.poll_until([&] {
    return std::ranges::any_of(world[1].events,
                               [](const Event& e) { return e.kind == Event::Kind::kPeerDead; });
  }));
  world.settle();
  ASSERT_EQ(world[1].events.size(), count + 1);
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(world[1].events[i].kind, Event::Kind::kArrival);
  const Event& dead = world[1].events[count];
  EXPECT_EQ(dead.kind, Event::Kind::kPeerDead);
  EXPECT_EQ(dead.peer, 0);
  EXPECT_EQ(dead.error.code, Code::kPeerLost);
  EXPECT_EQ(dead.error.scope, Scope::kPeer);
  EXPECT_FALSE(dead.error.message.empty());
  EXPECT_EQ(world.wait(2, Event::Kind::kPeerDead).peer, 0);
  for (std::size_t i = 0; i < count; ++i) EXPECT_TRUE(equal(world.memory(1).subspan(1000 * i, 1000), data));

  // post() accepts and discards requests to it. kPeerDead comes once, and others continue.
  world[1].events.clear();
  for (int i = 0; i < 1000; ++i) world.post(1, notification(0, 1));
  world.post(2, notification(1, 8));
  EXPECT_EQ(world.wait(1, Event::Kind::kArrival).token, 8u);
  world.settle();
  EXPECT_TRUE(world[1].events.empty());
}

TEST_P(Conformance, APutBeyondTheRegionWritesNothingAndBreaksTheEndpoint) {
  World world(GetParam(), 2);
  world.join_all();
  const auto data = random_bytes(random_, 100);
  world.post(0, put(Verb::kPutNotify, 1, data, world.remote(1), World::kBytes - 99));
  const Event event = world.wait(0, Event::Kind::kPeerDead);
  EXPECT_EQ(event.error.code, Code::kInternal);
  EXPECT_THAT(event.error.message,
              ::testing::HasSubstr("100 bytes at offset 1048477 of a region of 1048576"));
  EXPECT_EQ(std::ranges::count(world.memory(1), std::byte{0}), static_cast<std::ptrdiff_t>(World::kBytes));
  world.settle();
  EXPECT_TRUE(world[1].events.empty());
}

TEST_P(Conformance, ErrorsNameTheMisuse) {
  World world(GetParam(), 2);
  auto from0 = world.transport(0).open(1);
  EXPECT_EQ(world.transport(0).open(1).error().code, Code::kInvalidArgument);
  EXPECT_EQ(world.transport(0).open(-1).error().code, Code::kInvalidArgument);
  EXPECT_EQ(world.transport(1).connect(0, *from0).code, Code::kInvalidArgument) << "it was not opened";
  auto from1 = world.transport(1).open(0);
  transport::Address garbage(from1->size(), std::byte{0x11});
  EXPECT_EQ(world.transport(0).connect(1, garbage).code, Code::kInvalidArgument);
  EXPECT_EQ(world.transport(0).connect(1, std::span(*from1).first(3)).code, Code::kInvalidArgument);
  EXPECT_TRUE(world.transport(0).connect(1, *from1).ok()) << "a refused address must leave the endpoint open";
  EXPECT_EQ(world.transport(0).connect(1, *from1).code, Code::kInvalidArgument);
  EXPECT_EQ(world.transport(0).register_memory({.address = nullptr, .bytes = 5}).has_value(), false);
  EXPECT_FALSE(world.transport(0).attach(7, world.remote(1)).has_value());
  world.transport(0).deregister(-1);
  world.transport(0).deregister(1000);

  world.post(0, notification(55, 1));
  const Event event = world.wait(0, Event::Kind::kPeerDead);
  EXPECT_EQ(event.peer, 55);
  EXPECT_EQ(event.error.code, Code::kInvalidArgument);
}

bool readable(int fd, int wait_limit_ms) {
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&waiting, 1, wait_limit_ms) == 1;
}

TEST_P(Conformance, AnArmedTransportWakesAtAnArrivalAndNotBefore) {
  World world(GetParam(), 2);
  world.join_all();
  for (int round = 0; round < (runs_everything() ? 100 : 25); ++round) {
    // No event is pending: it may sleep.
    world.settle();
    world[1].events.clear();
    const transport::Armed armed = world.transport(1).arm();
    ASSERT_FALSE(armed.ready);
    ASSERT_EQ(world.poll(1), 0u);
    ASSERT_FALSE(readable(armed.fd, 0));
    // Rank 0 posts, and polls for transports that make progress only in calls.
    world.post(0, notification(1, 1));
    for (int i = 0; i < 100; ++i) world.poll(0);
    EXPECT_TRUE(readable(armed.fd, world.wait_limit_ms()) || !world[1].events.empty());
    world.transport(1).disarm();
    (void)world.wait(1, Event::Kind::kArrival);
    if (round > 20) continue;
    // It is awake, so the sender does not ring.
    world.post(0, notification(1, 2));
    (void)world.wait(1, Event::Kind::kArrival);
    EXPECT_FALSE(readable(armed.fd, 0));
  }
}

TEST_P(Conformance, ArmReportsReadyIfAnEventIsPending) {
  World world(GetParam(), 2);
  world.join_all();
  // With delayed requests an arrival after arm() wakes instead.
  const auto ready_or_woken = [&](Rank rank) {
    const transport::Armed armed = world.transport(rank).arm();
    return armed.ready || (world.wait_limit_ms() > 0 && readable(armed.fd, world.wait_limit_ms()));
  };
  world.post(0, notification(1, 1));
  EXPECT_TRUE(ready_or_woken(1));
  world.transport(1).disarm();
  // A completion is a pending event, too.
  world.post(0, notification(1, 1, true));
  EXPECT_TRUE(ready_or_woken(0));
  world.transport(0).disarm();
  // So are events that did not fit into the caller's span.
  world.settle();
  world[1].events.clear();
  world.post(0, notification(1, 2));
  world.post(0, notification(1, 3));
  Event one;
  ASSERT_TRUE(world.poll_until([&] {
    return world.transport(1).poll({&one, 1}) == 1 || !world[1].events.empty();
  }));
  if (world[1].events.empty()) {
    EXPECT_TRUE(world.transport(1).arm().ready);
    world.transport(1).disarm();
  }
}

TEST_P(Conformance, AnArmedTransportWakesWhenAPeerEnds) {
  World world(GetParam(), 2);
  world.join_all();
  world.settle();
  const transport::Armed armed = world.transport(1).arm();
  ASSERT_FALSE(armed.ready);
  world[0].transport.reset();
  if (!readable(armed.fd, world.wait_limit_ms())) {
    EXPECT_TRUE(world.transport(1).arm().ready) << "neither woken nor ready";
  }
  world.transport(1).disarm();
  EXPECT_EQ(world.wait(1, Event::Kind::kPeerDead).peer, 0);
}

TEST_P(Conformance, ASenderThatSleepsOnAFullQueueWakesWhenThereIsRoom) {
  World world(GetParam(), 2);
  world.join_all();
  const WorkRequest request = notification(1, 1);
  int posted = 0;
  int refusals = 0;
  while (refusals < 100 && posted < 20'000) {
    const bool taken = world.transport(0).post({&request, 1}) == 1;
    refusals = taken ? 0 : refusals + 1;
    posted += taken;
  }
  ASSERT_TRUE(refusals == 100 || !GetParam().is_bounded);
  if (refusals < 100) GTEST_SKIP() << "capability missing: a bound on what is posted and not polled";
  world.poll(0);  // takes pending events, so that only room wakes it
  const transport::Armed armed = world.transport(0).arm();
  for (int i = 0; i < 3000; ++i) world.poll(1);
  EXPECT_TRUE(armed.ready || readable(armed.fd, world.wait_limit_ms()));
  world.transport(0).disarm();
  world.post(0, request);
}

INSTANTIATE_TEST_SUITE_P(Transports, Conformance, ::testing::ValuesIn(backends()),
                         [](const auto& backend) { return backend.param.name; });

}  // namespace
}  // namespace conformance_test
}  // namespace hips::test
