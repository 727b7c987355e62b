// Communicators between nodes that are used again by the same ranks after all have destroyed them. Ranks are processes; TCP
// stands for the network between nodes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <hips/hips.hpp>

#include "lib/comm/control/failure_detector.hpp"
#include "lib/comm/setup/spare_communicators.hpp"
#include "tests/choices.hpp"
#include "tests/comm/whole_ranks.hpp"

namespace spare_communicators_test {
namespace {

using hips::ReduceOp;
using hips::comm::CallEntry;
using hips::comm::common_spare;
using hips::comm::FailureDetector;
using hips::comm::ProcessInfo;
using hips::comm::SpareNote;

void expect_right(int num_ranks, const std::function<std::string(int rank)>& body) {
  hips::test::expect_texts(num_ranks, body, "right", {{"HIPS_TRANSPORT", "tcp"}});
}

/// Sums 2^rank over the communicator, which has these ranks of the world.
bool sums_right(hips::Communicator& comm, int world_rank, std::int64_t want) {
  std::vector<std::int64_t> sums(100, std::int64_t{1} << world_rank);
  comm.allreduce(std::span(sums), ReduceOp::kSum);
  return sums == std::vector<std::int64_t>(100, want);
}

/// The sockets of this process: a connection that was closed and made again is another one.
std::set<std::string> sockets() {
  std::set<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string to = std::filesystem::read_symlink(entry.path(), gone).string();
    if (!gone && to.starts_with("socket:")) all.insert(to);
  }
  return all;
}

TEST(SpareCommunicators, ServeTheSameRanksAgain) {
  expect_right(4, [](int rank) -> std::string {
    auto world = hips::Communicator::from_environment();
    std::set<std::string> first;
    for (int i = 0; i < 20; ++i) {
      auto half = world.split(rank % 2);
      auto copy = world.duplicate();
      if (!sums_right(*half, rank, rank % 2 == 0 ? 5 : 10) || !sums_right(copy, rank, 15)) return "wrong";
      // By then the control connections are there, too, which are made in the background.
      if (i == 9) first = sockets();
      if (i > 9 && sockets() != first) return "other sockets in round " + std::to_string(i);
      world.barrier();  // nobody has left
    }
    return "right";
  });
}

TEST(SpareCommunicators, AreNotUsedWhileAMemberStillHasItsOwn) {
  expect_right(3, [](int rank) -> std::string {
    auto world = hips::Communicator::from_environment();
    std::optional<hips::Communicator> kept;
    for (int i = 0; i < 6; ++i) {
      auto copy = world.duplicate();
      if (!sums_right(copy, rank, 7)) return "wrong in round " + std::to_string(i);
      if (rank == i % 3) kept = std::move(copy);  // until the next that it keeps
    }
    return "right";
  });
}

TEST(SpareCommunicators, HaveTheOrderOfTheirRanks) {
  expect_right(3, [](int rank) -> std::string {
    auto world = hips::Communicator::from_environment();
    for (int i = 0; i < 8; ++i) {
      auto part = world.split(i / 4, i % 2 == 0 ? rank : -rank);
      if (part->rank() != (i % 2 == 0 ? rank : 2 - rank)) return "wrong rank in round " + std::to_string(i);
      std::vector<std::int32_t> mine(1, rank), all(3);
      part->allgather(std::span<const std::int32_t>(mine), std::span(all));
      if (all != (i % 2 == 0 ? std::vector{0, 1, 2} : std::vector{2, 1, 0})) return "wrong order";
    }
    return "right";
  });
}

TEST(SpareCommunicators, TellAPeerThatStillCallsThatTheyWereDestroyed) {
  expect_right(3, [](int rank) -> std::string {
    auto world = hips::Communicator::from_environment();
    auto copy = std::optional(world.duplicate());
    if (!sums_right(*copy, rank, 7)) return "wrong";
    if (rank == 1) {
      copy.reset();
    } else {
      const std::string text = hips::test::error_text([&] { copy->barrier(); });
      if (text.find("rank 1 destroyed the communicator without taking part in barrier #2") ==
          std::string::npos)
        return text;
    }
    copy.reset();
    // It has failed, so nobody uses it again.
    auto another = world.duplicate();
    return sums_right(another, rank, 7) && sums_right(world, rank, 7) ? "right" : "wrong after the error";
  });
}

TEST(SpareCommunicators, EndWithTheLastOtherCommunicator) {
  expect_right(2, [](int rank) -> std::string {
    std::size_t before = 0;
    for (int i = 0; i < 3; ++i) {
      auto world = hips::Communicator::from_environment();
      {
        auto copy = world.duplicate();
        if (!sums_right(copy, rank, 3)) return "wrong";
      }
      if (hips::comm::Communicator::num_alive() != 2) return "the copy is not kept";
      { auto gone = std::move(world); }
      if (hips::comm::Communicator::num_alive() != 0) return "the copy outlives the last communicator";
      if (i == 0) before = sockets().size();
      if (sockets().size() > before) return "more sockets";
    }
    return "right";
  });
}

TEST(SpareCommunicators, KeepFewOfMany) {
  expect_right(4, [](int rank) -> std::string {
    auto world = hips::Communicator::from_environment();
    for (int i = 0; i < 24; ++i) {
      // Pairs and triples of all kinds.
      const int without = i % 4;
      auto part = world.split(rank == without ? 1 : 0, i % 3 == 0 ? -rank : rank);
      if (!sums_right(*part, rank, rank == without ? 1 << rank : 15 - (1 << without))) return "wrong";
    }
    return hips::comm::Communicator::num_alive() <= 1 + hips::comm::SpareCommunicators::kMost ? "right"
                                                                                              : "too many";
  });
}

/// A communicator without peers that may be used again.
std::unique_ptr<hips::comm::Communicator> make_reusable() {
  auto made = std::make_unique<hips::comm::Communicator>(0, 2, std::make_shared<const hips::Config>(),
                                                         hips::comm::Communicator::Origin());
  made->allow_reuse(7);
  return made;
}

TEST(SpareCommunicators, ThatFailAfterTheyWereAnnouncedAreUsed) {
  using hips::comm::SpareCommunicators;
  const auto other = make_reusable();  // without another one the spare ones end
  auto made = make_reusable();
  hips::comm::Communicator& spare = *made;
  SpareCommunicators::process().retire(std::move(made));
  auto taken = SpareCommunicators::process().take();
  ASSERT_EQ(taken.notes().size(), 1U);
  const std::uint64_t id = taken.notes()[0].id;
  ASSERT_TRUE(spare.abort("test").ok());
  EXPECT_NE(taken.use(id), nullptr);  // the other ranks use it, too
  EXPECT_EQ(taken.use(id), nullptr);

  made = make_reusable();
  ASSERT_TRUE(made->abort("test").ok());
  SpareCommunicators::process().retire(std::move(made));
  made = make_reusable();
  hips::comm::Communicator& later = *made;
  SpareCommunicators::process().retire(std::move(made));
  ASSERT_TRUE(later.abort("test").ok());
  EXPECT_THAT(SpareCommunicators::process().take().notes(), testing::IsEmpty());
  EXPECT_EQ(hips::comm::Communicator::num_alive(), 1U);
}

/// What a communicator of three ranks, all of this process, hears as rank 0 in a call.
class Watch {
 public:
  Watch() : control_(*hips::comm::Control::create({.self = ProcessInfo::self(), .token = "t"})) {
    watch->start(*control_, {}, 5, 0, std::vector<ProcessInfo>(3, ProcessInfo::self()));
  }
  ~Watch() { watch->leave(); }
  void begin_call() { watch->record().begin({.collective = hips::Collective::kBarrier}); }
  std::string failure() {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!watch->failed() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    return watch->failure().message;
  }
  std::shared_ptr<FailureDetector> watch = std::make_shared<FailureDetector>();

 private:
  std::unique_ptr<hips::comm::Control> control_;
};

TEST(SpareCommunicators, AreNotDestroyedOnARankThatIsStillMakingThem) {
  FailureDetector late;
  late.retire();
  const auto says_late = late.answer(1);
  EXPECT_EQ(says_late.last.kind, CallEntry::Kind::kDestroyed);
  Watch here;
  here.watch->retire();
  here.watch->use_again();
  here.begin_call();
  here.watch->on_answer(1, says_late);
  // A rank that has used it as often, and destroyed it again.
  late.use_again();
  late.retire();
  here.watch->on_answer(2, late.answer(1));
  EXPECT_THAT(here.failure(), testing::HasSubstr("rank 2 destroyed the communicator"));
}

TEST(FailureDetectorOfACommunicator, WaitsForWhatARankSentBeforeItLeft) {
  Watch here;
  here.begin_call();
  here.watch->on_left(1);
  const std::vector<hips::Rank> missing{1};
  for (int i = 0; i < 100; ++i)
    here.watch->waiting(missing, "rank 1, segment " + std::to_string(i / 2));  // which comes slowly
  EXPECT_FALSE(here.watch->failed());
  for (int i = 0; i < 20; ++i) here.watch->waiting(missing, "rank 1, segment 50");
  EXPECT_THAT(here.failure(), testing::HasSubstr("rank 1 left the communicator without taking part in"));
}

TEST(SpareCommunicators, AreCommonOnlyIfAllRanksHaveThemAfterAsManyCalls) {
  const SpareNote a{7, 1, 10}, b{7, 2, 20}, other{9, 3, 20};
  using Notes = std::vector<std::vector<SpareNote>>;
  EXPECT_EQ(common_spare(Notes{{a, b}, {b, a}}, 7), 1U);
  EXPECT_EQ(common_spare(Notes{{a, b}, {other, b}}, 7), 2U);
  EXPECT_EQ(common_spare(Notes{{a, b}, {other, b}}, 9), std::nullopt);
  EXPECT_EQ(common_spare(Notes{{a, b}, {}}, 7), std::nullopt);
  EXPECT_EQ(common_spare(Notes{{a}, {{7, 1, 11}}}, 7), std::nullopt);
  EXPECT_EQ(common_spare(Notes{{}, {a}}, 7), std::nullopt);
}

}  // namespace
}  // namespace spare_communicators_test
