// Two transports that sleep in turn must never lose a wake-up. HIPS_TEST_FULL=1 runs ten times the rounds,
// HIPS_TEST_SAMPLE=1 a third.

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "tests/transports/child.hpp"
#include "tests/transports/world.hpp"
#include "transports/shm/shm.hpp"
#include "transports/tcp/tcp.hpp"

namespace hips::test {
namespace sleep_test {
namespace {

using transport::Event;
using transport::Transport;
using transport::WorkRequest;

std::uint32_t rounds() {
  return runs_everything() ? 1'000'000 : runs_a_sample() ? 30'000 : 100'000;
}

Backend shm_backend(std::uint32_t ring_entries) {
  return {.name = "Shm", .start = [ring_entries] {
            return [ring_entries](Rank) { return shm::create({.ring_entries = ring_entries}).value(); };
          }};
}

Backend tcp_backend(std::uint32_t queue_entries, std::uint32_t socket_buffer_bytes) {
  return {.name = "Tcp", .start = [queue_entries, socket_buffer_bytes] {
            return [queue_entries, socket_buffer_bytes](Rank) {
              return tcp::create({.address = any_address(AF_INET, INADDR_LOOPBACK),
                                  .device = "lo",
                                  .queue_entries = queue_entries,
                                  .socket_buffer_bytes = socket_buffer_bytes})
                  .value();
            };
          }};
}

/// Once with default buffers and once with tiny ones, which fill at once.
struct Sleepy {
  Backend usual, small;
};

void PrintTo(const Sleepy& sleepy, std::ostream* out) {
  *out << sleepy.usual.name;
}

class Sleep : public ::testing::TestWithParam<Sleepy> {};

struct Outcome {
  std::uint32_t rounds = 0;
  std::uint32_t sleeps = 0;  ///< times it blocked in ppoll
  bool lost = false;         ///< it slept although an event was ready
};

bool readable(int fd, int timeout_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::nanoseconds>(end - std::chrono::steady_clock::now());
    const std::int64_t left_ns = std::max<std::int64_t>(0, left.count());
    const timespec timeout{.tv_sec = left_ns / 1'000'000'000, .tv_nsec = left_ns % 1'000'000'000};
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    const int count = ppoll(&waiting, 1, &timeout, nullptr);
    if (count >= 0 || errno != EINTR) return count == 1;
  }
}

/// Stops threads between any two instructions, long enough for other threads to pass critical points: a
/// signal with a slow handler, about ten thousand times a second.
class Jitter {
 public:
  explicit Jitter(std::vector<pthread_t> victims)
      : victims_(std::move(victims)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

  static void install() {
    struct sigaction action {};
    action.sa_handler = [](int) {
      const int error = errno;
      for (int i = 0; i < 3000; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
      errno = error;
    };
    sigaction(SIGUSR1, &action, nullptr);
  }

 private:
  void run(const std::stop_token& stop) {
    std::mt19937_64 random(seed() + 99);
    while (!stop.stop_requested()) {
      pthread_kill(victims_[random() % victims_.size()], SIGUSR1);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 50));
    }
  }

  std::vector<pthread_t> victims_;
  std::jthread thread_;  // last: ends before what it uses
};

/// One side: sleeps until token i arrives, answers with token i. Each message has data, so that ThreadSanitizer
/// checks the synchronization of its transfer.
class Sleeper {
 public:
  Sleeper(Transport& transport, std::span<const std::byte> mine, const transport::RemoteRegion& theirs,
          bool first, std::uint64_t from_seed)
      : transport_(transport), mine_(mine), theirs_(theirs), random_(from_seed), first_(first) {}

  Outcome run(std::uint32_t count) {
    for (std::uint32_t round = 0; round < count && !outcome_.lost; ++round) {
      if (first_) post(round);
      wait_for(round);
      if (gave_up_) break;
      if (!first_) post(round);
      ++outcome_.rounds;
    }
    return outcome_;
  }

 private:
  /// Waits from nothing up to the time in which a peer falls asleep, so that all interleavings occur.
  void spin() {
    const std::uint64_t choice = random_();
    const std::uint64_t turns = choice % 4 == 0 ? 0 : (choice >> 8) % (choice % 4 == 1 ? 20 : 2000);
    for (std::uint64_t i = 0; i < turns; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  void post(std::uint32_t token) {
    spin();
    // A transport may read them until the other side has answered.
    words_ = {token, ~std::uint64_t{token}, token + 1ull, 5};
    WorkRequest request =
        put(transport::Verb::kPutNotify, 0, std::as_bytes(std::span(words_)), theirs_, 8, token);
    request.signalled = false;
    while (transport_.post({&request, 1}) == 0) std::this_thread::yield();
  }

  bool poll_once(std::uint32_t token) {
    Event event;
    if (transport_.poll({&event, 1}) == 0) return false;
    EXPECT_EQ(event.kind, Event::Kind::kArrival);
    EXPECT_EQ(event.token, token);
    std::uint64_t words[4];
    std::memcpy(words, mine_.data() + 8, sizeof words);
    EXPECT_EQ(words[1], ~std::uint64_t{token});
    EXPECT_EQ(words[2], token + 1ull);
    return true;
  }

  void wait_for(std::uint32_t token) {
    spin();
    for (int idle_seconds = 0;;) {
      if (poll_once(token)) return;
      const transport::Armed armed = transport_.arm();
      bool came = !armed.ready && poll_once(token);
      if (!armed.ready && !came) {
        ++outcome_.sleeps;
        if (!readable(armed.fd, 1000)) {
          // No wake-up for a second. If an event is ready, its sender has rung or is about to.
          const bool rung = readable(armed.fd, 0);
          came = poll_once(token);
          if (came && !rung && !readable(armed.fd, 10'000)) outcome_.lost = true;
          gave_up_ = !came && ++idle_seconds == 30;  // the other side has failed
        }
      }
      transport_.disarm();
      if (came || gave_up_) return;
    }
  }

  Transport& transport_;
  std::span<const std::byte> mine_;
  transport::RemoteRegion theirs_;
  std::mt19937_64 random_;
  std::array<std::uint64_t, 4> words_{};
  bool first_;
  bool gave_up_ = false;
  Outcome outcome_;
};

TEST_P(Sleep, TwoThreadsNeverLoseAWakeUp) {
  World world(GetParam().usual, 2, 4096);
  auto from0 = world.transport(0).open(0);
  auto from1 = world.transport(1).open(0);
  ASSERT_TRUE(world.transport(0).connect(0, *from1).ok());
  ASSERT_TRUE(world.transport(1).connect(0, *from0).ok());
  Outcome second;
  std::thread thread([&] {
    second = Sleeper(world.transport(1), world.memory(1), world.remote(0), false, seed() + 1).run(rounds());
  });
  Jitter::install();
  std::optional<Jitter> jitter(std::in_place, std::vector{pthread_self(), thread.native_handle()});
  const Outcome first =
      Sleeper(world.transport(0), world.memory(0), world.remote(1), true, seed()).run(rounds());
  jitter.reset();
  thread.join();
  EXPECT_FALSE(first.lost);
  EXPECT_FALSE(second.lost);
  EXPECT_EQ(first.rounds, rounds());
  EXPECT_EQ(second.rounds, rounds());
  // Expect: it did sleep; otherwise the test proves nothing.
  EXPECT_GT(first.sleeps + second.sleeps, rounds() / 10);
  RecordProperty("sleeps", static_cast<int>(first.sleeps + second.sleeps));
}

TEST_P(Sleep, TwoProcessesNeverLoseAWakeUp) {
  const std::uint64_t from_seed = seed();
  const std::uint32_t count = rounds();
  // A rank with memory, connected to the one at the other end of the channel.
  const auto run = [count](Channel& channel, bool first, std::uint64_t own_seed) {
    World world(GetParam().usual, 1, 4096);
    channel.send(world.transport(0).open(0).value());
    channel.send_value(world.remote(0));
    const auto address = channel.receive();
    const auto theirs = channel.receive_value<transport::RemoteRegion>();
    EXPECT_TRUE(world.transport(0).connect(0, address).ok());
    const Outcome outcome = Sleeper(world.transport(0), world.memory(0), theirs, first, own_seed).run(count);
    channel.send_value(outcome);
    return std::pair(outcome, channel.receive_value<Outcome>());
  };
  Child child([&](Channel& channel) {
    run(channel, false, from_seed + 1);
    return ::testing::Test::HasFailure() ? 1 : 0;
  });
  const auto [first, second] = run(child.channel(), true, from_seed);
  EXPECT_FALSE(first.lost);
  EXPECT_FALSE(second.lost);
  EXPECT_EQ(first.rounds, count);
  EXPECT_EQ(second.rounds, count);
  EXPECT_GT(first.sleeps + second.sleeps, count / 10);
  EXPECT_EQ(child.wait(), 0);
}

TEST_P(Sleep, OneSleeperLosesNoWakeUpOfManySenders) {
  // Six threads send to one that sleeps whenever it can.
  constexpr Rank kSenders = 6;
  const std::uint32_t each = rounds() / 20;
  World world(GetParam().small, kSenders + 1, 4096);
  for (Rank sender = 0; sender < kSenders; ++sender) world.join(sender, kSenders);
  std::vector<std::thread> threads;
  for (Rank sender = 0; sender < kSenders; ++sender) {
    threads.emplace_back([&, sender] {
      std::mt19937_64 random(seed() + sender);
      Transport& transport = world.transport(sender);
      for (std::uint32_t i = 0; i < each; ++i) {
        const bool last = i + 1 == each;
        const WorkRequest request = notification(kSenders, i, last);
        while (transport.post({&request, 1}) == 0) {
          // Full: sleep until there is room.
          Event event;
          const transport::Armed armed = transport.arm();
          (void)transport.poll({&event, 1});
          if (!armed.ready && transport.post({&request, 1}) == 1) {
            transport.disarm();
            break;
          }
          if (!armed.ready) {
            EXPECT_TRUE(readable(armed.fd, 10'000)) << "nobody told sender " << sender << " of room";
          }
          transport.disarm();
        }
        if (random() % 8 == 0) std::this_thread::yield();
        // Requests that wait for room make progress in polls: stay until the last one is posted.
        Event event;
        for (bool gone = !last; !gone;) {
          const transport::Armed armed = transport.arm();
          gone = transport.poll({&event, 1}) == 1;
          if (!armed.ready && !gone) {
            EXPECT_TRUE(readable(armed.fd, 10'000)) << "nobody told sender " << sender << " of its last one";
          }
          transport.disarm();
        }
      }
    });
  }
  Jitter::install();
  std::vector<pthread_t> victims{pthread_self()};
  for (std::thread& thread : threads) victims.push_back(thread.native_handle());
  std::optional<Jitter> jitter(std::in_place, victims);
  std::vector<std::uint32_t> next(kSenders, 0);
  std::uint64_t left = std::uint64_t{each} * kSenders;
  Transport& transport = world.transport(kSenders);
  Event events[4];
  const auto take = [&] {
    const std::size_t count = transport.poll(events);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(events[i].token, next[static_cast<std::size_t>(events[i].peer)]++);
    }
    left -= count;
    return count;
  };
  while (left > 0) {
    if (take() > 0) continue;
    const transport::Armed armed = transport.arm();
    if (!armed.ready && take() == 0) {
      ASSERT_TRUE(readable(armed.fd, 10'000)) << "lost, with " << left << " notifications to come";
    }
    transport.disarm();
  }
  jitter.reset();
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Transports, Sleep,
                         ::testing::Values(Sleepy{shm_backend(256), shm_backend(16)},
                                           Sleepy{tcp_backend(256, 0), tcp_backend(16, 4096)}),
                         [](const auto& sleepy) { return sleepy.param.usual.name; });

}  // namespace
}  // namespace sleep_test
}  // namespace hips::test
