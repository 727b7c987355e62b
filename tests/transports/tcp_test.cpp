// Tests of the TCP transport alone: unknown processes that connect, invalid frames, processes that end, and
// failing connection attempts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/log.hpp"
#include "lib/base/os/socket.hpp"
#include "tests/hang_limit.hpp"
#include "tests/transports/child.hpp"
#include "tests/transports/world.hpp"
#include "transports/tcp/tcp.hpp"
#include "transports/tcp/wire.hpp"

namespace hips::test {
namespace tcp_test {
namespace {

using namespace std::chrono_literals;
using tcp::FrameHeader;
using tcp::TcpAddress;
using tcp::TcpHello;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using transport::Event;
using transport::Transport;
using transport::Verb;

std::unique_ptr<Transport> make(const SocketAddress& address) {
  return tcp::create({.address = address, .device = "lo"}).value();
}

std::unique_ptr<Transport> make() {
  return make(any_address(AF_INET, INADDR_LOOPBACK));
}

Backend backend_at(const SocketAddress& address) {
  return {.name = "Tcp", .start = [address] { return [address](Rank) { return make(address); }; }};
}

Backend backend() {
  return backend_at(any_address(AF_INET, INADDR_LOOPBACK));
}

SocketAddress loopback_of_ipv6() {
  SocketAddress loopback = any_address(AF_INET6);
  reinterpret_cast<sockaddr_in6*>(&loopback.storage)->sin6_addr = in6addr_loopback;
  return loopback;
}

TcpAddress read(const transport::Address& address) {
  TcpAddress wire;
  std::memcpy(&wire, address.data(), sizeof wire);
  return wire;
}

transport::Address write(const TcpAddress& wire) {
  transport::Address address(sizeof wire);
  std::memcpy(address.data(), &wire, sizeof wire);
  return address;
}

SocketAddress socket_address(const TcpAddress& wire) {
  SocketAddress address{.length = wire.length};
  std::memcpy(&address.storage, wire.address.data(), wire.length);
  return address;
}

UniqueFd connect_to(const SocketAddress& address) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(fd.get(), address.get(), address.length), 0);
  return fd;
}

template <typename T>
void send_value(const UniqueFd& fd, const T& value) {
  EXPECT_EQ(send(fd.get(), &value, sizeof value, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof value));
}

/// The first event of a transport within the hang limit; kCompletion of peer -1 if there is none.
Event next_event(Transport& transport) {
  const auto end = std::chrono::steady_clock::now() + hips::test::kHangLimit;
  Event event;
  while (std::chrono::steady_clock::now() < end)
    if (transport.poll({&event, 1}) == 1) return event;
  return {};
}

/// True if `transport` closes the connection within the hang limit without raising an event.
bool is_closed(const UniqueFd& fd, Transport& transport) {
  const auto end = std::chrono::steady_clock::now() + hips::test::kHangLimit;
  while (std::chrono::steady_clock::now() < end) {
    Event event;
    EXPECT_EQ(transport.poll({&event, 1}), 0u) << event.error.message;
    std::byte byte;
    const ssize_t got = recv(fd.get(), &byte, 1, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return true;
  }
  return false;
}

/// A peer made of a bare socket. It connects to `honest` with the right token and can then send any bytes.
class RoguePeer {
 public:
  RoguePeer() : honest(make()), memory_(4096, std::byte{7}) {
    region = honest->register_memory({.address = memory_.data(), .bytes = memory_.size()}).value();
    const TcpAddress theirs = read(honest->open(0).value());
    listener = socket_address(theirs);
    hello.to = theirs.token;
    // The smaller token connects: ours is the smallest.
    TcpAddress mine = theirs;
    mine.token = {0, 1};
    EXPECT_TRUE(honest->connect(0, write(mine)).ok());
    fd = connect_to(listener);
    send_value(fd, hello);
    // `honest` answers with its hello.
    TcpHello answer;
    const auto end = std::chrono::steady_clock::now() + hips::test::kHangLimit;
    Event event;
    while (recv(fd.get(), &answer, sizeof answer, MSG_DONTWAIT | MSG_PEEK) != sizeof answer &&
           std::chrono::steady_clock::now() < end)
      EXPECT_EQ(honest->poll({&event, 1}), 0u);
    EXPECT_EQ(recv(fd.get(), &answer, sizeof answer, 0), static_cast<ssize_t>(sizeof answer));
    EXPECT_EQ(answer.to, mine.token);
  }

  /// A valid header for `bytes` at `offset` of the region.
  [[nodiscard]] FrameHeader header(FrameHeader::Kind kind, std::uint64_t offset, std::uint64_t bytes) const {
    return {.kind = kind,
            .token = 5,
            .memory = static_cast<std::int32_t>(region.remote.key[0]),
            .stamp = static_cast<std::uint32_t>(region.remote.key[1]),
            .offset = offset,
            .bytes = bytes};
  }

  /// The error with which `honest` breaks the endpoint. Nothing else may happen.
  Status failure() {
    const Event event = next_event(*honest);
    EXPECT_EQ(event.kind, Event::Kind::kPeerDead);
    EXPECT_EQ(event.error.scope, Scope::kPeer);
    EXPECT_EQ(std::ranges::count(memory_, std::byte{7}), static_cast<std::ptrdiff_t>(memory_.size()));
    EXPECT_TRUE(is_closed(fd, *honest));
    return event.error;
  }

  std::unique_ptr<Transport> honest;
  transport::Region region;
  SocketAddress listener;
  TcpHello hello;  ///< the hello that it sent
  UniqueFd fd;

 private:
  std::vector<std::byte> memory_;
};

TEST(TcpAcceptor, AConnectionWithoutTheTokenIsClosedAndDisturbsNoPeer) {
  World world(backend(), 2);
  world.join_all();
  const TcpAddress listener = read(world.transport(0).open(7).value());
  std::vector<UniqueFd> unknown;
  // A web browser, a HiPS process with another token, one that closes at once, and one that sends half a hello.
  unknown.push_back(connect_to(socket_address(listener)));
  const char browser[] = "GET / HTTP/1.1\r\nHost: node1\r\n\r\n";
  send_value(unknown.back(), browser);
  unknown.push_back(connect_to(socket_address(listener)));
  send_value(unknown.back(), TcpHello{.to = {listener.token.high, listener.token.low + 1}});
  for (const UniqueFd& connection : unknown) EXPECT_TRUE(is_closed(connection, world.transport(0)));
  connect_to(socket_address(listener)).reset();
  UniqueFd half = connect_to(socket_address(listener));
  send_value(half, tcp::kMagic);
  world.settle();
  EXPECT_TRUE(world[0].events.empty());
  half.reset();

  // Expect: connected peers keep communicating, and the incomplete hello disturbs none.
  world.post(0, notification(1, 1));
  EXPECT_EQ(world.wait(1, Event::Kind::kArrival).token, 1u);
}

TEST(TcpAcceptor, AConnectionWaitsWithoutWakingTheProcessWhileDescriptorsAreExhausted) {
  Child child([](Channel& channel) {
    auto transport = make();
    channel.send(transport->open(0).value());
    rlimit limit{};
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    // Open descriptors stay open; no new one can be made.
    const int next = dup(0);
    const rlimit none{static_cast<rlim_t>(next), limit.rlim_max};
    EXPECT_EQ(::close(next), 0);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    channel.receive_value<int>();  // a connection is waiting
    std::string logged;
    log::redirect([&](log::LogLevel, std::string_view line) { logged += line; });
    Event event;
    EXPECT_EQ(transport->poll({&event, 1}), 0u);
    EXPECT_FALSE(transport->arm().ready);
    log::redirect({});
    EXPECT_THAT(logged, HasSubstr("ulimit -n"));
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    const auto end = std::chrono::steady_clock::now() + 2500ms;
    while (std::chrono::steady_clock::now() < end) EXPECT_EQ(transport->poll({&event, 1}), 0u);
    return ::testing::Test::HasFailure() ? 1 : 0;
  });
  const UniqueFd connection = connect_to(socket_address(read(child.channel().receive())));
  send_value(connection, TcpHello{});
  child.channel().send_value(1);
  pollfd closed{.fd = connection.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&closed, 1, 4000), 1)
      << "the connection was not handled after a descriptor became available";
  EXPECT_EQ(child.wait(), 0);
}

TEST(TcpAcceptor, AnEndpointAcceptsOneConnectionOnly) {
  RoguePeer first;
  // A second connection sends the same hello: the first one stays connected.
  const UniqueFd second = connect_to(first.listener);
  send_value(second, first.hello);
  EXPECT_TRUE(is_closed(second, *first.honest));
  send_value(first.fd, FrameHeader{.kind = FrameHeader::Kind::kPutNotify, .token = 9});
  EXPECT_EQ(next_event(*first.honest).token, 9u);
}

TEST(TcpFrames, AnInvalidFrameBreaksTheEndpointAndTouchesNoMemory) {
  using Kind = FrameHeader::Kind;
  const auto error_of = [](const auto& make_frame) {
    RoguePeer rogue;
    send_value(rogue.fd, make_frame(rogue));
    const Status status = rogue.failure();
    EXPECT_EQ(status.code, Code::kInternal);
    return status.message;
  };
  EXPECT_THAT(error_of([](RoguePeer&) { return FrameHeader{.kind = static_cast<Kind>(77)}; }),
              AllOf(HasSubstr("pid "), HasSubstr("unknown kind 77")));
  EXPECT_THAT(error_of([](RoguePeer&) { return FrameHeader{}; }), HasSubstr("unknown kind 0"));
  EXPECT_THAT(error_of([](RoguePeer& rogue) { return rogue.header(Kind::kPut, 4000, 97); }),
              HasSubstr("97 bytes at offset 4000 of a region of 4096 bytes"));
  EXPECT_THAT(error_of([](RoguePeer& rogue) { return rogue.header(Kind::kPutNotify, ~std::uint64_t{0}, 2); }),
              HasSubstr("2 bytes at offset 18446744073709551615"));
  EXPECT_THAT(error_of([](RoguePeer& rogue) { return rogue.header(Kind::kPut, 8, ~std::uint64_t{0}); }),
              HasSubstr("18446744073709551615 bytes at offset 8"));
  EXPECT_THAT(error_of([](RoguePeer& rogue) {
                FrameHeader header = rogue.header(Kind::kPut, 0, 8);
                ++header.stamp;
                return header;
              }),
              HasSubstr("not registered"));
  EXPECT_THAT(error_of([](RoguePeer& rogue) {
                FrameHeader header = rogue.header(Kind::kPut, 0, 8);
                header.memory = -1;
                return header;
              }),
              HasSubstr("not registered"));
  EXPECT_THAT(error_of([](RoguePeer& rogue) { return rogue.header(Kind::kGet, 1, 4096); }),
              HasSubstr("a get of 4096 bytes at offset 1"));
  EXPECT_THAT(error_of([](RoguePeer& rogue) { return rogue.header(Kind::kGetReply, 0, 64); }),
              HasSubstr("a get reply of 64 bytes that no get"));
}

TEST(TcpFrames, TooManyOutstandingGetsBreakTheEndpoint) {
  RoguePeer rogue;
  // It requests more than fits into the socket buffers and reads nothing, so the answers cannot all be sent.
  std::vector<std::byte> large(32 << 20);
  const auto region = rogue.honest->register_memory({.address = large.data(), .bytes = large.size()}).value();
  FrameHeader get = rogue.header(FrameHeader::Kind::kGet, 0, large.size());
  get.memory = static_cast<std::int32_t>(region.remote.key[0]);
  get.stamp = static_cast<std::uint32_t>(region.remote.key[1]);
  for (std::uint32_t i = 0; i < tcp::kMaxGets + 1; ++i) send_value(rogue.fd, get);
  const Event event = next_event(*rogue.honest);
  EXPECT_EQ(event.kind, Event::Kind::kPeerDead);
  EXPECT_THAT(event.error.message, HasSubstr("more than 16"));
}

TEST(TcpFrames, RandomBytesNeverCrash) {
  std::mt19937_64 random(seed());
  for (int round = 0; round < 50; ++round) {
    RoguePeer rogue;
    // An almost valid frame, then random bytes.
    FrameHeader header = rogue.header(static_cast<FrameHeader::Kind>(random() % 7), random() % 5000, 0);
    auto noise = random_bytes(random, 1 + random() % 10'000);
    std::memcpy(noise.data(), &header, std::min(noise.size(), sizeof header));
    (void)send(rogue.fd.get(), noise.data(), noise.size(), MSG_NOSIGNAL);
    rogue.fd.reset();
    Event event;
    do {
      event = next_event(*rogue.honest);
    } while (event.kind == Event::Kind::kArrival);
    EXPECT_EQ(event.kind, Event::Kind::kPeerDead);
    EXPECT_FALSE(event.error.message.empty());
  }
}

TEST(TcpFrames, APartlyReceivedPayloadIsDroppedWhenItsMemoryIsDeregistered) {
  std::mt19937_64 random(seed());
  for (int round = 0; round < 50; ++round) {
    RoguePeer rogue;
    // Cut anywhere: in the header, with it, or in the payload.
    const std::size_t bytes = 1 + random() % 100'000;
    std::vector<std::byte> target(bytes, std::byte{7}), stream(sizeof(FrameHeader) + bytes, std::byte{9});
    const auto region = rogue.honest->register_memory({.address = target.data(), .bytes = bytes}).value();
    FrameHeader put = rogue.header(FrameHeader::Kind::kPutNotify, 0, bytes);
    put.memory = static_cast<std::int32_t>(region.remote.key[0]);
    put.stamp = static_cast<std::uint32_t>(region.remote.key[1]);
    std::memcpy(stream.data(), &put, sizeof put);
    const std::size_t cut = random() % stream.size();
    ASSERT_EQ(send(rogue.fd.get(), stream.data(), cut, MSG_NOSIGNAL), static_cast<ssize_t>(cut));
    Event event;
    for (int i = 0; i < 100; ++i) ASSERT_EQ(rogue.honest->poll({&event, 1}), 0u);
    rogue.honest->deregister(region.local);
    std::ranges::fill(target, std::byte{7});
    // Its number goes to other memory at once. The rest of the payload must not be written there either.
    std::vector<std::byte> other(bytes, std::byte{7});
    const auto next = rogue.honest->register_memory({.address = other.data(), .bytes = bytes}).value();
    EXPECT_EQ(next.local, region.local);
    std::jthread rest([&] {
      EXPECT_EQ(send(rogue.fd.get(), stream.data() + cut, stream.size() - cut, MSG_NOSIGNAL),
                static_cast<ssize_t>(stream.size() - cut));
      // The whole frame again, now for deregistered memory.
      EXPECT_EQ(send(rogue.fd.get(), stream.data(), stream.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(stream.size()));
      send_value(rogue.fd, FrameHeader{.kind = FrameHeader::Kind::kPutNotify, .token = 77});
    });
    for (const std::uint32_t token : {5U, 5U, 77U}) {
      event = next_event(*rogue.honest);
      ASSERT_EQ(event.kind, Event::Kind::kArrival) << event.error.message;
      EXPECT_EQ(event.token, token);
    }
    EXPECT_EQ(std::ranges::count(target, std::byte{7}), static_cast<std::ptrdiff_t>(bytes));
    EXPECT_EQ(std::ranges::count(other, std::byte{7}), static_cast<std::ptrdiff_t>(bytes));
  }
}

TEST(TcpFrames, AStreamThatEndsInADroppedPayloadRaisesPeerDead) {
  RoguePeer rogue;
  rogue.honest->deregister(rogue.region.local);
  send_value(rogue.fd, rogue.header(FrameHeader::Kind::kPut, 0, 1 << 20));
  rogue.fd.reset();
  EXPECT_EQ(next_event(*rogue.honest).kind, Event::Kind::kPeerDead);
}

TEST(TcpFrames, DeregisteredMemoryIsNotRead) {
  RoguePeer rogue;
  std::vector<std::byte> large(32 << 20);
  const auto region = rogue.honest->register_memory({.address = large.data(), .bytes = large.size()}).value();
  FrameHeader get = rogue.header(FrameHeader::Kind::kGet, 0, large.size());
  get.memory = static_cast<std::int32_t>(region.remote.key[0]);
  get.stamp = static_cast<std::uint32_t>(region.remote.key[1]);
  send_value(rogue.fd, get);
  Event event;
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(rogue.honest->poll({&event, 1}), 0u);
  rogue.honest->deregister(region.local);
  event = next_event(*rogue.honest);
  EXPECT_EQ(event.kind, Event::Kind::kPeerDead);
  EXPECT_THAT(event.error.message, HasSubstr("deregistered while"));
}

TEST(TcpFrames, MemoryThatWasTakenBackIsNotRead) {
  RoguePeer peer;
  constexpr std::size_t kBytes = 2U << 20U, kNum = 12;  // far more than the socket holds
  constexpr std::byte kOld{5}, kNew{9};
  std::vector<std::byte> source(kBytes, kOld), other(kBytes, kNew);
  const transport::RemoteRegion remote{.key = {0, 1}, .bytes = kBytes};
  std::vector<transport::WorkRequest> requests;
  for (std::size_t i = 0; i < kNum; ++i) {
    transport::WorkRequest request;
    request.peer = 0;
    request.pieces[0] = {(i + 1 < kNum ? source : other).data(), kBytes};
    request.num_pieces = 1;
    request.remote = &remote;
    requests.push_back(request);
  }
  ASSERT_EQ(peer.honest->post(requests), kNum);
  peer.honest->take_back(std::span(source).subspan(100, 1));
  std::vector<std::byte>(kBytes, kNew).swap(source);  // the memory is gone
  std::vector<std::byte> stream, part(1U << 20U);
  const std::size_t all = kNum * (sizeof(FrameHeader) + kBytes);
  const auto end = std::chrono::steady_clock::now() + hips::test::kHangLimit;
  while (stream.size() < all && std::chrono::steady_clock::now() < end) {
    Event event;
    (void)peer.honest->poll({&event, 1});
    const ssize_t got = recv(peer.fd.get(), part.data(), part.size(), MSG_DONTWAIT);
    if (got > 0) stream.insert(stream.end(), part.begin(), part.begin() + got);
  }
  ASSERT_EQ(stream.size(), all);
  const std::vector<std::byte> old(kBytes, kOld);
  for (std::size_t i = 0; i < kNum; ++i) {
    const std::byte* const payload = stream.data() + i * (sizeof(FrameHeader) + kBytes) + sizeof(FrameHeader);
    EXPECT_EQ(std::memcmp(payload, (i + 1 < kNum ? old : other).data(), kBytes), 0) << "request " << i;
  }
}

TEST(TcpShutdown, AKilledProcessRaisesPeerDeadAfterEverythingItSent) {
  World world(backend(), 1, 4096);
  Child child([](Channel& channel) {
    World own(backend(), 1, 4096);
    channel.send(own.transport(0).open(0).value());
    const auto address = channel.receive();
    const auto theirs = channel.receive_value<transport::RemoteRegion>();
    EXPECT_TRUE(own.transport(0).connect(0, address).ok());
    const std::vector<std::byte> data(1000, std::byte{3});
    for (std::uint32_t i = 0; i < 50; ++i) {
      own.post(0, put(Verb::kPutNotify, 0, data, theirs, i, i));
      (void)own.wait(0, Event::Kind::kCompletion);
    }
    raise(SIGKILL);
    return 0;
  });
  child.channel().send(world.transport(0).open(0).value());
  child.channel().send_value(world.remote(0));
  ASSERT_TRUE(world.transport(0).connect(0, child.channel().receive()).ok());
  const Event dead = world.wait(0, Event::Kind::kPeerDead);
  EXPECT_EQ(dead.error.code, Code::kPeerLost);
  EXPECT_THAT(dead.error.message,
              AllOf(HasSubstr("pid " + std::to_string(child.pid())), HasSubstr("127.0.0.1")));
  EXPECT_EQ(world[0].events.size(), 50u);
  EXPECT_EQ(child.wait(), 128 + SIGKILL);
  // Expect: posting to it now raises neither SIGPIPE nor a second kPeerDead.
  for (int i = 0; i < 1000; ++i) world.post(0, notification(0, 1));
  world[0].events.clear();
  world.settle();
  EXPECT_TRUE(world[0].events.empty());
}

TEST(TcpShutdown, AForkedChildEndsWithoutDisturbingThePeers) {
  World world(backend(), 2);
  world.join_all();
  Child child([&](Channel&) {
    world[0].transport.reset();
    world[1].transport.reset();
    return 0;
  });
  EXPECT_EQ(child.wait(), 0);
  world.settle();
  EXPECT_TRUE(world[0].events.empty() && world[1].events.empty());
  world.post(0, notification(1, 4));
  EXPECT_EQ(world.wait(1, Event::Kind::kArrival).token, 4u);
}

TEST(TcpShutdown, PostedDataArrivesAlthoughTheSenderClosesWithoutPolling) {
  World world(backend(), 2, 1 << 16);
  world.join_all();
  const std::vector<std::byte> data(1 << 16, std::byte{9});
  // Both have unread data: a plain close() of the socket would reset the connection and lose it.
  for (std::uint32_t i = 0; i < 8; ++i) {
    world.post(0, put(Verb::kPutNotify, 1, data, world.remote(1), 0, i));
    world.post(1, put(Verb::kPutNotify, 0, data, world.remote(0), 0, i));
  }
  for (int i = 0; i < 8; ++i) (void)world.wait(0, Event::Kind::kCompletion);
  world.post(0, notification(1, 100, true));
  world[0].transport.reset();
  std::uint32_t last = 0;
  while (world.poll_until([&] { return !world[1].events.empty(); })) {
    const Event event = world[1].events.front();
    world[1].events.pop_front();
    if (event.kind == Event::Kind::kArrival) last = event.token;
    if (event.kind == Event::Kind::kPeerDead) break;
  }
  EXPECT_EQ(last, 100u);
}

// --- Sleeping ----------------------------------------------------------------------------------------------

bool becomes_readable(int fd, int timeout_ms) {
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, timeout_ms) == 1;
}

// A poll that sends what waited for the connection completes it. Its caller has called arm() and sleeps if the
// poll reports nothing.
TEST(TcpSleep, ThePollBeforeASleepReportsWhatItCompletes) {
  for (int round = 0; round < 8; ++round) {  // either side connects
    World world(backend(), 2, 4096);
    Transport& sender = world.transport(0);
    Transport& receiver = world.transport(1);
    const auto from0 = sender.open(1).value();
    const auto from1 = receiver.open(0).value();
    ASSERT_TRUE(sender.connect(1, from1).ok());
    ASSERT_TRUE(receiver.connect(0, from0).ok());
    const transport::WorkRequest request = notification(1, 7, true);
    ASSERT_EQ(sender.post({&request, 1}), 1u);
    Event event;
    for (bool complete = false, arrived = false; !complete;) {
      const transport::Armed armed = sender.arm();
      // The peer does everything between arm() and the poll, and while the sender sleeps.
      const auto let_peer_wake_it = [&] {
        const auto end = std::chrono::steady_clock::now() + hips::test::kHangLimit;
        while (!becomes_readable(armed.fd, 0) && !arrived && std::chrono::steady_clock::now() < end)
          arrived = receiver.poll({&event, 1}) == 1;
      };
      if (!armed.ready) let_peer_wake_it();
      complete = sender.poll({&event, 1}) == 1;
      if (!armed.ready && !complete) {
        let_peer_wake_it();
        ASSERT_TRUE(becomes_readable(armed.fd, 0))
            << "it sleeps although its request is complete, round " << round;
      }
      sender.disarm();
    }
    EXPECT_EQ(event.kind, Event::Kind::kCompletion);
  }
}

// Who polled before arm() sleeps without another poll.
TEST(TcpSleep, TheDescriptorIsReadableForWhatCameBetweenThePollAndArm) {
  World world(backend(), 2);
  world.join(0, 1);
  world.settle();
  for (std::uint32_t round = 1; round <= 50; ++round) {
    Event event;
    EXPECT_EQ(world.transport(1).poll({&event, 1}), 0u);
    const transport::WorkRequest request = notification(1, round, false);
    ASSERT_EQ(world.transport(0).post({&request, 1}), 1u);
    if (round % 2 == 0) std::this_thread::sleep_for(1ms);
    const transport::Armed armed = world.transport(1).arm();
    ASSERT_TRUE(armed.stays_readable);
    ASSERT_TRUE(armed.ready || becomes_readable(armed.fd, 2000)) << "it sleeps although something arrived";
    // Expect: it stays readable until a poll has taken the event.
    ASSERT_TRUE(armed.ready || becomes_readable(armed.fd, 0));
    world.transport(1).disarm();
    EXPECT_EQ(next_event(world.transport(1)).token, round);
  }
}

TEST(TcpCompletions, AreKnownWithoutAPollOnceTheKernelHasTheRequest) {
  World world(backend(), 2);
  world.join(0, 1);
  world.settle();
  Event event;
  EXPECT_EQ(world.transport(0).poll_completions({&event, 1}), 0u);
  transport::WorkRequest request = notification(1, 3, true);
  request.context = 17;
  ASSERT_EQ(world.transport(0).post({&request, 1}), 1u);
  ASSERT_EQ(world.transport(0).poll_completions({&event, 1}), 1u);
  EXPECT_EQ(event.kind, Event::Kind::kCompletion);
  EXPECT_EQ(event.context, 17u);
  // Expect: no poll reports it again.
  EXPECT_EQ(world.transport(0).poll({&event, 1}), 0u);
  EXPECT_EQ(next_event(world.transport(1)).token, 3u);
}

// A poll reads at most sixteen times from a peer. The last of these reads empties the socket here.
TEST(TcpSleep, APollThatReachesItsLimitReportsWhatItHasReceived) {
  const Backend roomy{.name = "Tcp", .start = [] {
                        return [](Rank) {
                          return tcp::create({.address = any_address(AF_INET, INADDR_LOOPBACK),
                                              .device = "lo",
                                              .socket_buffer_bytes = 1U << 20U})
                              .value();
                        };
                      }};
  World world(roomy, 2);
  world.join(0, 1);
  world.settle();
  world[1].events.clear();
  // With its header each fills the buffer for headers.
  const std::vector<std::byte> data(8192 - sizeof(FrameHeader));
  for (int round = 0; round < 20; ++round) {
    const transport::Armed armed = world.transport(1).arm();
    ASSERT_FALSE(armed.ready);
    for (int i = 1; i <= 16; ++i) {
      transport::WorkRequest request =
          put(i < 16 ? Verb::kPut : Verb::kPutNotify, 1, data, world.remote(1), 0, 5);
      request.signalled = i == 16;
      ASSERT_EQ(world.transport(0).post({&request, 1}), 1u);
    }
    EXPECT_EQ(next_event(world.transport(0)).kind, Event::Kind::kCompletion);
    std::this_thread::sleep_for(5ms);  // all of it is in the other socket
    Event event;
    bool arrived = false;
    while (!arrived) {
      arrived = world.transport(1).poll({&event, 1}) == 1;
      ASSERT_TRUE(arrived || becomes_readable(armed.fd, 2000))
          << "it sleeps although something arrived, round " << round;
    }
    EXPECT_EQ(event.token, 5u);
    world.transport(1).disarm();
    world.settle();
  }
}

TEST(TcpConnect, ARefusedConnectionRaisesPeerDead) {
  auto transport = make();
  TcpAddress wire = read(transport->open(0).value());
  // A port without a listener, and the larger token, so that our side connects.
  wire.token = {~std::uint64_t{0}, 0};
  {
    const auto listener = listen_tcp(any_address(AF_INET, INADDR_LOOPBACK)).value();
    const SocketAddress gone = local_address(listener.get());
    std::memcpy(wire.address.data(), &gone.storage, gone.length);
  }
  const Status status = transport->connect(0, write(wire));
  if (!status.ok()) {
    EXPECT_EQ(status.code, Code::kPeerLost);
    EXPECT_THAT(status.message, HasSubstr("127.0.0.1"));
    return;
  }
  const Event event = next_event(*transport);
  EXPECT_EQ(event.kind, Event::Kind::kPeerDead);
  EXPECT_EQ(event.error.code, Code::kPeerLost);
  EXPECT_THAT(event.error.message, AllOf(HasSubstr("cannot connect"), HasSubstr("refused")));
}

TEST(TcpConnect, AnotherProcessAtTheAddressGetsNoData) {
  auto transport = make();
  TcpAddress wire = read(transport->open(0).value());
  wire.token = {~std::uint64_t{0}, 0};
  const auto listener = listen_tcp(any_address(AF_INET, INADDR_LOOPBACK)).value();
  const SocketAddress other = local_address(listener.get());
  std::memcpy(wire.address.data(), &other.storage, other.length);
  ASSERT_TRUE(transport->connect(0, write(wire)).ok());
  const transport::WorkRequest request = notification(0, 1);
  ASSERT_EQ(transport->post({&request, 1}), 1u);
  pollfd pending{.fd = listener.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&pending, 1, 10'000), 1);
  const UniqueFd fd(accept(listener.get(), nullptr, nullptr));
  Event event;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(transport->poll({&event, 1}), 0u);
  std::byte received[100];
  EXPECT_EQ(recv(fd.get(), received, sizeof received, MSG_DONTWAIT), static_cast<ssize_t>(sizeof(TcpHello)));
  send_value(fd, TcpHello{});
  event = next_event(*transport);
  EXPECT_EQ(event.kind, Event::Kind::kPeerDead);
  EXPECT_THAT(event.error.message, HasSubstr("another process"));
}

TEST(TcpConnect, NoAddressCrashes) {
  std::mt19937_64 random(seed());
  auto transport = make();
  const auto good = transport->open(0).value();
  for (int round = 0; round < 1000; ++round) {
    auto bad = good;
    // The magic stays valid, so that the rest is parsed. The token is our own, so that nothing connects.
    for (int i = 0; i < 3; ++i) bad[28 + random() % 8] = static_cast<std::byte>(random());
    if (bad != good) {
      const Status status = transport->connect(0, bad);
      EXPECT_FALSE(status.ok());
    }
  }
  EXPECT_EQ(transport->connect(0, good).code, Code::kInvalidArgument)
      << "the address is that of this endpoint";
}

TEST(TcpConnect, TheErrorNamesAnAddressThatIsNotLocal) {
  SocketAddress address = any_address(AF_INET, 0xc0000201);  // 192.0.2.1, for documentation
  const auto transport = tcp::create({.address = address, .device = "eth9"});
  ASSERT_FALSE(transport.has_value());
  EXPECT_EQ(transport.error().code, Code::kSystem);
  EXPECT_THAT(transport.error().message, HasSubstr("192.0.2.1"));
}

/// The congestion control of each TCP socket of this process, including listeners.
std::vector<std::string> congestion_controls() {
  std::vector<std::string> names;
  for (int fd = 0; fd < 1024; ++fd) {
    int protocol = 0;
    socklen_t length = sizeof protocol;
    if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) != 0 || protocol != IPPROTO_TCP) continue;
    std::array<char, 17> name{};
    length = name.size() - 1;
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &length) == 0)
      names.emplace_back(name.data());
  }
  return names;
}

TEST(TcpConnect, ConnectionsWithinANodeUseNoPacing) {
  for (const SocketAddress& loopback : {any_address(AF_INET, INADDR_LOOPBACK), loopback_of_ipv6()}) {
    if (!listen_tcp(loopback)) continue;  // a node without IPv6
    World world(backend_at(loopback), 3);
    world.join_all();
    // A connection inherits the listener's congestion control, so that of the listener must not pace either.
    EXPECT_THAT(congestion_controls(), AllOf(SizeIs(3 + 6), Each("reno"))) << to_string(loopback);
  }
}

TEST(Addresses, AddressesOfInterfacesAndLoopbackAreLocal) {
  ifaddrs* all = nullptr;
  ASSERT_EQ(getifaddrs(&all), 0);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    SocketAddress address;
    address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&address.storage, one->ifa_addr, address.length);
    EXPECT_TRUE(is_local_address(address)) << one->ifa_name << " " << to_string(address);
  }
  freeifaddrs(all);
  EXPECT_TRUE(is_local_address(any_address(AF_INET, 0x7f030201)));  // 127.3.2.1
  EXPECT_TRUE(is_loopback(any_address(AF_INET, 0x7f030201)));
  EXPECT_FALSE(is_loopback(any_address(AF_INET, 0x80030201)));
  EXPECT_FALSE(is_local_address(any_address(AF_INET, 0xc0000201)));  // 192.0.2.1, for documentation
  EXPECT_FALSE(is_local_address(SocketAddress{}));
}

TEST(TcpConnect, ConnectionsWorkOverIpv6) {
  if (!listen_tcp(loopback_of_ipv6())) GTEST_SKIP() << "this node has no IPv6";
  World world(backend_at(loopback_of_ipv6()), 2);
  world.join_all();
  world.post(0, notification(1, 3));
  EXPECT_EQ(world.wait(1, Event::Kind::kArrival).token, 3u);
}

}  // namespace
}  // namespace tcp_test
}  // namespace hips::test
