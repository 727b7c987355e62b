// What the conformance suite cannot bring about: full queues, several completion queues, and peers that never
// answer.

#include <poll.h>

#include <array>
#include <chrono>
#include <cstring>

#include "tests/hang_limit.hpp"
#include "tests/transports/verbs/device.hpp"
#include "tests/transports/world.hpp"
#include "transports/verbs/endpoint.hpp"

namespace hips::test {
namespace {

using ::testing::HasSubstr;
using transport::Address;
using transport::Event;
using transport::PeerId;
using transport::Transport;
using transport::Verb;
using transport::WorkRequest;

std::unique_ptr<Transport> make_transport(const verbs::VerbsOptions& options = verbs_options()) {
  return verbs::create(verbs_port(), options).value();
}

/// By rdma_cm, as iWARP always does.
bool connects_by_polls() {
  return verbs_options().cm || verbs_port().iwarp;
}

/// As many of these notifications as fit.
std::size_t notify(Transport& transport, PeerId peer, std::size_t count) {
  const std::vector<WorkRequest> requests(count, notification(peer, 7));
  return transport.post(requests);
}

void pause_ms(int ms) {
  poll(nullptr, 0, ms);
}

TEST(VerbsQueues, AnswersInAFullSendQueueMakeNoRoomForRequests) {
  World world(backends().front(), 2);
  world.join_all();
  std::mt19937_64 random{seed()};
  const auto data = random_bytes(random, std::size_t{256} << 10);
  WorkRequest request = put(Verb::kPut, 1, data, world.remote(1), 0);
  world.prepare(0, request);
  Transport &sender = world.transport(0), &receiver = world.transport(1);
  const std::size_t most = sender.query().max_posted;
  const std::vector<WorkRequest> batch(most, request);
  std::array<Event, 512> events;
  std::size_t posted = 0, completed = 0, arrived = 0;
  const auto end = std::chrono::steady_clock::now() + test::kHangLimit;
  // Answers to what rank 1 sends take their places in the queue that rank 0 keeps full.
  while (completed < 4 * most || arrived < most) {
    posted += sender.post(batch);
    ASSERT_LE(posted - completed, most);
    (void)notify(receiver, 0, most);
    const std::size_t count = sender.poll(events);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(events[i].error.ok()) << events[i].error.message;
      ++(events[i].kind == Event::Kind::kCompletion ? completed : arrived);
    }
    for (std::size_t i = 0, num = receiver.poll(events); i < num; ++i)
      ASSERT_TRUE(events[i].error.ok()) << events[i].error.message;
    ASSERT_LT(std::chrono::steady_clock::now(), end) << completed << " " << arrived;
  }
}

TEST(VerbsQueues, AnArmedTransportHasLookedAtAllItsCompletionQueues) {
  if (connects_by_polls()) GTEST_SKIP() << "rdma_cm connects by polls, after which any queue may be next";
  constexpr PeerId kPeers = 64;  // of 16 in each completion queue
  auto a = make_transport(), b = make_transport();
  for (PeerId peer = 0; peer < kPeers; ++peer) {
    const Address of_a = a->open(peer).value(), of_b = b->open(peer).value();
    ASSERT_TRUE(a->connect(peer, of_b).ok());
    ASSERT_TRUE(b->connect(peer, of_a).ok());
  }
  // The completions of what fills half a window, and the answer to that, mean nothing to the user of a.
  constexpr std::size_t kHalfWindow = 64;
  std::array<Event, 512> events;
  std::size_t arrived = 0;
  for (const PeerId peer : {0, 16, 32}) ASSERT_EQ(notify(*a, peer, kHalfWindow), kHalfWindow);
  const auto end = std::chrono::steady_clock::now() + test::kHangLimit;
  while (arrived < 3 * kHalfWindow && std::chrono::steady_clock::now() < end) arrived += b->poll(events);
  ASSERT_EQ(arrived, 3 * kHalfWindow);
  ASSERT_EQ(notify(*b, 48, 1), 1u);
  pause_ms(200);
  const transport::Armed armed = a->arm();
  const std::size_t seen = a->poll(events);
  pollfd wake{.fd = armed.fd, .events = POLLIN, .revents = 0};
  EXPECT_TRUE(seen > 0 || poll(&wake, 1, 0) > 0) << "a sleeper would miss the notification";
  a->disarm();
}

TEST(VerbsQueues, AnEndpointWhosePeerIsSilentIsGivenUpWhileItIsPolled) {
  if (connects_by_polls()) GTEST_SKIP() << "with rdma_cm nothing connects to a silent peer";
  verbs::VerbsOptions options = verbs_options();
  options.timeout = 20;  // the device itself gives up after 34 s
  options.max_queue_pairs = 1;
  auto a = make_transport(options), b = make_transport(options);
  const Address of_a = a->open(0).value(), of_b = b->open(0).value();
  ASSERT_TRUE(a->connect(0, of_b).ok());  // and b never connects: it hears nothing
  a->close(0);
  std::array<Event, 8> events;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2500);
  while (std::chrono::steady_clock::now() < end) (void)a->poll(events);
  const auto another = a->open(1);
  EXPECT_TRUE(another.has_value()) << another.error().message;
}

TEST(VerbsQueues, AConnectThatFailedFailsAgainForTheSameCause) {
  if (connects_by_polls()) GTEST_SKIP() << "rdma_cm looks for the way later";
  // IPv4 takes any address to be on the wire of a NIC that is named; IPv6 asks for a route.
  verbs::VerbsOptions options = verbs_options();
  options.gid_index = 0;
  const verbs::PortChoice port = verbs::find_ports(options).value().front();
  auto a = verbs::create(port, options).value(), b = verbs::create(port, options).value();
  ASSERT_TRUE(a->open(0).has_value());
  Address address = b->open(0).value();
  verbs::VerbsAddress wire;
  std::memcpy(&wire, address.data(), sizeof wire);
  wire.gid = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};  // a network that no host is in
  std::memcpy(address.data(), &wire, sizeof wire);
  const Status first = a->connect(0, address), second = a->connect(0, address);
  ASSERT_FALSE(first.ok());
  EXPECT_THAT(first.message, HasSubstr("no route"));
  EXPECT_EQ(second.code, first.code);
  EXPECT_EQ(second.message, first.message);
}

}  // namespace
}  // namespace hips::test
