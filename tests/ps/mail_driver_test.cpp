// Threads that wait for mail.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "lib/ps/mail_driver.hpp"
#include "tests/choices.hpp"
#include "tests/comm/whole_ranks.hpp"

namespace hips::ps {
namespace {

/// A driver of a rank that sends mail to itself. Sleeps end by a wake-up alone: a nap takes longer than a test may.
class OwnMail {
 public:
  OwnMail() : members_(test::internal_communicator()), driver(*members_, "test", 3'600'000'000'000) {
    auto mail =
        value_or_throw(TransportMail::create({.name = "test", .rank = 0, .peers = {}},
                                             [this](Rank /*from*/, std::span<const std::byte> /*batches*/) {
                                               received.fetch_add(1);
                                               return Status::success();
                                             }));
    started = driver.start(std::move(mail), {.spin_polls = 10, .yield_polls = 2}, false);
  }
  void write() {
    (void)driver.mail().begin(0, 8);
    driver.mail().end(0, 8);
  }

 private:
  std::unique_ptr<comm::Communicator> members_;

 public:
  std::atomic<int> received{0};
  MailDriver driver;
  Status started;
};

TEST(MailDriver, WakesAThreadWhoseCallAnotherThreadEnds) {
  EXPECT_EQ(test::run(1,
                      [](int /*rank*/, const test::Ready& /*ready*/) -> std::string {
                        OwnMail own;
                        if (!own.started.ok()) return own.started.message;
                        std::mt19937_64 random(test::seed());
                        for (int round = 0; round < 200; ++round) {
                          const int before = own.received.load();
                          std::thread waits([&] {
                            own.driver.wait_until([&] { return own.received.load() > before; },
                                                  "the mail of this round");
                          });
                          // The thread spins, yields or sleeps by now.
                          std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
                          if (round % 2 == 0) {
                            if (Status sent = own.driver.send([&] { own.write(); }); !sent.ok())
                              return sent.message;
                          } else {
                            own.driver.locked([&] { own.write(); });
                            (void)own.driver.step();
                          }
                          waits.join();
                        }
                        return "woken";
                      }),
            "woken");
}

TEST(MailDriver, LetsOthersSleepOnAfterAWakeUp) {
  EXPECT_EQ(test::run(1,
                      [](int /*rank*/, const test::Ready& /*ready*/) -> std::string {
                        OwnMail own;
                        if (!own.started.ok()) return own.started.message;
                        std::atomic<int> looks{0};
                        const auto comes = [&](int num) {
                          own.driver.wait_until(
                              [&] {
                                if (num > 1) looks.fetch_add(1);
                                return own.received.load() >= num;
                              },
                              "mail");
                        };
                        std::thread first(comes, 1), second(comes, 2);
                        const auto send = [&] { return own.driver.send([&] { own.write(); }); };
                        std::this_thread::sleep_for(std::chrono::milliseconds(5));
                        if (Status sent = send(); !sent.ok()) return sent.message;
                        first.join();
                        const int before = looks.load();
                        std::this_thread::sleep_for(std::chrono::milliseconds(20));
                        const int during = looks.load() - before;
                        if (Status sent = send(); !sent.ok()) return sent.message;
                        second.join();
                        // A thread that polls looks thousands of times.
                        return during < 200 ? "slept" : "polled " + std::to_string(during) + " times";
                      }),
            "slept");
}

}  // namespace
}  // namespace hips::ps
