#include "lib/comm/control/control.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <thread>

#include "lib/comm/setup/socket.hpp"
#include "tests/choices.hpp"
#include "tests/hang_limit.hpp"

namespace control_test {
namespace {

using hips::Code;
using hips::Rank;
using hips::Status;
using hips::comm::CallAnswer;
using hips::comm::CallEntry;
using hips::comm::CallRecord;
using hips::comm::Control;
using hips::comm::ControlAddress;
using hips::comm::GroupListener;
using hips::comm::ProcessInfo;
using testing::AllOf;
using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr std::uint64_t kGroup = 77;

/// Records the events that it receives.
class Listener final : public GroupListener {
 public:
  void on_failed(const Status& status) override {
    need_memory();
    const std::lock_guard lock(mutex_);
    ++failures_;
    failure_ = status;
    changed_.notify_all();
  }
  void on_left(Rank rank) override {
    const std::lock_guard lock(mutex_);
    left_.insert(rank);
    changed_.notify_all();
  }
  void on_answer(Rank from, const CallAnswer& answer) override {
    const std::lock_guard lock(mutex_);
    answers_[from] = answer;
    changed_.notify_all();
  }
  CallAnswer answer(std::uint64_t call_index) const override {
    need_memory();
    return {record.at(call_index), record.last()};
  }
  std::string activity(Rank) const override {
    const std::lock_guard lock(mutex_);
    return activity_;
  }
  bool in_call() const override {
    return record.last().kind == CallEntry::Kind::kHips && !record.last().finished;
  }

  void set_activity(std::string text) {
    const std::lock_guard lock(mutex_);
    activity_ = std::move(text);
  }
  bool waits_for_failure(std::chrono::milliseconds limit = hips::test::kHangLimit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return failures_ > 0; });
  }
  bool waits_for_left(Rank rank, std::chrono::milliseconds limit = hips::test::kHangLimit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return left_.contains(rank); });
  }
  bool waits_for_answer(Rank rank, std::chrono::milliseconds limit = hips::test::kHangLimit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return answers_.contains(rank); });
  }
  Status failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }
  int failures() {
    const std::lock_guard lock(mutex_);
    return failures_;
  }
  CallAnswer answer_of(Rank rank) {
    const std::lock_guard lock(mutex_);
    return answers_[rank];
  }

  /// The control thread gets no memory the next time that it calls on_failed() or answer().
  void lose_memory() { has_memory_ = false; }

  CallRecord record;

 private:
  void need_memory() const {
    if (!has_memory_.exchange(true)) throw std::bad_alloc();
  }

  mutable std::atomic<bool> has_memory_ = true;
  mutable std::mutex mutex_;
  std::string activity_;
  std::condition_variable changed_;
  int failures_ = 0;
  Status failure_;
  std::set<Rank> left_;
  std::map<Rank, CallAnswer> answers_;
};

/// A process with a control plane. It joins on command, then exits when it gets a byte, or waits to be killed.
/// Forked before this process has any thread.
class ControlProcess {
 public:
  ControlProcess() {
    int up[2], down[2];
    if (pipe(up) != 0 || pipe(down) != 0) abort();
    pid_ = fork();
    if (pid_ == 0) {
      close(up[0]);
      close(down[1]);
      run(down[0], up[1]);
      _exit(0);
    }
    close(up[1]);
    close(down[0]);
    from_ = up[0];
    to_ = down[1];
    ProcessInfo info = ProcessInfo::self();
    info.pid = pid_;
    (void)!read(from_, &info.uid, sizeof info.uid);
    (void)!read(from_, &info.control.port, sizeof info.control.port);
    info.control.hosts = {"127.0.0.1"};
    info_ = info;
  }
  ~ControlProcess() {
    signal(SIGKILL);
    reap();
    close(from_);
    close(to_);
  }
  [[nodiscard]] const ProcessInfo& info() const { return info_; }
  void be_also_at(const char* host) { info_.control.hosts.insert(info_.control.hosts.begin(), host); }
  void join(Rank rank, const std::vector<ProcessInfo>& members) const {
    hips::comm::ByteWriter writer;
    writer.put(rank);
    writer.put(static_cast<std::uint32_t>(members.size()));
    for (const ProcessInfo& member : members) put_process(writer, member);
    const auto length = static_cast<std::uint32_t>(writer.blob().size());
    (void)!write(to_, &length, sizeof length);
    (void)!write(to_, writer.blob().data(), length);
    char joined = 0;
    (void)!read(from_, &joined, 1);
  }
  /// Makes the process leave the group in order and exit.
  void finish() {
    (void)!write(to_, "x", 1);
    reap();
  }
  void signal(int number) const {
    // A process number of -1, after reap(), would mean every process there is.
    if (pid_ > 0) kill(pid_, number);
  }
  void reap() {
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  static void run(int in, int out) {
    ProcessInfo self = ProcessInfo::self();
    auto control = Control::create({.self = self, .token = "t"});
    const std::uint16_t port = (*control)->listen(Control::Reach::kNode)->port;
    (void)!write(out, &self.uid, sizeof self.uid);
    (void)!write(out, &port, sizeof port);
    std::uint32_t length = 0;
    if (read(in, &length, sizeof length) != sizeof length) return;
    std::vector<std::byte> bytes(length);
    for (std::size_t done = 0; done < length;) {
      const ssize_t got = read(in, bytes.data() + done, length - done);
      if (got <= 0) return;
      done += static_cast<std::size_t>(got);
    }
    hips::comm::ByteReader reader(bytes);
    const auto rank = reader.get<Rank>();
    const auto size = reader.get<std::uint32_t>();
    std::vector<ProcessInfo> members;
    for (std::uint32_t i = 0; i < size; ++i) members.push_back(hips::comm::get_process(reader));
    const auto listener = std::make_shared<Listener>();
    (*control)->join({.id = kGroup, .rank = rank, .members = members, .listener = listener});
    (void)!write(out, "j", 1);
    char byte = 0;
    (void)!read(in, &byte, 1);
    control->reset();  // leaves the group
  }

  pid_t pid_ = -1;
  int from_ = -1, to_ = -1;
  ProcessInfo info_;
};

/// Control planes in this process, each with its own identity, together with those of other processes.
class Members {
 public:
  /// `others`: the ranks that are separate processes. `also_at`: wrong addresses that the members publish before
  /// the right one.
  explicit Members(Rank size, const std::map<Rank, ControlProcess*>& others = {},
                   const std::vector<std::string>& also_at = {}) {
    std::vector<ProcessInfo> infos(static_cast<std::size_t>(size));
    for (Rank r = 0; r < size; ++r) {
      auto& info = infos[static_cast<std::size_t>(r)];
      if (const auto other = others.find(r); other != others.end()) {
        info = other->second->info();
        continue;
      }
      info = ProcessInfo::self();
      info.uid = hips::comm::ProcessUid::random();
      controls[r] = std::move(*Control::create({.self = info, .token = "t"}));
      info.control = *controls[r]->listen(Control::Reach::kNode);
      info.control.hosts.insert(info.control.hosts.begin(), also_at.begin(), also_at.end());
      listeners[r] = std::make_shared<Listener>();
    }
    for (const auto& [r, process] : others) process->join(r, infos);
    for (auto& [r, control] : controls)
      control->join({.id = kGroup, .rank = r, .members = infos, .listener = listeners[r]});
    members = infos;
  }
  std::map<Rank, std::unique_ptr<Control>> controls;
  std::map<Rank, std::shared_ptr<Listener>> listeners;
  std::vector<ProcessInfo> members;
};

TEST(Control, AllRanksFailWithTheFirstReportOnly) {
  Members m(4);
  m.controls[2]->report(kGroup, Status::error(Code::kMismatch, "rank 2 found a mismatch"));
  for (auto& [rank, listener] : m.listeners) {
    ASSERT_TRUE(listener->waits_for_failure()) << rank;
    EXPECT_EQ(listener->failure().code, Code::kMismatch);
    EXPECT_EQ(listener->failure().message, "rank 2 found a mismatch");
  }
  m.controls[1]->report(kGroup, Status::error(Code::kTimeout, "later"));
  m.controls[0]->report(kGroup, Status::error(Code::kTimeout, "later"));
  std::this_thread::sleep_for(100ms);
  for (auto& [rank, listener] : m.listeners) {
    EXPECT_EQ(listener->failures(), 1) << rank;
    EXPECT_EQ(listener->failure().message, "rank 2 found a mismatch") << rank;
  }
}

TEST(Control, AllRanksFailIfOneHasNoMemoryToAnswer) {
  for (const Rank answering : {0, 2}) {
    Members m(3);
    m.listeners[answering]->lose_memory();
    // A query is lost if the target has no link to the hub yet, so repeat it.
    for (int i = 0; i < 3600 && !m.listeners[1]->waits_for_failure(50ms); ++i)
      m.controls[1]->query(kGroup, answering, 1);
    for (auto& [rank, listener] : m.listeners) {
      ASSERT_TRUE(listener->waits_for_failure()) << rank;
      EXPECT_EQ(listener->failure().code, Code::kOutOfMemory);
      EXPECT_THAT(listener->failure().message, HasSubstr("has no memory for control messages"));
    }
  }
}

TEST(Control, AFailureReachesARankThatHadNoMemoryForIt) {
  Members m(3);
  m.listeners[2]->lose_memory();
  m.controls[1]->report(kGroup, Status::error(Code::kMismatch, "rank 1 found a mismatch"));
  for (auto& [rank, listener] : m.listeners) {
    ASSERT_TRUE(listener->waits_for_failure()) << rank;
    EXPECT_EQ(listener->failure().message, "rank 1 found a mismatch");
  }
}

TEST(Control, ARankTriesAllAddressesOfAPeer) {
  // No process listens at the first address; the second one is unreachable.
  Members m(3, {}, {"127.0.0.9", "203.0.113.1"});
  m.controls[2]->report(kGroup, Status::error(Code::kMismatch, "rank 2 found a mismatch"));
  for (auto& [rank, listener] : m.listeners) EXPECT_TRUE(listener->waits_for_failure()) << rank;
}

TEST(Control, ASilentUnknownProcessDoesNotBlockConnecting) {
  // The port of a member's listener, at another address.
  ControlProcess hub;
  const auto unknown = hips::listen_tcp(hips::comm::resolve("127.0.0.8", hub.info().control.port)->front());
  ASSERT_TRUE(unknown);
  hub.be_also_at("127.0.0.8");
  Members m(3, {{0, &hub}});
  m.controls[2]->report(kGroup, Status::error(Code::kMismatch, "rank 2 found a mismatch"));
  for (auto& [rank, listener] : m.listeners) EXPECT_TRUE(listener->waits_for_failure()) << rank;
}

TEST(Control, ConcurrentReportsOfTwoRanksGiveOneDecision) {
  for (int trial = 0; trial < 20; ++trial) {
    Members m(4);
    std::thread one([&] { m.controls[1]->report(kGroup, Status::error(Code::kMismatch, "one")); });
    std::thread three([&] { m.controls[3]->report(kGroup, Status::error(Code::kMismatch, "three")); });
    one.join();
    three.join();
    ASSERT_TRUE(m.listeners[0]->waits_for_failure());
    const std::string failure = m.listeners[0]->failure().message;
    for (auto& [rank, listener] : m.listeners) {
      ASSERT_TRUE(listener->waits_for_failure());
      EXPECT_EQ(listener->failure().message, failure);
    }
  }
}

TEST(Control, RanksThatLeaveAfterAFailureForwardIt) {
  // A rank that knows the failure and lost its hub may join the next hub before that hub knows the failure.
  const int num_trials = hips::test::runs_a_sample() ? 20 : 100;
  for (int trial = 0; trial < num_trials; ++trial) {
    Members m(5);
    std::vector<std::thread> threads;
    for (auto& [rank, control] : m.controls)
      threads.emplace_back([&, rank = rank, listener = m.listeners[rank]] {
        control->report(kGroup, Status::error(Code::kMismatch, "rank " + std::to_string(rank) + " found it"));
        EXPECT_TRUE(listener->waits_for_failure());
        control.reset();
      });
    for (std::thread& thread : threads) thread.join();
    const std::string failure = m.listeners[0]->failure().message;
    for (auto& [rank, listener] : m.listeners)
      ASSERT_EQ(listener->failure().message, failure) << rank << " of trial " << trial;
  }
}

TEST(Control, ARankThatLeavesIsNotReportedDead) {
  Members m(3);
  m.controls[2]->leave(kGroup);
  m.controls[2].reset();
  EXPECT_TRUE(m.listeners[0]->waits_for_left(2));
  EXPECT_TRUE(m.listeners[1]->waits_for_left(2));
  EXPECT_FALSE(m.listeners[0]->waits_for_failure(200ms));
  EXPECT_FALSE(m.listeners[1]->waits_for_failure(0ms));
}

TEST(Control, TheNextRankBecomesTheHubWhenTheHubLeaves) {
  Members m(4);
  m.controls[0]->leave(kGroup);
  m.controls[0].reset();
  for (const Rank r : {1, 2, 3}) ASSERT_TRUE(m.listeners[r]->waits_for_left(0));
  // Rank 1 leaves, too; the report of rank 3 then goes through rank 2.
  m.controls[1].reset();
  for (const Rank r : {2, 3}) ASSERT_TRUE(m.listeners[r]->waits_for_left(1));
  m.controls[3]->report(kGroup, Status::error(Code::kAborted, "rank 3 gives up"));
  for (const Rank r : {2, 3}) {
    ASSERT_TRUE(m.listeners[r]->waits_for_failure());
    EXPECT_EQ(m.listeners[r]->failure().message, "rank 3 gives up");
  }
}

TEST(Control, AReportReachesAllRanksIfTheHubLeavesMeanwhile) {
  for (int trial = 0; trial < 40; ++trial) {
    Members m(3);
    // Too long for the small-string buffer, so that a use after free shows.
    const std::string text(200, 'x');
    std::thread leaves([&] { m.controls[0].reset(); });
    m.controls[1]->report(kGroup, Status::error(Code::kMismatch, text));
    leaves.join();
    for (const Rank r : {1, 2}) {
      ASSERT_TRUE(m.listeners[r]->waits_for_failure()) << r << " of trial " << trial;
      EXPECT_EQ(m.listeners[r]->failure().message, text);
    }
  }
}

TEST(Control, AllRanksLeaveConcurrentlyInAnyOrder) {
  auto fastest = std::chrono::steady_clock::duration::max();
  for (int trial = 0; trial < 20; ++trial) {
    Members m(6);
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (auto& [rank, control] : m.controls) threads.emplace_back([&control = control] { control.reset(); });
    for (std::thread& thread : threads) thread.join();
    fastest = std::min(fastest, std::chrono::steady_clock::now() - begin);
    for (auto& [rank, listener] : m.listeners)
      EXPECT_EQ(listener->failures(), 0) << rank << ": " << listener->failure().message;
  }
  // A rank that misses an acknowledgement waits a full second in every trial.
  EXPECT_LT(fastest, 900ms);
}

TEST(Control, ARankQueriesTheLastCallOfABusyRankThroughTheHub) {
  Members m(3);
  m.listeners[2]->record.begin({.count = 4, .type = hips::DataType::kInt32, .op = hips::ReduceOp::kSum});
  m.listeners[2]->record.end(1);
  m.listeners[2]->record.add_delegated("MPI_Allreduce of a derived type");
  // A query is lost if the target has no link to the hub yet, so repeat it.
  const auto ask = [&](Rank asker, Rank target, std::uint64_t index) {
    for (int i = 0; i < 3600; ++i) {
      m.controls[asker]->query(kGroup, target, index);
      if (m.listeners[asker]->waits_for_answer(target, 50ms)) return true;
    }
    return false;
  };
  ASSERT_TRUE(ask(1, 2, 1));
  EXPECT_EQ(to_string(m.listeners[1]->answer_of(2).asked), "allreduce #1 (4 x int32, sum)");
  EXPECT_EQ(m.listeners[1]->answer_of(2).last.kind, CallEntry::Kind::kDelegated);
  // The hub queries a member, and a member queries the hub.
  ASSERT_TRUE(ask(0, 2, 2));
  ASSERT_TRUE(ask(2, 0, 1));
  EXPECT_EQ(m.listeners[2]->answer_of(0).last.kind, CallEntry::Kind::kNone);
}

TEST(Control, AllRanksReportADeadMemberWithTheSameMessage) {
  ControlProcess mortal;
  Members m(4, {{2, &mortal}});
  m.listeners[0]->set_activity("lane 0, scatter stage 1");
  mortal.signal(SIGKILL);
  for (auto& [rank, listener] : m.listeners) {
    ASSERT_TRUE(listener->waits_for_failure()) << rank;
    EXPECT_EQ(listener->failure().code, Code::kPeerLost);
    EXPECT_EQ(listener->failure().rank, 2);
    EXPECT_EQ(listener->failure().message, m.listeners[0]->failure().message);
  }
  EXPECT_THAT(m.listeners[1]->failure().message,
              AllOf(HasSubstr("rank 2 (pid " + std::to_string(mortal.info().pid)), HasSubstr("died"),
                    HasSubstr("lane 0, scatter stage 1")));
}

/// Communicators derived from that of Members.
struct Derived {
  Derived(Members& m, std::uint64_t id, std::vector<Rank> ranks) : members(std::move(ranks)) {
    for (const Rank rank : members)
      if (m.controls.contains(rank)) derive(m, id, rank);
  }
  void derive(Members& m, std::uint64_t id, Rank rank) {
    listeners[rank] = std::make_shared<Listener>();
    const auto place = static_cast<Rank>(std::ranges::find(members, rank) - members.begin());
    m.controls[rank]->derive(
        {.from = kGroup, .id = id, .rank = place, .members = members, .listener = listeners[rank]});
  }
  std::vector<Rank> members;
  std::map<Rank, std::shared_ptr<Listener>> listeners;
};

/// Asks until there is an answer: a question is lost while the other rank has not reached the hub yet.
bool asks(Control& control, std::uint64_t id, Rank rank, Listener& listener) {
  for (int tries = 0; tries < 200; ++tries) {
    control.query(id, rank, 2);
    if (listener.waits_for_answer(rank, 100ms)) return true;
  }
  return false;
}

TEST(Control, ADeathFailsTheDerivedCommunicatorsThatContainIt) {
  ControlProcess mortal;
  Members m(5, {{3, &mortal}});
  Derived with(m, 1, {4, 3, 2}), without(m, 2, {4, 1, 2}), after(m, 3, {0, 3});
  mortal.signal(SIGKILL);
  for (const Rank rank : {2, 4}) {
    ASSERT_TRUE(with.listeners[rank]->waits_for_failure()) << rank;
    EXPECT_EQ(with.listeners[rank]->failure().rank, 1) << "its rank there";
    EXPECT_EQ(with.listeners[rank]->failure().message, with.listeners[2]->failure().message);
    EXPECT_THAT(with.listeners[rank]->failure().message,
                HasSubstr("rank 1 (pid " + std::to_string(mortal.info().pid)));
  }
  ASSERT_TRUE(after.listeners[0]->waits_for_failure());
  ASSERT_TRUE(m.listeners[1]->waits_for_failure());
  // One that is made later fails at once.
  Derived late(m, 4, {1, 3});
  ASSERT_TRUE(late.listeners[1]->waits_for_failure());
  EXPECT_EQ(late.listeners[1]->failure().rank, 1);
  EXPECT_FALSE(without.listeners[1]->waits_for_failure(50ms));
  m.controls[4]->report(2, Status::error(Code::kInternal, "of this one"));
  for (const Rank rank : {4, 1, 2}) {
    ASSERT_TRUE(without.listeners[rank]->waits_for_failure()) << rank;
    EXPECT_EQ(without.listeners[rank]->failure().message, "of this one");
  }
}

TEST(Control, DerivedCommunicatorsOutliveAHubThatDied) {
  ControlProcess mortal;
  Members m(4, {{0, &mortal}});
  Derived without(m, 1, {2, 1, 3}), with(m, 2, {3, 0});
  mortal.signal(SIGKILL);
  ASSERT_TRUE(with.listeners[3]->waits_for_failure());
  EXPECT_EQ(with.listeners[3]->failure().rank, 1);
  ASSERT_TRUE(m.listeners[2]->waits_for_failure());
  EXPECT_FALSE(without.listeners[1]->waits_for_failure(50ms));
  m.controls[3]->report(1, Status::error(Code::kInternal, "through the next hub"));
  for (const Rank rank : without.members) {
    ASSERT_TRUE(without.listeners[rank]->waits_for_failure()) << rank;
    EXPECT_EQ(without.listeners[rank]->failure().message, "through the next hub");
  }
}

TEST(Control, ARankThatLeavesWhileTheHubDiesIsNotMissed) {
  ControlProcess mortal;
  Members m(4, {{0, &mortal}});
  Derived without(m, 1, {1, 2, 3});
  mortal.signal(SIGKILL);
  m.controls[3]->leave(1);
  m.controls[3]->leave(kGroup);
  for (const Rank rank : {1, 2}) EXPECT_TRUE(without.listeners[rank]->waits_for_left(2)) << rank;
  m.controls[3].reset();
  EXPECT_FALSE(without.listeners[1]->waits_for_failure(50ms));
}

TEST(Control, ARankThatWillNotMakeADerivedCommunicatorSaysSo) {
  Members m(3);
  Derived pair(m, 5, {1, 2});
  Derived of_pair(m, 6, {});
  of_pair.members = {0, 1};  // ranks of the pair
  of_pair.listeners[1] = std::make_shared<Listener>();
  m.controls[1]->derive({.from = 5, .id = 6, .rank = 0, .members = {0, 1}, .listener = of_pair.listeners[1]});
  m.controls[1]->query(6, 1, 1);
  EXPECT_FALSE(of_pair.listeners[1]->waits_for_answer(1, 50ms)) << "it may still come";
  // So may one of which rank 2 has not even made the parent.
  m.controls[1]->derive({.from = 5, .id = 7, .rank = 0, .members = {0, 1}, .listener = of_pair.listeners[1]});
  m.controls[1]->derive({.from = 7, .id = 8, .rank = 0, .members = {0, 1}, .listener = of_pair.listeners[1]});
  m.controls[1]->query(8, 1, 1);
  EXPECT_FALSE(of_pair.listeners[1]->waits_for_answer(1, 50ms)) << "so may this";
  m.controls[2]->leave(5);
  ASSERT_TRUE(asks(*m.controls[1], 6, 1, *of_pair.listeners[1]));
  EXPECT_EQ(to_string(of_pair.listeners[1]->answer_of(1).last), "destroyed after call #0");
}

TEST(Control, AFailureReachesARankThatDerivesLater) {
  Members m(4);
  Derived first(m, 10, {});
  first.members = {1, 3};
  first.derive(m, 10, 1);
  m.controls[1]->report(10, Status::error(Code::kOutOfMemory, "no memory at rank 1"));
  ASSERT_TRUE(first.listeners[1]->waits_for_failure());
  first.derive(m, 10, 3);
  ASSERT_TRUE(first.listeners[3]->waits_for_failure());
  EXPECT_EQ(first.listeners[3]->failure().message, "no memory at rank 1");
}

TEST(Control, AnswersThatARankHasDestroyedADerivedCommunicator) {
  Members m(3);
  Derived pair(m, 5, {2, 1});
  pair.listeners[1]->record.begin({.count = 4, .type = hips::DataType::kInt32, .op = hips::ReduceOp::kSum});
  m.controls[1]->leave(5);
  ASSERT_TRUE(asks(*m.controls[2], 5, 1, *pair.listeners[2]));
  const CallAnswer answer = pair.listeners[2]->answer_of(1);
  EXPECT_EQ(answer.last.kind, CallEntry::Kind::kDestroyed);
  EXPECT_EQ(to_string(answer.last), "destroyed after call #1");
  // The group is there as long as a communicator is.
  EXPECT_FALSE(m.listeners[0]->waits_for_left(1, 50ms));
  m.controls[1]->leave(kGroup);
  EXPECT_TRUE(m.listeners[0]->waits_for_left(1));
}

TEST(Control, TheHubReportsADeadMemberWithoutAnyMissingData) {
  ControlProcess mortal;
  Members m(3, {{1, &mortal}});
  m.listeners[0]->record.begin({.count = 4, .type = hips::DataType::kInt32, .op = hips::ReduceOp::kSum});
  mortal.signal(SIGKILL);
  ASSERT_TRUE(m.listeners[2]->waits_for_failure());
  EXPECT_EQ(m.listeners[2]->failure().rank, 1);
  EXPECT_TRUE(m.listeners[0]->waits_for_failure());
}

TEST(Control, ARankThatLeavesBecauseAnotherDiedIsNotBlamed) {
  ControlProcess mortal;
  Members m(4, {{3, &mortal}});
  mortal.signal(SIGKILL);
  mortal.reap();
  std::this_thread::sleep_for(100ms);  // the hub sees the death, and holds it back
  m.controls[2].reset();
  ASSERT_TRUE(m.listeners[1]->waits_for_left(2));
  Status left = Status::error(Code::kPeerLost, "rank 2 left without taking part");
  left.rank = 2;
  m.controls[1]->report(kGroup, left);
  for (const Rank r : {0, 1}) {
    ASSERT_TRUE(m.listeners[r]->waits_for_failure());
    EXPECT_EQ(m.listeners[r]->failure().rank, 3) << m.listeners[r]->failure().message;
  }
}

TEST(Control, TheFirstOfTwoDeathsIsTheCause) {
  ControlProcess first, second;
  Members m(4, {{3, &first}, {1, &second}});
  first.signal(SIGKILL);
  first.reap();
  std::this_thread::sleep_for(100ms);
  second.signal(SIGKILL);
  std::this_thread::sleep_for(50ms);
  Status left = Status::error(Code::kPeerLost, "rank 1 left without taking part");
  left.rank = 1;
  m.controls[2]->report(kGroup, left);
  for (const Rank r : {0, 2}) {
    ASSERT_TRUE(m.listeners[r]->waits_for_failure());
    EXPECT_EQ(m.listeners[r]->failure().rank, 3) << m.listeners[r]->failure().message;
  }
}

TEST(Control, EachMemberDetectsADeadHubWithTheSameMessage) {
  // Several jobs at once put members into every state of connecting to their hub: in its backlog or not yet.
  constexpr int kJobs = 12;
  std::deque<ControlProcess> mortals(kJobs);
  std::deque<Members> jobs;
  for (ControlProcess& mortal : mortals) {
    jobs.emplace_back(4, std::map<Rank, ControlProcess*>{{0, &mortal}});
    mortal.signal(SIGKILL);
  }
  for (Members& m : jobs) {
    for (auto& [rank, listener] : m.listeners) {
      ASSERT_TRUE(listener->waits_for_failure()) << rank;
      EXPECT_EQ(listener->failure().rank, 0);
      EXPECT_EQ(listener->failure().message, m.listeners[1]->failure().message);
      EXPECT_THAT(listener->failure().message,
                  HasSubstr("died: its process ended without leaving the communicator"));
    }
  }
}

TEST(Control, TheNextHubDetectsADeadMemberAfterTheHubHasLeft) {
  ControlProcess mortal;
  Members m(4, {{3, &mortal}});
  m.controls[0].reset();
  ASSERT_TRUE(m.listeners[1]->waits_for_left(0));
  mortal.signal(SIGKILL);
  for (const Rank r : {1, 2}) {
    ASSERT_TRUE(m.listeners[r]->waits_for_failure());
    EXPECT_EQ(m.listeners[r]->failure().rank, 3);
  }
}

TEST(Control, AProcessThatExitsInOrderIsNotReportedDead) {
  ControlProcess member, hub;
  Members m(4, {{0, &hub}, {3, &member}});
  member.finish();
  EXPECT_TRUE(m.listeners[1]->waits_for_left(3));
  hub.finish();
  EXPECT_TRUE(m.listeners[1]->waits_for_left(0));
  EXPECT_TRUE(m.listeners[2]->waits_for_left(0));
  EXPECT_FALSE(m.listeners[1]->waits_for_failure(200ms)) << m.listeners[1]->failure().message;
  EXPECT_FALSE(m.listeners[2]->waits_for_failure(0ms)) << m.listeners[2]->failure().message;
}

TEST(Control, AStoppedProcessIsNotReportedDead) {
  ControlProcess sleeper;
  Members m(3, {{1, &sleeper}});
  sleeper.signal(SIGSTOP);
  // Longer than a keepalive probe takes; the kernel answers the probes for a stopped process.
  EXPECT_FALSE(m.listeners[0]->waits_for_failure(2500ms)) << m.listeners[0]->failure().message;
  sleeper.signal(SIGCONT);
  EXPECT_FALSE(m.listeners[0]->waits_for_failure(200ms));
  sleeper.finish();
  EXPECT_TRUE(m.listeners[2]->waits_for_left(1));
}

TEST(Control, ASuspectThatLeavesIsNotReported) {
  Members m(3);
  m.controls[0]->suspect(kGroup, 2, Status::error(Code::kPeerLost, "the transport lost rank 2"));
  m.controls[2].reset();
  EXPECT_TRUE(m.listeners[0]->waits_for_left(2));
  EXPECT_FALSE(m.listeners[0]->waits_for_failure(2500ms));
}

TEST(Control, ASuspectThatDoesNotLeaveIsReportedAfterTwoSeconds) {
  Members m(3);
  m.controls[1]->suspect(kGroup, 2, Status::error(Code::kPeerLost, "the transport lost rank 2"));
  EXPECT_FALSE(m.listeners[0]->waits_for_failure(1s));
  for (auto& [rank, listener] : m.listeners) {
    ASSERT_TRUE(listener->waits_for_failure());
    EXPECT_EQ(listener->failure().message, "the transport lost rank 2");
  }
}

TEST(Control, AForkedChildNeitherKeepsLinksOpenNorSends) {
  ControlProcess hub;
  Members m(3, {{0, &hub}});
  m.controls[1]->before_fork();
  m.controls[2]->before_fork();
  const pid_t child = fork();
  if (child == 0) {
    m.controls[1]->after_fork_in_child();
    m.controls[2]->after_fork_in_child();
    m.controls[1]->leave(kGroup);  // does nothing
    std::this_thread::sleep_for(3s);
    _exit(0);
  }
  m.controls[1]->after_fork_in_parent();
  m.controls[2]->after_fork_in_parent();
  // Rank 1 leaves: its links close although the child is alive, and the child has sent nothing.
  EXPECT_FALSE(m.listeners[2]->waits_for_left(1, 200ms));
  m.controls[1].reset();
  EXPECT_TRUE(m.listeners[2]->waits_for_left(1));
  EXPECT_FALSE(m.listeners[2]->waits_for_failure(100ms));
  if (child > 0) kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

/// Connects to a control port, sends `bytes` and returns true if the other side closes the connection.
bool refused(const ControlAddress& target, const std::string& bytes) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(target.port);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const timeval limit{5, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return false;
  (void)!send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  char buffer[256];
  ssize_t got = 0;
  do got = recv(fd, buffer, sizeof buffer, 0);
  while (got > 0);
  const bool closed = got == 0 || errno == ECONNRESET;
  close(fd);
  return closed;
}

std::string frame(const hips::comm::ByteWriter& body) {
  hips::comm::ByteWriter framed;
  framed.put_bytes(body.blob());
  return {reinterpret_cast<const char*>(framed.blob().data()), framed.blob().size()};
}

TEST(Control, UnknownProcessesAreRejectedAndDoNoHarm) {
  Members m(2);
  const ControlAddress& port = m.members[0].control;
  EXPECT_TRUE(refused(port, "GET / HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(refused(port, std::string("\4\0\0\0\3\3\3\3", 8)));
  const auto hello = [](std::uint32_t version, const char* token) {
    hips::comm::ByteWriter writer;
    writer.put(std::uint8_t{1});
    writer.put(hips::comm::kWireMagic);
    writer.put(version);
    writer.put_text(token);
    for (const std::uint64_t half : {1, 2, 0, 0}) writer.put(half);  // its uid; the uid of whom it looks for
    return frame(writer);
  };
  EXPECT_TRUE(refused(port, hello(hips::comm::kWireVersion + 1, "t")));
  EXPECT_TRUE(refused(port, hello(hips::comm::kWireVersion, "another token")));
  // The right token, but the rank of another process.
  hips::comm::ByteWriter join;
  join.put(std::uint8_t{2});
  join.put(kGroup);
  join.put(Rank{1});
  join.put(std::uint32_t{0});
  EXPECT_TRUE(refused(port, hello(hips::comm::kWireVersion, "t") + frame(join)));
  // The right token, and a failure of a communicator that the process does not belong to.
  for (const int type : {7, 8}) {
    hips::comm::ByteWriter failure;
    failure.put(static_cast<std::uint8_t>(type));
    failure.put(kGroup);
    failure.put_status(Status::error(Code::kAborted, "not mine"));
    EXPECT_TRUE(refused(port, hello(hips::comm::kWireVersion, "t") + frame(failure))) << type;
  }
  // The members still work.
  m.controls[1]->report(kGroup, Status::error(Code::kAborted, "still there"));
  ASSERT_TRUE(m.listeners[0]->waits_for_failure());
  EXPECT_EQ(m.listeners[0]->failure().message, "still there");
}

}  // namespace
}  // namespace control_test
