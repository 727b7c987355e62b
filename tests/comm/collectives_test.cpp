// All collectives, types, operations and forms of calls, mixed at random on two communicators. Ranks are
// processes; each computes the expected results itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <hips/hips.hpp>

#include "lib/plan/builder.hpp"
#include "lib/plan/formats/plan_json.hpp"
#include "lib/plan/prune/prune.hpp"
#include "tests/choices.hpp"
#include "tests/comm/collective_task.hpp"
#include "tests/comm/rank_processes.hpp"
#include "tests/plan/check_tiny_plan.hpp"

namespace collectives_test {
namespace {

using hips::test::Outcome;
using hips::test::RankProcesses;
using hips::test::Task;
using testing::HasSubstr;
using namespace std::chrono_literals;

using Ready = std::function<void()>;
using Environment = std::map<std::string, std::string>;

/// What executes the calls: shared memory of one node, or a plan over a transport.
struct Backend {
  std::string name;
  int num_ranks = 0;
  Environment environment{};
  bool two_nodes = false;  ///< the second half of the ranks runs on another node
};
void PrintTo(const Backend& backend, std::ostream* out) {
  *out << backend.name;
}

/// A plan that cannot be pruned to a broadcast from rank 0: rank 1 forwards two blocks in one message, but has
/// rank 0's part of only one of them.
hips::Plan tangled_plan() {
  using hips::tests::from;
  using hips::tests::in;
  using hips::tests::local;
  using hips::tests::out;
  hips::tests::TinyPlan plan(3, 2);
  const hips::StepId first = plan.send(0, 1, 0, in(0)), second = plan.send(0, 2, 1, in(1));
  plan.copy(0, 10, out(0, 2), from(2), {first, second});
  const hips::StepId folded = plan.reduce(1, 0, out(0), {local(in(0)), from(0)});
  const hips::StepId copied = plan.copy(1, 0, out(1), local(in(1)));
  const hips::StepId passed = plan.send(1, 2, 2, out(0, 2), {folded, copied});
  plan.copy(1, 11, out(0, 2), from(2), {passed});
  const hips::StepId both = plan.reduce(2, 2, out(0, 2), {local(in(0, 2)), from(1)});
  const hips::StepId rest = plan.reduce(2, 1, out(1), {local(out(1)), from(0)}, {both});
  plan.send(2, 0, 10, out(0, 2), {both, rest});
  plan.send(2, 1, 11, out(0, 2), {both, rest});
  plan.own(2, 0, 2);
  return plan.take();
}

/// Writes a plan to a file that exists until this process ends, and returns its path.
std::string stored(const char* name, const hips::Plan& plan) {
  static const pid_t owner = getpid();
  static std::vector<std::string> paths;
  const std::string path = testing::TempDir() + name + "." + std::to_string(owner) + ".json";
  std::ofstream(path) << hips::plan::to_json(plan);
  paths.push_back(path);
  if (paths.size() == 1)
    std::atexit([] {
      // Forked ranks run this handler too.
      for (const std::string& one : paths)
        if (getpid() == owner) std::remove(one.c_str());
    });
  return path;
}

std::vector<Backend> backends() {
  std::vector<Backend> all;
  for (const int n : {1, 2, 3, 4, 7, 9}) all.push_back({"Memory" + std::to_string(n), n});
  all.push_back({"LittleMemory4", 4, {{"HIPS_STAGING_BYTES", "65536"}}});
  const auto plan = [&](const std::string& name, int n, const std::string& topology, Environment more = {}) {
    more.emplace("HIPS_TOPO", topology);
    more.emplace("HIPS_TRANSPORT", "shm");
    all.push_back({name, n, std::move(more)});
  };
  for (const int n : {2, 3, 4, 7, 8}) plan("Switch" + std::to_string(n), n, "switch:" + std::to_string(n));
  plan("Bcube9", 9, "bcube:3,1");
  plan("Bcube4Rings", 4, "bcube:2,1", {{"HIPS_PATTERN", "ring"}});
  plan("Bcube4OneCredit", 4, "bcube:2,1", {{"HIPS_CREDITS", "1"}, {"HIPS_SEGMENT_BYTES", "4096"}});
  plan("Torus6", 6, "torus:3x2");
  plan("LeafSpine4", 4, "leafspine:2,2");
  plan("TwoPerServer4", 4, "switch:2/2");
  // Hierarchical calls.
  plan("Hosts4", 4, "switch:2/2", {{"HIPS_TRANSPORT", "auto"}});
  plan("Hosts6OfThree", 6, "switch:2/3", {{"HIPS_TRANSPORT", "auto"}});
  plan("Hosts8Bcube", 8, "bcube:2,1/2", {{"HIPS_TRANSPORT", "auto"}});
  plan("Hosts6LittleMemory", 6, "torus:3/2",
       {{"HIPS_TRANSPORT", "auto"}, {"HIPS_STAGING_BYTES", "65536"}, {"HIPS_CREDITS", "1"}});
  if (geteuid() == 0) {
    all.push_back({"TwoHosts4", 4, {{"HIPS_TOPO", "switch:2/2"}}, true});
    all.push_back({"TwoHosts6Unnamed", 6, {}, true});
  }
  plan("Tcp4", 4, "bcube:2,1", {{"HIPS_TRANSPORT", "tcp"}});
  plan("Tcp3", 3, "switch:3", {{"HIPS_TRANSPORT", "tcp"}});
  // Plans in which not every rank owns a block.
  plan("Ps4", 4, "bcube:2,1", {{"HIPS_PATTERN", "ps:1"}});
  plan("Doubling5", 5, "switch:5", {{"HIPS_ALGORITHM", "recursive-doubling"}});
  plan("Halving6", 6, "switch:6", {{"HIPS_ALGORITHM", "halving-doubling"}});
  // Plans from files.
  const auto hips_plan = hips::plan::build_all(
      *hips::value_or_throw(hips::plan::make_builder(hips::parse_topology("bcube:2,1"), {})));
  plan("Stored4", 4, "bcube:2,1", {{"HIPS_PLAN_FILE", stored("hips", hips_plan)}});
  plan("Tangled3", 3, "switch:3", {{"HIPS_PLAN_FILE", stored("tangled", tangled_plan())}});
  plan("ByRank4", 4, "bcube:2,1", {{"HIPS_REPRODUCIBLE", "any"}});
  return all;
}

std::vector<Outcome> outcomes_of(const Backend& backend, const RankProcesses::Body& body) {
  const auto on_its_node = [&](int rank, const Ready& ready) {
    if (backend.two_nodes && rank >= backend.num_ranks / 2) hips::test::move_to_another_host();
    return body(rank, ready);
  };
  RankProcesses ranks(backend.num_ranks, on_its_node, backend.environment);
  return ranks.wait();
}

void expect_right(const std::vector<Outcome>& outcomes) {
  for (std::size_t r = 0; r < outcomes.size(); ++r) {
    EXPECT_FALSE(outcomes[r].hung) << "rank " << r << " hung";
    EXPECT_EQ(outcomes[r].exit_code, 0) << "rank " << r << ": " << outcomes[r].text;
    EXPECT_EQ(outcomes[r].text, "right") << "rank " << r;
  }
}

class Collectives : public testing::TestWithParam<Backend> {};

// All ranks start the same calls in the same order, on two communicators. Each rank completes its outstanding
// calls in an order of its own.
TEST_P(Collectives, AreExactInEveryForm) {
  const Backend& backend = GetParam();
  const std::uint64_t seed = hips::test::seed();
  const bool all = hips::test::runs_everything(), sample = hips::test::runs_a_sample();
  const int num_steps = all ? 2000 : sample ? 60 : 200;
  const auto body = [=](int rank, const Ready&) {
    hips::Communicator comms[] = {hips::Communicator::from_environment(),
                                  hips::Communicator::from_environment()};
    std::mt19937_64 program(seed), own(seed + 1 + static_cast<std::uint64_t>(rank));
    struct Open {
      std::unique_ptr<Task> task;
      hips::Communicator* comm;
    };
    std::vector<Open> open;
    // A second start of a persistent call would need all ranks, so here each call starts once.
    const auto end_one = [&] {
      const std::size_t which = own() % open.size();
      Task& task = *open[which].task;
      if (own() % 2 == 0) {
        while (!task.test()) std::this_thread::yield();
      } else {
        task.wait();
      }
      task.check();
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
    };
    for (int step = 0; step < num_steps; ++step) {
      hips::Communicator& comm = comms[program() % 4 == 0 ? 1 : 0];
      const std::uint64_t most = program() % (sample ? 40 : 12) == 0 ? 1'100'000 : 50'000;
      auto task = Task::draw(program, own, rank, comm.size(), most);
      task->starts_left = 1;
      task->start(comm);
      open.push_back({std::move(task), &comm});
      while (open.size() > 8 || (!open.empty() && own() % 3 == 0)) end_one();
    }
    while (!open.empty()) end_one();
    return std::string("right");
  };
  expect_right(outcomes_of(backend, body));
}

// A persistent call gives the right result at each start, whatever was called in between.
TEST_P(Collectives, RepeatPersistentCalls) {
  const Backend& backend = GetParam();
  const std::uint64_t seed = hips::test::seed();
  const auto body = [=](int rank, const Ready&) {
    auto comm = hips::Communicator::from_environment();
    std::mt19937_64 program(seed), own(seed + 1 + static_cast<std::uint64_t>(rank));
    for (int i = 0; i < 12; ++i) {
      auto task = Task::draw(program, own, rank, comm.size(), 3000);
      auto other = Task::draw(program, own, rank, comm.size(), 3000);
      task->starts_left = 3;
      other->starts_left = 3;
      for (int turn = 0; turn < 3; ++turn) {
        task->start(comm);
        other->start(comm);
        other->wait();
        other->check();
        task->wait();
        task->check();
      }
    }
    return std::string("right");
  };
  expect_right(outcomes_of(backend, body));
}

INSTANTIATE_TEST_SUITE_P(Backends, Collectives, testing::ValuesIn(hips::test::or_every_nth(backends(), 3)),
                         [](const auto& instance) { return instance.param.name; });

TEST(TangledPlan, HasNoPrunedPlanForABroadcast) {
  const auto made = hips::plan::prune(tangled_plan(), hips::Collective::kBcast, 0);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, hips::Code::kUnsupported);
}

// No rank leaves a barrier before all ranks have entered it.
TEST(Barrier, WaitsForTheLastRank) {
  for (const char* topology : {"", "switch:3"}) {
    Environment environment;
    if (*topology != '\0') environment = {{"HIPS_TOPO", topology}, {"HIPS_TRANSPORT", "shm"}};
    expect_right(outcomes_of({"", 3, environment}, [](int rank, const Ready&) {
      auto comm = hips::Communicator::from_environment();
      for (int turn = 0; turn < 5; ++turn) {
        if (rank == turn % 3) std::this_thread::sleep_for(20ms);
        const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
        std::int64_t came = now();
        comm.barrier();
        const std::int64_t left = now();
        std::int64_t last = 0;
        comm.allreduce<std::int64_t>(std::span<const std::int64_t>(&came, 1),
                                     std::span<std::int64_t>(&last, 1), hips::ReduceOp::kMax);
        if (left < last) return std::string("left early");
      }
      return std::string("right");
    }));
  }
}

struct Misuse {
  const char* name;
  void (*call)(hips::Communicator&);
  const char* says;
};

// A call with an invalid argument is rejected and not started.
TEST(Misuse, IsRejectedWithWhatWouldBeValid) {
  expect_right(outcomes_of({"", 2}, [](int, const Ready&) -> std::string {
    auto comm = hips::Communicator::from_environment();
    std::vector<float> four(4), eight(8);
    const std::uint64_t counts[] = {3, 5}, huge[] = {UINT64_MAX, 1};
    hips_comm_t c = comm.handle();
    std::string wrong;
    const auto refused = [&](hips_status_t status, const std::string& says) {
      const std::string text = hips_last_error();
      if (status != HIPS_ERR_INVALID_ARGUMENT || text.find(says) == std::string::npos)
        wrong += "[" + says + "] but: " + text + "\n";
    };
    refused(hips_bcast(four.data(), 4, HIPS_FLOAT32, 2, c), "bcast: root 2 is out of range [0, 1]");
    refused(hips_bcast(nullptr, 4, HIPS_FLOAT32, 0, c), "bcast: the output buffer is null but count is 4");
    refused(hips_reduce(four.data(), eight.data(), 4, HIPS_FLOAT32, HIPS_BAND, 0, c),
            "band does not apply to float32");
    refused(hips_reduce(HIPS_IN_PLACE, eight.data(), 4, HIPS_FLOAT32, HIPS_SUM, 1 - comm.rank(), c),
            "HIPS_IN_PLACE is for the root");
    refused(hips_allgather(eight.data() + 1, eight.data(), 4, HIPS_FLOAT32, c), "overlap by");
    refused(hips_allgather(four.data(), eight.data(), UINT64_MAX / 2, HIPS_FLOAT32, c),
            "more than memory can hold");
    refused(hips_allgatherv(four.data(), eight.data(), huge, nullptr, HIPS_FLOAT32, c),
            "more than memory can hold");
    refused(hips_allgatherv(four.data(), eight.data(), nullptr, nullptr, HIPS_FLOAT32, c), "counts is null");
    refused(hips_reduce_scatter(eight.data(), nullptr, counts, HIPS_FLOAT32, HIPS_SUM, c),
            "output buffer is null");
    refused(hips_reduce_scatter_block(eight.data(), eight.data() + 2, 4, HIPS_FLOAT32, HIPS_SUM, c),
            "overlap by");
    refused(hips_barrier(nullptr), "hips_barrier: comm is null");
    refused(hips_ibarrier(c, nullptr), "hips_ibarrier: request is null");
    // In the C++ API sizes come from spans.
    try {
      comm.allgather<float>(four, four);
      wrong += "allgather of wrong sizes\n";
    } catch (const hips::Error& error) {
      if (std::string(error.what()).find("4 elements are not 4 for each of 2 ranks") == std::string::npos)
        wrong += error.what();
    }
    // None of these calls was started: the next call is the first one of all ranks.
    comm.bcast<float>(four, 0);
    return wrong.empty() ? "right" : wrong;
  }));
}

// Ranks that disagree get an error that names both calls, with shared memory and with a plan.
TEST(Mismatch, OfRootsSectionsAndCollectivesIsReported) {
  for (const char* topology : {"", "switch:3"}) {
    Environment environment = {{"HIPS_LOG", "error"}};
    if (*topology != '\0') {
      environment["HIPS_TOPO"] = topology;
      environment["HIPS_TRANSPORT"] = "shm";
    }
    for (int which = 0; which < 3; ++which) {
      const auto outcomes = outcomes_of({"", 3, environment}, [which](int rank, const Ready&) {
        auto comm = hips::Communicator::from_environment();
        std::vector<std::int32_t> in(60), out(60);
        const std::uint64_t counts[] = {10, 20, 30}, others[] = {20, 10, 30};
        try {
          if (which == 0) comm.bcast<std::int32_t>(out, rank == 1 ? 1 : 0);
          if (which == 1)
            (void)comm
                .ireduce_scatter<std::int32_t>(in, std::span(out).first((rank == 2 ? others : counts)[rank]),
                                               rank == 2 ? others : counts, hips::ReduceOp::kSum)
                .wait();
          if (which == 2) {
            if (rank == 0)
              comm.allreduce<std::int32_t>(in, out, hips::ReduceOp::kSum);
            else
              comm.bcast<std::int32_t>(out, 0);
          }
          // A root waits for no peer, so it gets the error in a later call.
          comm.barrier();
        } catch (const hips::Error& error) {
          return std::string(error.what());
        }
        return std::string("no error");
      });
      // With a plan the first sign of a different root may be an unexpected message.
      const char* in_memory[] = {"root 1", "sections", "bcast"};
      const char* by_plan[] = {"rank 1", "sections", "bcast"};
      for (const Outcome& outcome : outcomes) {
        EXPECT_FALSE(outcome.hung);
        EXPECT_THAT(outcome.text, HasSubstr((*topology == '\0' ? in_memory : by_plan)[which]))
            << topology << " " << which << " exit " << outcome.exit_code;
      }
    }
  }
}

}  // namespace
}  // namespace collectives_test
