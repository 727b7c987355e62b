// What the conformance suite cannot bring about: full queues.

#include <array>
#include <chrono>

#include "tests/transports/verbs/device.hpp"
#include "tests/transports/world.hpp"

namespace hips::test {
namespace {

using transport::Event;
using transport::PeerId;
using transport::Transport;
using transport::Verb;
using transport::WorkRequest;

/// As many of these notifications as fit.
std::size_t notify(Transport& transport, PeerId peer, std::size_t count) {
  const std::vector<WorkRequest> requests(count, notification(peer, 7));
  return transport.post(requests);
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
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
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

}  // namespace
}  // namespace hips::test
