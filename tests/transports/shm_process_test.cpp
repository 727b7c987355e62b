// Tests of shm between real processes: how they end, and that they leave nothing behind.

#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "tests/hang_limit.hpp"
#include "tests/transports/child.hpp"
#include "tests/transports/world.hpp"
#include "transports/shm/shm.hpp"
#include "transports/shm/shm_transport.hpp"

namespace hips::test {
namespace shm_process_test {
namespace {

using transport::Address;
using transport::Event;
using transport::RemoteRegion;
using transport::Transport;
using transport::Verb;
using transport::WorkRequest;
using Clock = std::chrono::steady_clock;
constexpr int kHangLimitMs = std::chrono::milliseconds(hips::test::kHangLimit).count();
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A rank in its own process: a transport, and a segment that peers write to.
struct Node {
  std::unique_ptr<Transport> transport = shm::create({.max_peers = 64}).value();
  SharedMemory memory = SharedMemory::create(1 << 20).value();
  transport::Region region = transport->register_memory(World::describe(memory)).value();
  RemoteRegion theirs;

  /// Connects to the process at the other end of the channel.
  Status meet(Channel& channel, transport::PeerId peer) {
    channel.send(transport->open(peer).value());
    channel.send_value(region.remote);
    const auto address = channel.receive();
    theirs = channel.receive_value<RemoteRegion>();
    return transport->connect(peer, address);
  }

  void post(const WorkRequest& request) const {
    while (transport->post({&request, 1}) == 0) std::this_thread::yield();
  }

  /// The next event; kPortDown, which shm never raises, after the hang limit.
  [[nodiscard]] Event next() const {
    const auto end = Clock::now() + hips::test::kHangLimit;
    Event event;
    while (transport->poll({&event, 1}) == 0) {
      if (Clock::now() > end)
        return {.kind = Event::Kind::kPortDown, .peer = -1, .token = 0, .context = 0, .error = {}};
      std::this_thread::yield();
    }
    return event;
  }
};

std::vector<std::byte> pattern(std::size_t count, int start) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(start + 7 * static_cast<int>(i));
  return bytes;
}

// A poll between arm() and the sleep takes the events so far. A byte that a sender writes right after that poll
// is the only wake-up for the sleep.
TEST(ShmProcess, IdlePollsKeepTheWakeUpInThePipe) {
  Node sleeper, peer;
  const auto address = sleeper.transport->open(0).value(), peers = peer.transport->open(0).value();
  ASSERT_TRUE(sleeper.transport->connect(0, peers).ok());
  ASSERT_TRUE(peer.transport->connect(0, address).ok());
  const auto readable = [](int fd) {
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&waiting, 1, 0) == 1;
  };
  for (int sleep = 0; sleep < 3; ++sleep) {
    Event event;
    while (sleeper.transport->arm().ready) {  // the peer also rings when it connects
      sleeper.transport->disarm();
      ASSERT_EQ(sleeper.transport->poll({&event, 1}), 0U);
    }
    const transport::Armed armed = sleeper.transport->arm();
    ASSERT_FALSE(armed.ready);
    ASSERT_FALSE(readable(armed.fd));
    peer.post(put(Verb::kPutNotify, 0, {}, sleeper.region.remote, 0, 7));
    EXPECT_EQ(sleeper.next().kind, Event::Kind::kArrival);
    for (int i = 0; i < 5000; ++i) ASSERT_EQ(sleeper.transport->poll({&event, 1}), 0U);
    EXPECT_TRUE(readable(armed.fd));
    sleeper.transport->disarm();
    EXPECT_FALSE(readable(armed.fd));
    // No rank sleeps, so no rank rings.
    peer.post(put(Verb::kPutNotify, 0, {}, sleeper.region.remote, 0, 8));
    EXPECT_FALSE(readable(armed.fd));
    EXPECT_EQ(sleeper.next().kind, Event::Kind::kArrival);
  }
}

TEST(ShmProcess, TwoProcessesPutGetAndAttach) {
  Child child([](Channel& channel) {
    Node node;
    if (!node.meet(channel, 0).ok()) return 1;
    if (node.next().kind != Event::Kind::kArrival) return 2;
    const auto expected = pattern(100'000, 3);
    if (!std::equal(expected.begin(), expected.end(), node.memory.data() + 11)) return 3;
    auto span = node.transport->attach(0, node.theirs);
    if (!span) return 4;
    (*span)[5] = std::byte{55};
    WorkRequest request = notification(0, 2);
    node.post(request);
    std::vector<std::byte> into(1000);
    request = {};
    request.verb = Verb::kGet;
    request.peer = 0;
    request.into = into;
    request.remote = &node.theirs;
    request.remote_offset = 77;
    node.post(request);
    if (node.next().kind != Event::Kind::kCompletion) return 5;
    const auto got = pattern(1000, 9);
    return into == got ? 0 : 6;
  });
  Node node;
  const auto readable_by_peer = pattern(1000, 9);
  std::ranges::copy(readable_by_peer, node.memory.data() + 77);
  const Status met = node.meet(child.channel(), 0);
  ASSERT_TRUE(met.ok()) << met.message;
  const auto data = pattern(100'000, 3);
  WorkRequest request = put(Verb::kPutNotify, 0, data, node.theirs, 11);
  request.signalled = false;
  node.post(request);
  const Event event = node.next();
  EXPECT_EQ(event.kind, Event::Kind::kArrival);
  EXPECT_EQ(event.token, 2u);
  EXPECT_EQ(node.memory.data()[5], std::byte{55});
  EXPECT_EQ(child.wait(), 0);
}

TEST(ShmProcess, NineProcessesExchangeMessagesWithAll) {
  constexpr int kSize = 9;
  constexpr std::uint32_t kRounds = 200;
  std::vector<std::unique_ptr<Child>> children;
  for (int rank = 0; rank < kSize; ++rank) {
    children.push_back(std::make_unique<Child>([rank](Channel& channel) {
      Node node;
      std::vector<RemoteRegion> regions(kSize);
      for (int peer = 0; peer < kSize; ++peer) {
        if (peer != rank) channel.send(node.transport->open(peer).value());
      }
      channel.send_value(node.region.remote);
      for (int peer = 0; peer < kSize; ++peer) {
        if (peer == rank) continue;
        if (!node.transport->connect(peer, channel.receive()).ok()) return 1;
        regions[static_cast<std::size_t>(peer)] = channel.receive_value<RemoteRegion>();
      }
      int arrivals = 0;
      const auto poll_one = [&] {
        Event event;
        if (node.transport->poll({&event, 1}) == 0) return true;
        if (event.kind != Event::Kind::kArrival) return false;
        ++arrivals;
        std::uint32_t value = 0;
        std::memcpy(&value, node.memory.data() + 64 * event.peer, sizeof value);
        return value >= event.token;  // later rounds may have overwritten it
      };
      for (std::uint32_t round = 0; round < kRounds; ++round) {
        for (int peer = 0; peer < kSize; ++peer) {
          if (peer == rank) continue;
          WorkRequest request =
              put(Verb::kPutNotify, peer, std::as_bytes(std::span(&round, 1)),
                  regions[static_cast<std::size_t>(peer)], 64 * static_cast<std::size_t>(rank), round);
          request.signalled = false;
          while (node.transport->post({&request, 1}) == 0) {
            if (!poll_one()) return 2;
          }
        }
      }
      const auto end = Clock::now() + hips::test::kHangLimit;
      while (arrivals < static_cast<int>(kRounds) * (kSize - 1)) {
        if (!poll_one()) return 3;
        if (Clock::now() > end) return 4;
      }
      channel.send({});
      (void)channel.receive();  // stays until all are done
      return 0;
    }));
  }
  std::vector<std::vector<std::vector<std::byte>>> addresses(kSize,
                                                             std::vector<std::vector<std::byte>>(kSize));
  std::vector<RemoteRegion> regions(kSize);
  for (std::size_t a = 0; a < kSize; ++a) {
    for (std::size_t b = 0; b < kSize; ++b) {
      if (a != b) addresses[a][b] = children[a]->channel().receive();
    }
    regions[a] = children[a]->channel().receive_value<RemoteRegion>();
  }
  for (std::size_t a = 0; a < kSize; ++a) {
    for (std::size_t b = 0; b < kSize; ++b) {
      if (a == b) continue;
      children[a]->channel().send(addresses[b][a]);
      children[a]->channel().send_value(regions[b]);
    }
  }
  for (auto& child : children) (void)child->channel().receive();
  for (auto& child : children) child->channel().send({});
  for (auto& child : children) EXPECT_EQ(child->wait(), 0);
}

TEST(ShmProcess, TheLastRequestsOfAProcessThatExitsArrive) {
  for (int round = 0; round < 20; ++round) {
    Child child([round](Channel& channel) {
      auto node = std::make_unique<Node>();
      if (!node->meet(channel, 0).ok()) return 1;
      if (round % 4 < 2) (void)channel.receive();  // else it ends before the other side has connected
      const auto data = pattern(50'000, round);
      node->post(put(Verb::kPutNotify, 0, data, node->theirs, 5, 42));
      if (round % 2 == 0) _exit(0);  // without close()
      node.reset();
      return 0;
    });
    Node node;
    const bool connected = node.meet(child.channel(), 0).ok();
    if (round % 4 < 2) {
      ASSERT_TRUE(connected);
      child.channel().send({});
    }
    EXPECT_EQ(child.wait(), 0);
    const Event event = node.next();
    ASSERT_EQ(event.kind, Event::Kind::kArrival);
    EXPECT_EQ(event.token, 42u);
    const auto data = pattern(50'000, round);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), node.memory.data() + 5));
    if (connected) {
      EXPECT_EQ(node.next().kind, Event::Kind::kPeerDead);
    }
  }
}

/// Named files that a process maps or holds open.
std::set<std::string> named_files_under(const std::string& folder, pid_t pid) {
  std::set<std::string> found;
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    const auto at = line.find(folder);
    if (at != std::string::npos) found.insert(line.substr(at));
  }
  const std::string fds = "/proc/" + std::to_string(pid) + "/fd";
  DIR* entries = opendir(fds.c_str());
  while (const dirent* entry = entries == nullptr ? nullptr : readdir(entries)) {
    char target[256] = {};
    if (readlink((fds + "/" + entry->d_name).c_str(), target, sizeof target - 1) > 0 &&
        std::string(target).starts_with(folder)) {
      found.insert(target);
    }
  }
  if (entries != nullptr) closedir(entries);
  return found;
}

TEST(ShmProcess, AKilledProcessLeavesNoFilesAndWakesItsSleepingPeer) {
  std::mt19937_64 random(seed());
  for (int trial = 0; trial < 20; ++trial) {
    Child victim([](Channel& channel) {
      Node node;
      if (!node.meet(channel, 0).ok()) return 1;
      const auto data = pattern(3000, 1);
      for (std::uint32_t i = 0;; ++i) {
        WorkRequest request = put(Verb::kPutNotify, 0, data, node.theirs, i % 1000, i);
        request.signalled = i % 2 == 0;
        Event events[4];
        while (node.transport->post({&request, 1}) == 0) (void)node.transport->poll(events);
        (void)node.transport->poll(events);
      }
    });
    Node node;
    ASSERT_TRUE(node.meet(victim.channel(), 0).ok());
    const auto kill_at = Clock::now() + std::chrono::microseconds(random() % 20'000);
    EXPECT_TRUE(named_files_under("/dev/shm/", victim.pid()).empty());
    std::thread killer([&] {
      std::this_thread::sleep_until(kill_at);
      victim.kill();
    });
    // Rank 0 sleeps whenever no event is pending.
    std::uint64_t expected = 0;
    bool dead = false;
    Event events[8];
    while (!dead) {
      std::size_t count = node.transport->poll(events);
      if (count == 0) {
        const transport::Armed armed = node.transport->arm();
        if (!armed.ready && (count = node.transport->poll(events)) == 0) {
          pollfd waiting{.fd = armed.fd, .events = POLLIN, .revents = 0};
          ASSERT_EQ(poll(&waiting, 1, kHangLimitMs), 1) << "asleep for ever";
        }
        node.transport->disarm();
      }
      for (std::size_t i = 0; i < count; ++i) {
        if (events[i].kind == Event::Kind::kPeerDead) {
          dead = true;
          EXPECT_EQ(events[i].error.code, Code::kPeerLost);
        } else {
          EXPECT_EQ(events[i].token, expected) << "a notification was lost or doubled";
          expected = events[i].token + 1;
        }
      }
    }
    killer.join();
    EXPECT_EQ(victim.wait(), 128 + SIGKILL);
    // post() accepts and discards requests to the dead rank.
    for (int i = 0; i < 1000; ++i) node.post(notification(0, 1));
    EXPECT_TRUE(named_files_under("/dev/shm/", getpid()).empty());
  }
}

TEST(ShmProcess, ANotificationWhoseSenderDiedBeforeTheDoorbellStillArrives) {
  for (const bool asleep : {true, false}) {
    // The peer does the steps of post() by hand, and dies between two of them.
    Child victim([](Channel& channel) {
      auto mine = shm::create({}).value();
      channel.send(mine->open(0).value());
      const auto address = channel.receive();
      shm::ShmAddress wire;
      std::memcpy(&wire, address.data(), sizeof wire);
      auto control = SharedMemory::attach(wire.control).value();
      shm::ControlHeader header;
      std::memcpy(&header, control.data(), sizeof header);
      auto* ring = reinterpret_cast<shm::NotifyRing*>(control.data() +
                                                      shm::ring_offset(wire.slot, header.ring_entries));
      ring->owner.store(wire.ring_token | 1);
      shm::RingSender sender(ring, header.ring_entries);
      if (!sender.has_space()) return 1;
      sender.push(77);
      channel.send({});
      for (;;) pause();
    });
    auto transport = shm::create({}).value();
    const auto address = transport->open(0).value();
    const auto theirs = victim.channel().receive();
    victim.channel().send(address);
    ASSERT_TRUE(transport->connect(0, theirs).ok());
    (void)victim.channel().receive();
    Event events[4];
    EXPECT_EQ(transport->poll(events), 0u);
    if (asleep) {
      const transport::Armed armed = transport->arm();
      ASSERT_FALSE(armed.ready);
      victim.kill();
      pollfd waiting{.fd = armed.fd, .events = POLLIN, .revents = 0};
      ASSERT_EQ(poll(&waiting, 1, kHangLimitMs), 1);
      transport->disarm();
    } else {
      victim.kill();
    }
    // Expect: the notification, and only then the death.
    std::vector<Event> seen;
    for (const auto end = Clock::now() + hips::test::kHangLimit; seen.size() < 2 && Clock::now() < end;) {
      const std::size_t count = transport->poll(events);
      seen.insert(seen.end(), events, events + count);
    }
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen[0].kind, Event::Kind::kArrival);
    EXPECT_EQ(seen[0].token, 77u);
    EXPECT_EQ(seen[1].kind, Event::Kind::kPeerDead);
  }
}

TEST(ShmProcess, PollsDetectAKilledPeer) {
  Child victim([](Channel& channel) {
    Node node;
    if (!node.meet(channel, 0).ok()) return 1;
    for (;;) pause();
  });
  Node node;
  ASSERT_TRUE(node.meet(victim.channel(), 0).ok());
  victim.kill();
  EXPECT_EQ(node.next().kind, Event::Kind::kPeerDead);
}

TEST(ShmProcess, AStoppedPeerDelaysNoOtherRank) {
  Child stopped([](Channel& channel) {
    Node node;
    if (!node.meet(channel, 0).ok()) return 1;
    for (;;) pause();
  });
  Child lively([](Channel& channel) {
    Node node;
    if (!node.meet(channel, 1).ok()) return 1;
    for (std::uint32_t i = 0; i < 5000; ++i) {
      const Event event = node.next();
      if (event.kind != Event::Kind::kArrival || event.token != i) return 2;
      node.post(notification(1, i));
    }
    return 0;
  });
  Node node;
  ASSERT_TRUE(node.meet(stopped.channel(), 0).ok());
  ASSERT_TRUE(node.meet(lively.channel(), 1).ok());
  kill(stopped.pid(), SIGSTOP);
  const WorkRequest to_stopped = notification(0, 1);
  while (node.transport->post({&to_stopped, 1}) == 1) {
  }
  for (std::uint32_t i = 0; i < 5000; ++i) {
    EXPECT_EQ(node.transport->post({&to_stopped, 1}), 0u);
    node.post(notification(1, i));
    const Event event = node.next();
    ASSERT_EQ(event.kind, Event::Kind::kArrival);
    ASSERT_EQ(event.token, i);
  }
  EXPECT_EQ(lively.wait(), 0);
}

TEST(ShmProcess, AForkedChildThatEndsDoesNotDisturbItsParentsPeers) {
  Child peer([](Channel& channel) {
    Node node;
    if (!node.meet(channel, 0).ok()) return 1;
    (void)channel.receive();  // the fork has ended by now
    Event event;
    for (int i = 0; i < 5000; ++i) {
      if (node.transport->poll({&event, 1}) != 0) return 2;
    }
    channel.send({});
    event = node.next();
    if (event.kind != Event::Kind::kArrival || event.token != 7) return 3;
    _exit(0);  // without close(): only the watch on this process detects it
  });
  auto node = std::make_unique<Node>();
  ASSERT_TRUE(node->meet(peer.channel(), 0).ok());
  Child fork([&node](Channel&) {
    if (node->transport->open(5).has_value()) return 1;
    node.reset();  // as the destructors of statics do
    return 0;
  });
  EXPECT_EQ(fork.wait(), 0);
  peer.channel().send({});
  (void)peer.channel().receive();
  node->post(notification(0, 7));
  EXPECT_EQ(peer.wait(), 0);
  // Its death is still detected: the fork did not remove the watch.
  Event event = node->next();
  while (event.kind == Event::Kind::kCompletion) event = node->next();
  EXPECT_EQ(event.kind, Event::Kind::kPeerDead);
}

TEST(ShmProcess, ARingIsNotReusedWhileItsOldSenderMayWrite) {
  auto transport = shm::create({.max_peers = 1}).value();
  {
    Child old_sender([](Channel& channel) {
      auto mine = shm::create({}).value();
      channel.send(mine->open(0).value());
      if (!mine->connect(0, channel.receive()).ok()) return 1;
      channel.send({});
      for (;;) pause();
    });
    old_sender.channel().send(transport->open(0).value());
    ASSERT_TRUE(transport->connect(0, old_sender.channel().receive()).ok());
    (void)old_sender.channel().receive();
    transport->close(0);
    const auto refused = transport->open(1);
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().message, ::testing::HasSubstr("max_peers"));
  }
  // The sender is dead now.
  EXPECT_TRUE(transport->open(1).has_value());
}

TEST(ShmProcess, ConnectingToAnEndedProcessReturnsPeerLost) {
  auto transport = shm::create({}).value();
  Child child([](Channel& channel) {
    auto mine = shm::create({}).value();
    channel.send(mine->open(0).value());
    return 0;
  });
  const auto address = child.channel().receive();
  EXPECT_EQ(child.wait(), 0);
  ASSERT_TRUE(transport->open(0).has_value());
  const Status status = transport->connect(0, address);
  EXPECT_EQ(status.code, Code::kPeerLost);
  EXPECT_THAT(status.message, ::testing::HasSubstr("has ended"));
}

TEST(ShmProcess, TheErrorNamesAnotherPidNamespace) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to make a pid namespace";
  auto transport = shm::create({}).value();
  const auto address = transport->open(0).value();
  Child child([&address](Channel& channel) {
    if (unshare(CLONE_NEWPID) != 0) return 77;
    Child inside([&address, &channel](Channel&) {
      auto mine = shm::create({}).value();
      (void)mine->open(0);
      const Status status = mine->connect(0, address);
      channel.send(std::as_bytes(std::span(status.message)));
      return status.code == Code::kUnsupported ? 0 : 1;
    });
    return inside.wait();
  });
  const int code = child.wait();
  if (code == 77) GTEST_SKIP() << "unshare(CLONE_NEWPID) is not permitted here";
  EXPECT_EQ(code, 0);
  const auto bytes = child.channel().receive();
  EXPECT_THAT(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
              ::testing::HasSubstr("another pid namespace"));
}

TEST(ShmProcess, TheErrorNamesAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  auto transport = shm::create({}).value();
  const auto address = transport->open(0).value();
  Child child([&address](Channel& channel) {
    if (setgid(65534) != 0 || setuid(65534) != 0) return 77;
    auto mine = shm::create({}).value();
    (void)mine->open(0);
    const Status status = mine->connect(0, address);
    channel.send(std::as_bytes(std::span(status.message)));
    return status.code == Code::kUnsupported ? 0 : 1;
  });
  const int code = child.wait();
  if (code == 77) GTEST_SKIP() << "setuid is not permitted here";
  EXPECT_EQ(code, 0);
  const auto bytes = child.channel().receive();
  EXPECT_THAT(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
              ::testing::HasSubstr("it belongs to user 0 and this process to user 65534"));
}

TEST(ShmProcess, TheMachineIsTheSameForTwoProcesses) {
  Child child([](Channel& channel) {
    const std::string text = shm::Machine::current().to_string();
    channel.send(std::as_bytes(std::span(text)));
    return 0;
  });
  const auto bytes = child.channel().receive();
  const shm::Machine here = shm::Machine::current();
  EXPECT_EQ(here.to_string(), std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  EXPECT_FALSE(here.boot_id.empty());
  EXPECT_NE(here.pid_namespace, 0u);
  EXPECT_FALSE(here.hostname.empty());
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace shm_process_test
}  // namespace hips::test
