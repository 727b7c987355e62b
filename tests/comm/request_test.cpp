// Non-blocking and persistent calls. Ranks are processes; each computes the expected results itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <hips/hips.hpp>

#include "tests/choices.hpp"
#include "tests/comm/rank_processes.hpp"
#include "tests/hang_limit.hpp"

namespace request_test {
namespace {

using hips::Code;
using hips::ReduceOp;
using hips::test::Outcome;
using hips::test::RankProcesses;
using testing::HasSubstr;
using namespace std::chrono_literals;

using Ready = std::function<void()>;
using Environment = std::map<std::string, std::string>;

std::vector<Outcome> outcomes_of(int num_ranks, const RankProcesses::Body& body,
                                 const Environment& environment = {}) {
  RankProcesses ranks(num_ranks, body, environment);
  return ranks.wait();
}

void expect_right(const std::vector<Outcome>& outcomes) {
  for (std::size_t r = 0; r < outcomes.size(); ++r) {
    EXPECT_FALSE(outcomes[r].hung) << "rank " << r << " hung";
    EXPECT_EQ(outcomes[r].exit_code, 0) << "rank " << r << ": " << outcomes[r].text;
    EXPECT_EQ(outcomes[r].text, "right") << "rank " << r;
  }
}

/// What executes the calls: shared memory of one node, or a plan over a transport.
struct Backend {
  std::string name, topology, transport;
};
void PrintTo(const Backend& backend, std::ostream* out) {
  *out << backend.name;
}

/// Backends and numbers of ranks.
std::vector<std::tuple<Backend, int>> shapes() {
  std::vector<std::tuple<Backend, int>> all;
  for (const Backend& backend : {Backend{"Memory", "", "auto"}, Backend{"PlanShm", "switch:%", "shm"},
                                 Backend{"PlanTcp", "switch:%", "tcp"}})
    for (const int num_ranks : {1, 2, 3, 5}) all.emplace_back(backend, num_ranks);
  all = hips::test::or_every_nth(std::move(all), 2);
  all.emplace_back(Backend{"Hierarchical", "switch:2/2", "auto"}, 4);
  return all;
}

hips::Communicator communicator(const std::string& topology, int num_ranks,
                                hips::ThreadMode thread_mode = hips::ThreadMode::kSerialized) {
  std::string spec = topology;
  if (const auto at = spec.find('%'); at != std::string::npos) spec.replace(at, 1, std::to_string(num_ranks));
  return hips::Communicator::from_environment({.topology = spec, .thread_mode = thread_mode});
}

std::int64_t operand(int rank, std::uint64_t call, std::size_t i) {
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(rank) + 1) * (call * 31 + i % 1009 + 1));
}

/// One call with its buffers and its oracle.
struct Call {
  std::uint64_t number = 0;
  bool in_place = false;
  std::vector<std::int64_t> in, out;
  hips::Request request;

  void fill(int rank) {
    for (std::size_t i = 0; i < out.size(); ++i) (in_place ? out : in)[i] = operand(rank, number, i);
  }
  void start(hips::Communicator& comm) {
    request = in_place ? comm.iallreduce<std::int64_t>(out, ReduceOp::kSum)
                       : comm.iallreduce<std::int64_t>(in, out, ReduceOp::kSum);
  }
  /// Checks a complete call, whose input may be overwritten at once.
  void check(int num_ranks) {
    std::fill(in.begin(), in.end(), -1);
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::int64_t right = 0;
      for (int r = 0; r < num_ranks; ++r) right += operand(r, number, i);
      if (out[i] != right)
        throw std::runtime_error("call " + std::to_string(number) + ", element " + std::to_string(i) +
                                 " of " + std::to_string(out.size()) + ": " + std::to_string(out[i]) +
                                 " instead of " + std::to_string(right));
    }
  }
};

/// Has a progress thread if the number of ranks is even. It must not change results.
Environment environment_of(const Backend& backend, int num_ranks) {
  return {{"HIPS_TRANSPORT", backend.transport}, {"HIPS_PROGRESS_THREAD", num_ranks % 2 == 0 ? "on" : "off"}};
}

class Requests : public testing::TestWithParam<std::tuple<Backend, int>> {};

// All ranks start the same calls in the same order, on two communicators. Each rank completes them in an order of
// its own.
TEST_P(Requests, AreExactInAnyOrderOfCompletion) {
  const auto& [backend, n] = GetParam();
  const std::uint64_t seed = hips::test::seed();
  const int num_steps = hips::test::runs_everything() ? 2000 : hips::test::runs_a_sample() ? 60 : 200;
  const auto body = [=, &backend = backend, n = n](int rank, const Ready&) {
    std::mt19937_64 program(seed), own(seed + 1 + static_cast<std::uint64_t>(rank));
    const auto mode = own() % 2 == 0 ? hips::ThreadMode::kSingle : hips::ThreadMode::kSerialized;
    hips::Communicator first = communicator(backend.topology, n, mode), second = communicator("", n);
    constexpr std::size_t kCounts[] = {0, 1, 7, 13, 509, 1031, 8209, 40009, 150001};
    std::vector<std::unique_ptr<Call>> open;
    const auto end_one = [&] {
      const std::size_t which = own() % open.size();
      Call& call = *open[which];
      if (own() % 2 == 0) {
        while (!call.request.test()) std::this_thread::yield();
      } else {
        call.request.wait();
      }
      call.check(n);
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
    };
    for (int step = 0; step < num_steps; ++step) {
      hips::Communicator& comm = program() % 4 == 0 ? second : first;
      const std::size_t count = kCounts[program() % std::size(kCounts)];
      auto call = std::make_unique<Call>();
      call->number = static_cast<std::uint64_t>(step);
      call->in_place = own() % 2 == 0;
      call->out.resize(count);
      if (!call->in_place) call->in.resize(count);
      call->fill(rank);
      const bool blocks = program() % 5 == 0;
      if (blocks) {
        if (call->in_place)
          comm.allreduce<std::int64_t>(call->out, ReduceOp::kSum);
        else
          comm.allreduce<std::int64_t>(call->in, call->out, ReduceOp::kSum);
        call->check(n);
      } else {
        call->start(comm);
        open.push_back(std::move(call));
      }
      while (open.size() > 12 || (!open.empty() && own() % 3 == 0)) end_one();
    }
    while (!open.empty()) end_one();
    return std::string("right");
  };
  expect_right(outcomes_of(n, body, environment_of(backend, n)));
}

// Rank 0 waits in a call on one communicator while another rank needs its data for a call on the other.
TEST_P(Requests, MakeProgressWhileTheirRankWaitsOnAnotherCommunicator) {
  const auto& [backend, n] = GetParam();
  const auto body = [&backend = backend, n = n](int rank, const Ready&) {
    hips::Communicator first = communicator(backend.topology, n), second = communicator("", n);
    for (std::uint64_t turn = 0; turn < 3; ++turn) {
      Call large, small;
      large.number = 2 * turn;
      large.in.resize(1'000'003);
      large.out.resize(large.in.size());
      large.fill(rank);
      small.number = 2 * turn + 1;
      small.in.resize(3);
      small.out.resize(3);
      small.fill(rank);
      large.start(first);
      if (rank > 0) large.request.wait();
      second.allreduce<std::int64_t>(small.in, small.out, ReduceOp::kSum);
      large.request.wait();
      small.check(n);
      large.check(n);
    }
    return std::string("right");
  };
  expect_right(outcomes_of(n, body, {{"HIPS_TRANSPORT", backend.transport}}));
}

// No rank is in a call of HiPS: results arrive while all ranks sleep.
TEST_P(Requests, MakeProgressWhileTheProgramComputesWithAProgressThread) {
  const auto& [backend, n] = GetParam();
  if (n == 1) GTEST_SKIP() << "one rank has nothing to wait for";
  const auto body = [=, &backend = backend, n = n](int rank, const Ready&) -> std::string {
    hips::Communicator comm = communicator(backend.topology, n);
    for (int round = 0; round < 3; ++round) {
      std::vector<std::int64_t> values(100'003, rank + 1);
      hips::Request request = comm.iallreduce<std::int64_t>(values, ReduceOp::kSum);
      const std::int64_t right = n * (n + 1) / 2;
      const auto end = std::chrono::steady_clock::now() + hips::test::kHangLimit;
      const volatile std::int64_t* const last = &values.back();
      const volatile std::int64_t* const first = &values.front();
      while ((*first != right || *last != right) && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(1ms);
      if (*first != right || *last != right) return "no progress";
      request.wait();
      // The progress thread falls asleep; the next round wakes it.
      std::this_thread::sleep_for(5ms);
    }
    return "right";
  };
  expect_right(outcomes_of(n, body, {{"HIPS_TRANSPORT", backend.transport}, {"HIPS_PROGRESS_THREAD", "on"}}));
}

// The other ranks enter the call in which rank 0 waits only after rank 0 has completed its request.
TEST_P(Requests, CompleteWhileOneOfTheThreadsWaitsOnTheirCommunicator) {
  const auto& [backend, n] = GetParam();
  if (n == 1) GTEST_SKIP() << "one rank has nothing to wait for";
  for (const bool tests : {false, true}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const auto body = [&backend = backend, n = n, tests, ends](int rank, const Ready&) -> std::string {
      hips::Communicator comm = communicator(backend.topology, n);
      std::vector<std::int64_t> small(7, rank + 1), large(30'011, rank + 1);
      const std::int64_t right = n * (n + 1) / 2;
      hips::Request request = comm.iallreduce<std::int64_t>(small, ReduceOp::kSum);
      const auto end_request = [&] {
        if (tests)
          while (!request.test()) std::this_thread::yield();
        request.wait();
      };
      if (rank == 0) {
        std::thread other([&] { comm.allreduce<std::int64_t>(large, ReduceOp::kSum); });
        std::this_thread::sleep_for(20ms);
        end_request();
        const std::string word(static_cast<std::size_t>(n - 1), 'x');
        const bool told = write(ends[1], word.data(), word.size()) == n - 1;
        other.join();
        if (!told) return "no pipe";
      } else {
        end_request();
        char heard = 0;
        if (read(ends[0], &heard, 1) != 1) return "no pipe";
        comm.allreduce<std::int64_t>(large, ReduceOp::kSum);
      }
      return small[6] == right && large.back() == right ? "right" : "wrong";
    };
    const auto outcomes = outcomes_of(n, body, environment_of(backend, n));
    close(ends[0]);
    close(ends[1]);
    expect_right(outcomes);
    if (HasFailure()) return;
  }
}

// Each thread has its own communicator. A waiting thread makes progress on the others' calls without disturbing
// them.
TEST_P(Requests, OfSeveralThreadsDoNotDisturbEachOther) {
  const auto& [backend, n] = GetParam();
  const int num_turns = hips::test::runs_a_sample() ? 40 : 200;
  const auto body = [&backend = backend, n = n, num_turns](int rank, const Ready&) {
    constexpr int kThreads = 3;
    std::vector<hips::Communicator> comms;
    for (int t = 0; t < kThreads; ++t) comms.push_back(communicator(t == 1 ? "" : backend.topology, n));
    std::vector<std::string> wrong(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        try {
          std::mt19937_64 own(static_cast<std::uint64_t>(rank * kThreads + t));
          for (int turn = 0; turn < num_turns; ++turn) {
            Call first, second;
            first.number = static_cast<std::uint64_t>(turn * kThreads + t);
            second.number = first.number + 1'000'000;
            for (Call* call : {&first, &second}) {
              call->in.resize(call == &first ? 301 : 20'011);
              call->out.resize(call->in.size());
              call->fill(rank);
              call->start(comms[static_cast<std::size_t>(t)]);
            }
            if (own() % 2 == 0)
              while (!second.request.test()) std::this_thread::yield();
            first.request.wait();
            second.request.wait();
            first.check(n);
            second.check(n);
          }
        } catch (const std::exception& error) {
          wrong[static_cast<std::size_t>(t)] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& text : wrong)
      if (!text.empty()) return text;
    return std::string("right");
  };
  expect_right(outcomes_of(n, body, environment_of(backend, n)));
}

// A call equal to the last one takes a fast path. A call with another buffer, count, type or operation must not
// take it, nor a call that is still outstanding.
TEST_P(Requests, AreExactForRepeatedCalls) {
  const auto& [backend, n] = GetParam();
  const std::uint64_t seed = hips::test::seed();
  const auto body = [=, &backend = backend, n = n](int rank, const Ready&) -> std::string {
    std::mt19937_64 program(seed), own(seed + 1 + static_cast<std::uint64_t>(rank));
    const auto mode = (seed + static_cast<std::uint64_t>(rank)) % 2 == 0 ? hips::ThreadMode::kSingle
                                                                         : hips::ThreadMode::kSerialized;
    hips::Communicator comm = communicator(backend.topology, n, mode);
    constexpr std::size_t kMostCount = 300;
    std::vector<std::int64_t> in(kMostCount), out[2];
    std::size_t which = 0, count = 1;
    ReduceOp op = ReduceOp::kSum;
    for (std::uint64_t step = 0; step < 300; ++step) {
      switch (program() % 12) {
        case 0:
          which = 1 - which;
          break;
        case 1:
          count = program() % (kMostCount + 1);
          break;
        case 2:
          op = op == ReduceOp::kSum ? ReduceOp::kMax : ReduceOp::kSum;
          break;
        default:
          break;
      }
      out[which].assign(kMostCount, -1);
      for (std::size_t i = 0; i < count; ++i) in[i] = operand(rank, step, i);
      hips::Request request =
          comm.iallreduce<std::int64_t>(std::span(in).first(count), std::span(out[which]).first(count), op);
      // An unrelated call of another type in between.
      std::vector<float> ones(7, 1);
      hips::Request other;
      if (program() % 8 == 0) other = comm.iallreduce<float>(ones, ReduceOp::kSum);
      while (own() % 2 == 0 && !request.test()) continue;
      request.wait();
      other.wait();
      for (std::size_t i = 0; i < kMostCount; ++i) {
        std::int64_t right = i < count ? operand(0, step, i) : -1;
        for (int r = 1; r < n && i < count; ++r)
          right = op == ReduceOp::kSum ? right + operand(r, step, i) : std::max(right, operand(r, step, i));
        if (out[which][i] != right) return "step " + std::to_string(step) + ", element " + std::to_string(i);
      }
    }
    return "right";
  };
  expect_right(outcomes_of(n, body, environment_of(backend, n)));
}

TEST_P(Requests, StartAnyNumberOfTimesIfPersistent) {
  const auto& [backend, n] = GetParam();
  const auto body = [&backend = backend, n = n](int rank, const Ready&) {
    hips::Communicator comm = communicator(backend.topology, n);
    Call small, large;
    small.in.resize(5);
    large.in.resize(70'001);
    for (Call* call : {&small, &large}) {
      call->out.resize(call->in.size());
      call->request = comm.allreduce_init<std::int64_t>(call->in, call->out, ReduceOp::kSum);
      if (!call->request.test()) return std::string("outstanding before it was started");
    }
    for (std::uint64_t turn = 0; turn < 30; ++turn) {
      for (Call* call : {&small, &large}) {
        call->number = turn;
        call->fill(rank);
        call->request.start();
      }
      for (Call* call : {&large, &small}) {
        call->request.wait();
        call->check(n);
      }
    }
    return std::string("right");
  };
  expect_right(outcomes_of(n, body, {{"HIPS_TRANSPORT", backend.transport}}));
}

TEST_P(Requests, MayBeWaitedForTogether) {
  const auto& [backend, n] = GetParam();
  const std::uint64_t seed = hips::test::seed();
  const auto body = [=, &backend = backend, n = n](int rank, const Ready&) -> std::string {
    std::mt19937_64 own(seed + static_cast<std::uint64_t>(rank));
    hips::Communicator comms[] = {communicator(backend.topology, n), communicator(backend.topology, n)};
    for (std::uint64_t turn = 0; turn < 10; ++turn) {
      std::vector<std::vector<std::int64_t>> vectors;
      std::vector<hips::Request> requests;
      for (std::uint64_t c = 0; c < 6; ++c) {
        vectors.emplace_back(1 + (turn * 6 + c) * 997 % 20'000);
        for (std::size_t i = 0; i < vectors[c].size(); ++i) vectors[c][i] = operand(rank, c, i);
        if (c == 3) requests.emplace_back();  // of no call
        requests.push_back(comms[c % 2].iallreduce(vectors[c], ReduceOp::kSum));
      }
      const auto check = [&](std::size_t place) {
        if (place == 3) throw std::runtime_error("a request of no call has ended");
        const std::size_t c = place < 3 ? place : place - 1;
        for (std::size_t i = 0; i < vectors[c].size(); ++i) {
          std::int64_t right = 0;
          for (int r = 0; r < n; ++r) right += operand(r, c, i);
          if (vectors[c][i] != right) throw std::runtime_error("call " + std::to_string(c) + " is wrong");
        }
      };
      std::size_t num_ended = 0;
      for (std::uint64_t any = own() % 8; any > 0; --any) {
        const auto place = hips::wait_any(requests);
        if (!place) break;
        check(*place);
        if (requests[*place].handle() != nullptr) return "not freed";
        ++num_ended;
      }
      if (own() % 2 == 0)
        while (!hips::test_all(requests)) std::this_thread::yield();
      hips::wait_all(requests);
      if (hips::wait_any(requests)) return "one is left";
      for (std::size_t place = 0; place < requests.size(); ++place) {
        if (requests[place].handle() != nullptr) return "not freed";
        if (place != 3) check(place);
      }
      if (num_ended > 6) return "too many";
    }
    return "right";
  };
  expect_right(outcomes_of(n, body, environment_of(backend, n)));
}

TEST_P(Requests, OutliveTheirCommunicatorsHandle) {
  const auto& [backend, n] = GetParam();
  const auto body = [&backend = backend, n = n](int rank, const Ready&) {
    for (const auto mode : {hips::ThreadMode::kSerialized, hips::ThreadMode::kSingle}) {
      Call call;
      call.in.resize(300'007);
      call.out.resize(call.in.size());
      call.fill(rank);
      {
        hips::Communicator comm = communicator(backend.topology, n, mode);
        call.start(comm);
      }
      call.request.wait();
      call.check(n);
    }
    return std::string("right");
  };
  expect_right(outcomes_of(n, body, {{"HIPS_TRANSPORT", backend.transport}}));
}

TEST_P(Requests, FailAlikeAfterARankDies) {
  const auto& [backend, n] = GetParam();
  if (n == 1) GTEST_SKIP() << "one rank has nobody to lose";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto body = [&backend = backend, n = n, ends](int rank, const Ready&) -> std::string {
    hips::Communicator comm = communicator(backend.topology, n);
    std::vector<std::unique_ptr<Call>> calls;
    for (std::uint64_t c = 0; c < 3; ++c) {
      calls.push_back(std::make_unique<Call>());
      calls.back()->number = c;
      calls.back()->in_place = true;
      calls.back()->out.resize(100'003);
      calls.back()->fill(rank);
    }
    if (rank == n - 1) {
      calls[0]->start(comm);
      calls[0]->request.wait();
      // A process that exits with unread data resets its TCP connections, and its peers lose what they have
      // not read yet. They must lose the later calls only, so this rank exits when all have completed the first.
      for (int peer = 0; peer < n - 1; ++peer) {
        char heard = 0;
        if (read(ends[0], &heard, 1) != 1) return "no pipe";
      }
      _exit(0);
    }
    for (const auto& call : calls) call->start(comm);
    calls[0]->request.wait();
    calls[0]->check(n);
    if (write(ends[1], "x", 1) != 1) return "no pipe";
    for (std::size_t c : {2u, 1u}) {
      try {
        calls[c]->request.wait();
        return "call " + std::to_string(c) + " ended well";
      } catch (const hips::Error& error) {
        if (error.status().code != Code::kPeerLost) return error.what();
      }
    }
    try {
      calls[0]->start(comm);
      return "started on a communicator that has failed";
    } catch (const hips::Error&) {
    }
    return "right";
  };
  auto outcomes = outcomes_of(n, body, {{"HIPS_TRANSPORT", backend.transport}});
  close(ends[0]);
  close(ends[1]);
  outcomes.pop_back();
  expect_right(outcomes);
}

TEST_P(Requests, ReportDifferentSizesOnEveryRank) {
  const auto& [backend, n] = GetParam();
  if (n == 1) GTEST_SKIP() << "one rank has nobody to differ from";
  const auto body = [&backend = backend, n = n](int rank, const Ready&) -> std::string {
    hips::Communicator comm = communicator(backend.topology, n);
    std::vector<std::int64_t> a(11, 1), b(rank == 0 ? 12 : 13, 1);
    try {
      // A late rank gets the error when it starts one of them.
      hips::Request first = comm.iallreduce<std::int64_t>(a, ReduceOp::kSum);
      hips::Request second = comm.iallreduce<std::int64_t>(b, ReduceOp::kSum);
      second.wait();
      return "ended well";
    } catch (const hips::Error& error) {
      if (error.status().code != Code::kMismatch) return error.what();
      if (std::string(error.what()).find("12") == std::string::npos) return error.what();
    }
    return "right";
  };
  expect_right(outcomes_of(n, body, {{"HIPS_TRANSPORT", backend.transport}}));
}

// A rank that only tests queries its peers too. With a plan, rank 0 sends nothing in a call with count 0.
TEST_P(Requests, FindAMismatchByTestAlone) {
  const auto& [backend, n] = GetParam();
  if (n != 3) GTEST_SKIP() << "once is enough, since it takes a second";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto body = [&backend = backend, n = n, ends](int rank, const Ready&) -> std::string {
    hips::Communicator comm = communicator(backend.topology, n);
    std::vector<std::int64_t> values(rank == 0 ? 0 : 13, 1);
    std::string text = "ended well";
    try {
      hips::Request request = comm.iallreduce<std::int64_t>(values, ReduceOp::kSum);
      // Rank 0 stays outside of HiPS until the others have their error.
      char heard = 0;
      for (int peer = 1; peer < n && rank == 0; ++peer)
        if (read(ends[0], &heard, 1) != 1) return "no pipe";
      const auto end = std::chrono::steady_clock::now() + hips::test::kHangLimit;
      while (rank != 0 && !request.test()) {
        if (std::chrono::steady_clock::now() > end) std::_Exit(1);  // its destructor would wait
        std::this_thread::yield();
      }
    } catch (const hips::Error& error) {
      text = error.status().code == Code::kMismatch ? "right" : error.what();
    }
    if (rank == 0) return "right";
    return write(ends[1], "x", 1) == 1 ? text : "no pipe";
  };
  const auto outcomes = outcomes_of(n, body, {{"HIPS_TRANSPORT", backend.transport}});
  close(ends[0]);
  close(ends[1]);
  expect_right(outcomes);
}

INSTANTIATE_TEST_SUITE_P(Over, Requests, testing::ValuesIn(shapes()), [](const auto& shape) {
  return std::get<0>(shape.param).name + std::to_string(std::get<1>(shape.param));
});

std::string error_of(hips_status_t status) {
  return std::string(hips_status_string(status)) + ": " + (status == HIPS_OK ? "" : hips_last_error());
}

TEST(RequestsOfC, ReportMisuse) {
  const auto body = [](int rank, const Ready&) -> std::string {
    hips_comm_t comm = nullptr;
    if (hips_comm_create(nullptr, nullptr, &comm) != HIPS_OK) return hips_last_error();
    float values[4] = {1, 2, 3, 4};
    const auto has = [](hips_status_t status, const char* text) {
      if (error_of(status).find(text) == std::string::npos) throw std::runtime_error(error_of(status));
    };
    hips_request_t request = HIPS_REQUEST_NULL;
    int done = 0;
    has(hips_wait(&request), "ok");
    has(hips_test(&request, &done), "ok");
    if (done != 1) return "a null request is outstanding";
    has(hips_start(request), "hips_start: request is null");
    has(hips_iallreduce(values, nullptr, 4, HIPS_FLOAT32, HIPS_SUM, comm, &request), "output buffer is null");
    has(hips_iallreduce(HIPS_IN_PLACE, values, 4, HIPS_FLOAT32, HIPS_SUM, comm, nullptr), "request is null");
    if (request != HIPS_REQUEST_NULL) return "a request of a failed call";

    has(hips_iallreduce(HIPS_IN_PLACE, values, 4, HIPS_FLOAT32, HIPS_SUM, comm, &request), "ok");
    has(hips_start(request), "persistent ones come from hips_..._init()");
    has(hips_wait(&request), "ok");
    if (request != HIPS_REQUEST_NULL) return "the request is still there";

    has(hips_allreduce_init(HIPS_IN_PLACE, values, 4, HIPS_FLOAT32, HIPS_SUM, comm, &request), "ok");
    // Rank 1 starts only after rank 0 has seen that its own call is outstanding.
    hips_request_t gate = HIPS_REQUEST_NULL;
    if (rank == 0) {
      has(hips_start(request), "ok");
      has(hips_start(request), "is outstanding");
      has(hips_request_free(&request), "outstanding; wait for it first");
    }
    if (rank == 1) {
      std::this_thread::sleep_for(100ms);
      has(hips_start(request), "ok");
    }
    has(hips_wait(&request), "ok");
    if (request == HIPS_REQUEST_NULL) return "a persistent request is gone";
    hips_request_t both[2] = {request, gate};
    has(hips_start(both[0]), "ok");
    has(hips_waitall(2, both), "ok");
    // One that has ended, and that no call has reported, is outstanding still.
    has(hips_start(both[0]), "ok");
    has(hips_barrier(comm), "ok");
    both[1] = HIPS_REQUEST_NULL;
    if (rank == 0) {
      has(hips_allreduce_init(HIPS_IN_PLACE, values, 1, HIPS_FLOAT32, HIPS_MAX, comm, &both[1]), "ok");
      has(hips_start(both[0]), "is outstanding");
      has(hips_request_free(&both[0]), "outstanding; wait for it first");
    }
    has(hips_wait(&both[0]), "ok");
    has(hips_request_free(&both[1]), "ok");
    has(hips_request_free(&request), "ok");
    if (request != HIPS_REQUEST_NULL) return "the request is still there";
    has(hips_request_free(&request), "ok");
    if (hips_comm_destroy(comm) != HIPS_OK) return hips_last_error();
    return values[0] == 16 && values[3] == 64 ? "right" : "wrong sums";
  };
  expect_right(outcomes_of(2, body));
}

TEST(CommunicatorOfC, ATopologyThatOneRankRefusesIsAnErrorOfAll) {
  const auto body = [](int rank, const Ready&) -> std::string {
    if (rank == 1) setenv("HIPS_TOPO", "no-such-family:2", 1);
    hips_comm_config_t config = HIPS_COMM_CONFIG_INIT;
    config.job_size = 2;
    config.job_rank = rank;
    hips_comm_t comm = nullptr;
    const std::string text = error_of(hips_comm_create(&config, nullptr, &comm));
    return text.find("no-such-family") != std::string::npos ? "right" : text;
  };
  expect_right(outcomes_of(2, body));
}

TEST(RequestsOfC, KeepTheirMemoryUntilTheyHaveEnded) {
  const auto body = [](int rank, const Ready&) -> std::string {
    hips_comm_t comm = nullptr;
    if (hips_comm_create(nullptr, nullptr, &comm) != HIPS_OK) return hips_last_error();
    // Of any size: what is copied at the end counts as what is sent.
    for (const std::uint64_t count : {1, 20'000}) {
      void *in = nullptr, *out = nullptr;
      if (hips_mem_alloc(2 * count * sizeof(float), &in) != HIPS_OK ||
          hips_mem_alloc(count * sizeof(float), &out) != HIPS_OK)
        return hips_last_error();
      hips_request_t request = HIPS_REQUEST_NULL;
      if (hips_ireduce_scatter_block(in, out, count, HIPS_FLOAT32, HIPS_SUM, comm, &request) != HIPS_OK)
        return hips_last_error();
      for (void* const memory : {in, out})
        if (hips_mem_free(memory) != HIPS_ERR_INVALID_ARGUMENT) return "memory of a call was freed";
      if (hips_wait(&request) != HIPS_OK) return hips_last_error();
      for (void* const memory : {in, out})
        if (hips_mem_free(memory) != HIPS_OK) return hips_last_error();
    }
    if (hips_comm_destroy(comm) != HIPS_OK) return hips_last_error();
    return rank >= 0 ? "right" : "";
  };
  expect_right(outcomes_of(2, body));
}

TEST(CommunicatorOfC, OnlyTheRootGivesTheInputOfAScatter) {
  const auto body = [](int rank, const Ready&) -> std::string {
    hips_comm_t comm = nullptr;
    if (hips_comm_create(nullptr, nullptr, &comm) != HIPS_OK) return hips_last_error();
    const float all[2] = {1, 2};
    float mine = 0;
    const void* const in = rank == 0 ? static_cast<const void*>(all) : HIPS_IN_PLACE;
    if (hips_scatter(in, &mine, 1, HIPS_FLOAT32, 0, comm) != HIPS_OK) return hips_last_error();
    if (hips_comm_destroy(comm) != HIPS_OK) return hips_last_error();
    return mine == static_cast<float>(rank + 1) ? "right" : "wrong section";
  };
  expect_right(outcomes_of(2, body));
}

TEST(RequestsOfC, AreReportedOnceHoweverTheirCallEnded) {
  const auto body = [](int rank, const Ready&) -> std::string {
    hips_comm_t comm = nullptr;
    if (hips_comm_create(nullptr, nullptr, &comm) != HIPS_OK) return hips_last_error();
    // Rank 1 leaves without taking part.
    if (rank == 1) return hips_comm_destroy(comm) == HIPS_OK ? "right" : hips_last_error();
    float values[5][4] = {};
    const auto expect = [](bool right, const char* what) {
      if (!right) throw std::runtime_error(std::string(what) + "; " + hips_last_error());
    };
    hips_request_t requests[3] = {}, persistent = HIPS_REQUEST_NULL;
    for (int i = 0; i < 3; ++i)
      expect(
          hips_iallreduce(HIPS_IN_PLACE, values[i], 4, HIPS_FLOAT32, HIPS_SUM, comm, &requests[i]) == HIPS_OK,
          "started");
    expect(hips_allreduce_init(HIPS_IN_PLACE, values[3], 4, HIPS_FLOAT32, HIPS_SUM, comm, &persistent) ==
                   HIPS_OK &&
               hips_start(persistent) == HIPS_OK,
           "started");
    // Misuse of the functions themselves touches nothing.
    std::size_t index = 77;
    int done = 77;
    expect(hips_test(&requests[0], nullptr) == HIPS_ERR_INVALID_ARGUMENT, "test without done");
    expect(hips_waitany(3, nullptr, &index) == HIPS_ERR_INVALID_ARGUMENT && index == 77, "waitany of null");
    expect(hips_testall(3, nullptr, &done) == HIPS_ERR_INVALID_ARGUMENT && done == 77, "testall of null");
    expect(requests[0] != HIPS_REQUEST_NULL, "the handle is as it was");
    // A call that failed ends its request as one that succeeded.
    hips_status_t status = HIPS_OK;
    done = 0;
    while (done == 0) status = hips_test(&requests[0], &done);
    expect(status == HIPS_ERR_PEER_LOST && requests[0] == HIPS_REQUEST_NULL, "tested");
    expect(hips_test(&requests[0], &done) == HIPS_OK && done == 1, "reported once");
    expect(hips_waitany(3, requests, &index) == HIPS_ERR_PEER_LOST && (index == 1 || index == 2), "any");
    expect(requests[index] == HIPS_REQUEST_NULL && requests[3 - index] != HIPS_REQUEST_NULL, "one of them");
    expect(hips_waitall(3, requests) == HIPS_ERR_PEER_LOST, "all");
    for (hips_request_t request : requests) expect(request == HIPS_REQUEST_NULL, "all are null");
    expect(hips_waitall(3, requests) == HIPS_OK, "all are reported once");
    expect(hips_waitany(3, requests, &index) == HIPS_OK && index == HIPS_INDEX_NONE, "none is left");
    // A persistent one stays, and may be started again, if only to fail.
    expect(hips_wait(&persistent) == HIPS_ERR_PEER_LOST && persistent != HIPS_REQUEST_NULL, "persistent");
    expect(hips_wait(&persistent) == HIPS_OK && persistent != HIPS_REQUEST_NULL, "it is reported once, too");
    expect(hips_waitany(1, &persistent, &index) == HIPS_OK && index == HIPS_INDEX_NONE, "not started");
    expect(hips_start(persistent) == HIPS_ERR_PEER_LOST, "start");
    expect(hips_wait(&persistent) == HIPS_OK, "nothing was started");
    expect(hips_request_free(&persistent) == HIPS_OK && persistent == HIPS_REQUEST_NULL, "freed");
    // A start that fails leaves the handle as it was.
    char other = 0;
    const auto mark = reinterpret_cast<hips_request_t>(&other);
    hips_request_t kept = mark;
    expect(hips_iallreduce(HIPS_IN_PLACE, values[4], 4, HIPS_FLOAT32, HIPS_SUM, comm, &kept) ==
                   HIPS_ERR_PEER_LOST &&
               kept == mark,
           "start leaves the handle");
    const hips_buffer_t list[] = {{HIPS_IN_PLACE, values[4], 4, HIPS_FLOAT32, 0}};
    expect(hips_iallreduce_coalesced(list, 1, HIPS_SUM, comm, &kept) == HIPS_ERR_PEER_LOST && kept == mark,
           "start of a list leaves the handle");
    expect(hips_comm_destroy(comm) == HIPS_OK, "destroyed");
    return "right";
  };
  expect_right(outcomes_of(2, body));
}

TEST(CommunicatorsOfC, AreMadeOfWhatTheirCallerKnows) {
  const auto body = [](int /*rank*/, const Ready&) -> std::string {
    hips_comm_config_t config = HIPS_COMM_CONFIG_INIT;
    hips_comm_t comm = nullptr;
    config.thread_mode = 2;
    if (error_of(hips_comm_create(&config, nullptr, &comm)).find("config.thread_mode is 2") ==
        std::string::npos)
      return "took a mode that is none: " + std::string(hips_last_error());
    config.thread_mode = HIPS_THREAD_SERIALIZED;
    config.timeout_ms = -1;
    if (error_of(hips_comm_create(&config, nullptr, &comm)).find("config.timeout_ms is -1") ==
        std::string::npos)
      return "took a negative timeout: " + std::string(hips_last_error());
    config.timeout_ms = 0;
    config.job_size = -2;
    if (error_of(hips_comm_create(&config, nullptr, &comm)).find("config.job_size is -2") ==
        std::string::npos)
      return "took a job of no ranks: " + std::string(hips_last_error());
    config.job_size = 3;
    config.job_rank = 3;
    if (error_of(hips_comm_create(&config, nullptr, &comm)).find("config.job_rank is 3") == std::string::npos)
      return "took a rank outside of the job: " + std::string(hips_last_error());
    // Of a program that was compiled before there were modes: what lies behind its struct is not read.
    config.struct_size = offsetof(hips_comm_config_t, thread_mode);
    if (hips_comm_create(&config, nullptr, &comm) != HIPS_OK) return hips_last_error();
    (void)hips_comm_destroy(comm);
    config.struct_size = 8;
    if (error_of(hips_comm_create(&config, nullptr, &comm)).find("struct_size is 8") == std::string::npos)
      return "took a struct of eight bytes";
    return "right";
  };
  expect_right(outcomes_of(1, body));
}

}  // namespace
}  // namespace request_test
