#include "lib/comm/communicator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <hips/hips.hpp>
#include <system_error>
#include <thread>

#include "lib/comm/setup/interfaces.hpp"
#include "lib/plan/builder.hpp"
#include "lib/plan/formats/plan_json.hpp"
#include "tests/comm/allreduce_check.hpp"
#include "tests/comm/whole_ranks.hpp"

namespace communicator_test {
namespace {

using hips::Code;
using hips::ReduceOp;
using hips::test::Environment;
using hips::test::error_text;
using hips::test::Outcome;
using hips::test::RankProcesses;
using hips::test::Ready;
using hips::test::run;
using testing::AllOf;
using testing::HasSubstr;
using namespace std::chrono_literals;

// ---- Results -------------------------------------------------------------------------------------------

std::vector<std::string> topologies_of(int num_ranks) {
  switch (num_ranks) {
    case 4:
      return {"switch:4", "bcube:2,1", "torus:2x2", "rail:4,2", "switch:2/2"};
    case 8:
      return {"bcube:2,2", "torus:4x2", "bcube:2,1/2"};
    case 9:
      return {"bcube:3,1", "torus:3x3"};
    case 16:
      return {"fattree:4", "bcube:4,1"};
    case 27:
      return {"bcube:3,2", "torus:3x3x3"};
    default:
      return {"switch:" + std::to_string(num_ranks)};
  }
}

/// Number of ranks and transport.
struct Job {
  int num_ranks;
  std::string transport;
};

void PrintTo(const Job& job, std::ostream* out) {
  *out << job.num_ranks << " over " << job.transport;
}

class Ranks : public testing::TestWithParam<Job> {};

TEST_P(Ranks, GetExactAndBitwiseEqualResultsForEveryAlgorithmTypeAndOp) {
  const int n = GetParam().num_ranks;
  const std::string transport = GetParam().transport;
  const auto body = [n, transport](int, const Ready&) {
    hips::test::Digest digest;
    std::string ran;
    for (const std::string& topology : topologies_of(n)) {
      for (const auto& algorithm : hips::plan::algorithms()) {
        try {
          auto comm = hips::Communicator::from_environment(
              {.topology = topology, .algorithm = std::string(algorithm.name)});
          if (comm.describe().find("; " + transport) == std::string::npos) return comm.describe();
          if (n <= 9 && !hips::test::runs_a_sample())
            hips::test::check_all(comm, digest);
          else
            hips::test::check_each(comm, digest);
          ran += std::string(algorithm.name) + "@" + topology + " ";
        } catch (const hips::Error& error) {
          // If an algorithm does not run on a topology, every rank gets the same error.
          if (error.status().code != Code::kUnsupported) throw;
        }
      }
    }
    return ran + digest.text();
  };
  const std::string text = run(n, body, {{"HIPS_TRANSPORT", transport}});
  for (const std::string& topology : topologies_of(n)) EXPECT_THAT(text, HasSubstr("hips@" + topology));
}

std::vector<Job> jobs() {
  std::vector<Job> all;
  for (const int num_ranks : {2, 3, 4, 8, 9}) all.push_back({num_ranks, "shm"});
  for (const int num_ranks : {2, 4, 9}) all.push_back({num_ranks, "tcp"});
  if (hips::test::runs_a_sample()) return hips::test::or_every_nth(std::move(all), 4);
  for (const int num_ranks : {16, 27}) all.push_back({num_ranks, "shm"});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Of, Ranks, testing::ValuesIn(jobs()), [](const auto& job) {
  return job.param.transport + std::to_string(job.param.num_ranks);
});

TEST(Communicator, UsesTcpBetweenNodesWithoutRdma) {
  if (geteuid() != 0) GTEST_SKIP() << "needs to be root, to act as two nodes";
  // Two nodes of two ranks each: shared memory within the nodes, sockets between them.
  const auto body = [](int rank, const Ready&) {
    if (rank >= 2) hips::test::move_to_another_host();
    try {
      auto comm = hips::Communicator::from_environment({.topology = "switch:2/2"});
      hips::test::Digest digest;
      hips::test::check_all(comm, digest);
      return comm.describe() + digest.text();
    } catch (const hips::Error& error) {
      return std::string(error.what());
    }
  };
  std::error_code none;
  if (!hips::comm::local_networks()) GTEST_SKIP() << "this node has no interface but loopback";
  if (std::filesystem::directory_iterator("/sys/class/infiniband", none) !=
      std::filesystem::directory_iterator())
    GTEST_SKIP() << "this node has RDMA";
  const std::string text = run(4, body, {{"HIPS_TRANSPORT", "auto"}});
  EXPECT_THAT(text, AllOf(HasSubstr("shm, tcp"), HasSubstr("not emulated")));
}

TEST(Communicator, ReducesRegisteredMemoryExactlyOverTcp) {
  // Some ranks have registered outputs, into which peers write directly; others have not.
  const std::string wrong = run(4,
                                [](int rank, const Ready&) {
                                  auto comm = hips::Communicator::from_environment();
                                  auto in = hips::allocate_registered<std::int32_t>(300'001);
                                  std::vector<std::int32_t> out(in.size());
                                  hips::RegisteredMemory registered;
                                  if (rank != 2) registered = hips::RegisteredMemory(std::span(out));
                                  for (std::int32_t turn = 0; turn < 10; ++turn) {
                                    for (std::size_t i = 0; i < in.size(); ++i)
                                      in.span()[i] = rank + turn + static_cast<std::int32_t>(i);
                                    comm.allreduce<std::int32_t>(in.span(), out, ReduceOp::kSum);
                                    for (std::size_t i = 0; i < out.size(); ++i)
                                      if (out[i] != 6 + 4 * (turn + static_cast<std::int32_t>(i)))
                                        return std::string("wrong result");
                                  }
                                  return std::string();
                                },
                                {{"HIPS_TRANSPORT", "tcp"}, {"HIPS_TOPO", "bcube:2,1"}});
  EXPECT_EQ(wrong, "");
}

TEST(Communicator, RunsOnATopologyFileAndDumpsIt) {
  const std::string path = ::testing::TempDir() + "hips_communicator_test.yaml", dump = path + ".dump";
  std::ofstream(path) << "hips-topology: 1\nshape: bcube:2,1\nlevels: [{rate: 25Gb}, {rate: 100Gb}]\n";
  const auto describe = [](int, const std::function<void()>&) {
    return hips::Communicator::from_environment().describe();
  };
  RankProcesses ranks(4, describe, {{"HIPS_TOPO_FILE", path}, {"HIPS_TOPO_DUMP", dump}});
  for (const Outcome& outcome : ranks.wait())
    EXPECT_THAT(outcome.text, ::testing::HasSubstr("on BCube(2,1); "));
  const auto written = hips::parse_topology("file:" + dump);
  EXPECT_EQ(written.levels, hips::parse_topology(path).levels);
  // A rank with a different file is reported.
  RankProcesses odd(4,
                    [&](int rank, const std::function<void()>& ready) {
                      if (rank == 2)
                        std::ofstream(path + "2") << "hips-topology: 1\nshape: bcube:2,1\nrelay: false\n";
                      if (rank == 2) setenv("HIPS_TOPO_FILE", (path + "2").c_str(), 1);
                      return describe(rank, ready);
                    },
                    {{"HIPS_TOPO_FILE", path}});
  for (const Outcome& outcome : odd.wait()) {
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.text, ::testing::HasSubstr("rank 2"));
  }
  for (const std::string& file : {path, dump, path + "2"}) std::remove(file.c_str());
}

TEST(Communicator, RunsAStoredPlanAndRejectsAWrongOne) {
  const std::string path = ::testing::TempDir() + "hips_communicator_plan.json";
  const auto sum = [](int rank, const std::function<void()>&) {
    auto comm = hips::Communicator::from_environment();
    std::vector<std::int32_t> values(1000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i) + rank;
    comm.allreduce(std::span(values), ReduceOp::kSum);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != 9 * static_cast<std::int32_t>(i) + 36) return std::string("wrong");
    }
    return comm.describe();
  };
  hips::Plan plan = hips::plan::build_all(
      *value_or_throw(hips::plan::make_builder(hips::parse_topology("bcube:3,1"), {.algorithm = "hips"})));
  plan.shape.description = "edited by hand";
  std::ofstream(path) << hips::plan::to_json(plan);
  RankProcesses good(9, sum, {{"HIPS_PLAN_FILE", path}, {"HIPS_TOPO", "bcube:3,1"}});
  for (const Outcome& outcome : good.wait()) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr("edited by hand on BCube(3,1)"));
  }
  // A reduction without its rank's own input.
  for (hips::Step& step : plan.programs[5].steps) {
    if (step.op != hips::StepOp::kReduce || step.num_sources < 2) continue;
    ++step.first_source;
    --step.num_sources;
    break;
  }
  std::ofstream(path) << hips::plan::to_json(plan);
  RankProcesses wrong(9, sum, {{"HIPS_PLAN_FILE", path}, {"HIPS_TOPO", "bcube:3,1"}});
  for (const Outcome& outcome : wrong.wait()) {
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.text,
                AllOf(HasSubstr("unmatched transfer: send without receive"), HasSubstr("server <12>")));
  }
  RankProcesses other(4, sum, {{"HIPS_PLAN_FILE", path}});
  for (const Outcome& outcome : other.wait())
    EXPECT_THAT(outcome.text, HasSubstr("is a plan for 9 ranks, and the communicator has 4"));
  RankProcesses both(9, sum, {{"HIPS_PLAN_FILE", path}, {"HIPS_ALGORITHM", "flat-ring"}});
  for (const Outcome& outcome : both.wait())
    EXPECT_THAT(outcome.text, HasSubstr("names the plan: leave out the algorithm"));
  std::remove(path.c_str());
}

TEST(Communicator, CopiesWithOneRank) {
  run(1, [](int, const Ready&) {
    auto comm = hips::Communicator::from_environment();
    hips::test::Digest digest;
    hips::test::check_all(comm, digest);
    return comm.describe();
  });
}

TEST(Communicator, OfOneRankNormalizesTruthAndChecksArguments) {
  run(1, [](int, const Ready&) {
    auto comm = hips::Communicator::from_environment();
    std::vector<std::uint16_t> values = {0, 1, 256, 65535};
    comm.allreduce<std::uint16_t>(values, ReduceOp::kLand);
    EXPECT_THAT(values, testing::ElementsAre(0, 1, 1, 1));
    std::vector<hips::Float16> halves(3);
    return error_text([&] { comm.allreduce<hips::Float16>(halves, ReduceOp::kBxor); });
  });
}

TEST(Communicator, ReducesEveryTypeWithEveryOpExactlyOnEveryBackend) {
  for (const int n : {2, 3, 4}) {
    run(n, [n](int, const Ready&) {
      std::size_t turn = 0;
      hips::test::Digest digest;
      // Shared memory of one node, a plan with one owner for each block, and a plan in which several ranks
      // reduce the same block.
      auto shared = hips::Communicator::from_environment();
      auto planned = hips::Communicator::from_environment({.topology = "switch:" + std::to_string(n)});
      auto doubled = hips::Communicator::from_environment({.algorithm = "recursive-doubling"});
      for (auto* comm : {&shared, &planned, &doubled})
        hips::test::check_next(*comm, hips::kNumDataTypes * hips::kNumReduceOps, turn, digest);
      return digest.text();
    });
  }
}

TEST(Communicator, DescribesPlanTransportAndEmulation) {
  const std::string text = run(9, [](int, const Ready&) {
    return hips::Communicator::from_environment({.topology = "bcube:3,1", .pattern = "mesh"}).describe();
  });
  EXPECT_THAT(text, AllOf(HasSubstr("HiPS"), HasSubstr("BCube(3,1)"), HasSubstr("shm"),
                          HasSubstr("emulated: 9 servers on 1 node")));
}

TEST(Communicator, EmulatesNothingWithoutANamedTopology) {
  const auto describe = [](int, const Ready&) { return hips::Communicator::from_environment().describe(); };
  EXPECT_THAT(run(3, describe, {{"HIPS_TRANSPORT", "tcp"}}),
              AllOf(HasSubstr("Switch(3); tcp; 3 ranks on 1 node"), testing::Not(HasSubstr("emulated"))));
}

TEST(Communicator, DerivesRanksPerServerFromTheSize) {
  const std::string text = run(8, [](int, const Ready&) {
    auto comm = hips::Communicator::from_environment({.topology = "bcube:2,1"});
    hips::test::Digest digest;
    hips::test::check_all(comm, digest);
    return comm.describe();
  });
  EXPECT_THAT(text, HasSubstr("2 ranks per server"));
}

TEST(Communicator, WorksWithABootstrapOfTheCaller) {
  // The caller's exchange is an allgather, implemented by the allreduce of another communicator.
  run(4, [](int, const Ready&) {
    auto first = hips::Communicator::from_environment();
    hips::Communicator::Bootstrap bootstrap;
    bootstrap.rank = first.rank();
    bootstrap.size = first.size();
    bootstrap.allgather = [&](std::span<const std::byte> send, std::span<std::byte> receive) {
      std::vector<std::int32_t> all(receive.size());
      for (std::size_t i = 0; i < send.size(); ++i)
        all[static_cast<std::size_t>(first.rank()) * send.size() + i] = static_cast<std::int32_t>(send[i]);
      first.allreduce<std::int32_t>(all, ReduceOp::kSum);
      for (std::size_t i = 0; i < receive.size(); ++i) receive[i] = static_cast<std::byte>(all[i]);
    };
    auto second = hips::Communicator::create(bootstrap, {.topology = "bcube:2,1"});
    hips::test::Digest digest;
    hips::test::check_all(second, digest);
    hips::test::check_all(first, digest);
    return digest.text();
  });
}

TEST(Communicator, OfSomeRanksOfTheJobIsPlannedOnTheirPartOfTheTopology) {
  // The ranks of a column of BCube(2,1) meet by themselves.
  const std::string text =
      run(2,
          [](int rank, const Ready&) {
            auto column = hips::Communicator::from_environment(
                {.job_rank = 2 * rank, .job_size = 4, .timeout = std::chrono::minutes(5)});
            std::vector<float> value{static_cast<float>(rank)};
            column.allreduce(value, ReduceOp::kSum);
            return fmt::format("{} {}", value[0], column.describe());
          },
          {{"HIPS_TOPO", "bcube:2,1"}});
  EXPECT_THAT(text, testing::StartsWith("1 "));
  EXPECT_THAT(text, HasSubstr("BCube(2,0)"));
}

TEST(Communicator, LetsAFastRankExitAfterItsLastCall) {
  // Ranks exit at different times, the hub first or last, with and without destroying their communicator.
  for (int order = 0; order < 4; ++order) {
    run(4, [order](int rank, const Ready&) {
      static hips::Communicator* comm = nullptr;  // kept to the end of the process
      comm = new hips::Communicator(hips::Communicator::from_environment({.topology = "bcube:2,1"}));
      std::vector<double> values(5000, 1.0);
      for (int i = 0; i < 20; ++i) comm->allreduce<double>(values, ReduceOp::kMax);
      const int place = order % 2 == 0 ? rank : 3 - rank;
      std::this_thread::sleep_for(place * 40ms);
      if (order < 2) delete comm;
      return std::string("done");
    });
  }
}

TEST(Communicator, SharesTheProcessWithAnotherCommunicator) {
  run(4, [](int, const Ready&) {
    auto a = hips::Communicator::from_environment({.topology = "bcube:2,1"});
    auto b = hips::Communicator::from_environment({.topology = "torus:2x2"});
    hips::test::Digest digest;
    hips::test::check_all(a, digest);
    hips::test::check_all(b, digest);
    { const hips::Communicator gone = std::move(a); }
    hips::test::check_all(b, digest);
    return digest.text();
  });
}

TEST(Communicator, LetsThreadsUseDifferentCommunicatorsAtOnce) {
  run(3, [](int, const Ready&) {
    auto a = hips::Communicator::from_environment();
    auto b = hips::Communicator::from_environment();
    hips::test::Digest of_a, of_b;
    std::string problem;
    std::thread other([&] {
      try {
        for (int i = 0; i < 5; ++i) hips::test::check_all(b, of_b);
      } catch (const std::exception& error) {
        problem = error.what();
      }
    });
    for (int i = 0; i < 5; ++i) hips::test::check_all(a, of_a);
    other.join();
    return problem + of_a.text() + of_b.text();
  });
}

TEST(Communicator, MoveAssignmentLeavesTheOldCommunicatorAtOnce) {
  const std::string text = run(2, [](int rank, const Ready&) {
    auto a = hips::Communicator::from_environment();
    auto b = hips::Communicator::from_environment();
    std::vector<float> values(10, 1);
    a.allreduce(values, ReduceOp::kSum);
    if (rank == 1) {
      const std::string error = error_text([&] { a.allreduce(values, ReduceOp::kSum); });
      b.barrier();
      return error.substr(0, std::string("peer lost: rank 0").size());
    }
    hips::Communicator& same = b;
    b = std::move(same);  // changes nothing
    hips::Communicator kept = std::move(b);
    b = std::move(a);
    b = std::move(kept);
    b.barrier();  // rank 1 comes once it has lost rank 0 on the other communicator
    return std::string("peer lost: rank 0");
  });
  EXPECT_EQ(text, "peer lost: rank 0");
}

// ---- Buffers of any kind, whose element type is deduced --------------------------------------------------

template <typename... Args>
concept CanAllreduce = requires(hips::Communicator& comm, Args&&... args) {
  comm.allreduce(std::forward<Args>(args)...);
};
using Floats = std::vector<float>;
static_assert(CanAllreduce<Floats&, ReduceOp>);
static_assert(CanAllreduce<const Floats&, Floats&, ReduceOp>);
static_assert(CanAllreduce<std::span<const float>, Floats&, ReduceOp>);
static_assert(CanAllreduce<std::span<float>, std::span<float>, ReduceOp>);
static_assert(CanAllreduce<std::span<float, 3>, std::array<float, 3>&, ReduceOp>);
static_assert(CanAllreduce<float (&)[3], ReduceOp>);
static_assert(CanAllreduce<const hips::RegisteredBuffer<float>&, ReduceOp>);
static_assert(!CanAllreduce<Floats, ReduceOp>, "a temporary");
template <typename Vectors>
concept CanStartCoalesced = requires(hips::Communicator& comm, Vectors&& vectors) {
  comm.iallreduce_coalesced(std::forward<Vectors>(vectors), ReduceOp::kSum);
};
static_assert(CanStartCoalesced<std::vector<Floats>&>);
static_assert(CanStartCoalesced<std::vector<std::span<float>>>, "their memory stays");
static_assert(!CanStartCoalesced<std::vector<Floats>>, "their memory ends with the statement");
static_assert(!CanAllreduce<const Floats&, ReduceOp>, "const output");
static_assert(!CanAllreduce<Floats&, std::vector<double>&, ReduceOp>, "two element types");
static_assert(!CanAllreduce<std::vector<bool>&, ReduceOp>, "not contiguous");

TEST(Communicator, TakesVectorsArraysAndSpansAsTheyAre) {
  const std::string text = run(2, [](int rank, const Ready&) -> std::string {
    auto comm = hips::Communicator::from_environment();
    const std::vector<int> ones(4, 1), two(2, 1 + rank);
    std::vector<int> sums(4), both(4);
    std::array<int, 2> part{};
    int raw[4] = {rank, rank, rank, rank};
    const std::vector<std::uint64_t> counts = {1, 3};
    std::vector<int> section(rank == 0 ? 1 : 3, 7);
    const auto expect = [](const auto& got, std::initializer_list<int> right) {
      if (!std::equal(std::begin(got), std::end(got), right.begin(), right.end()))
        throw std::runtime_error("wrong at " + std::to_string(*right.begin()));
    };
    comm.allreduce(ones, sums, ReduceOp::kSum);
    expect(sums, {2, 2, 2, 2});
    comm.allreduce(raw, ReduceOp::kMax);
    expect(raw, {1, 1, 1, 1});
    comm.iallreduce(ones, raw, ReduceOp::kSum).wait();
    expect(raw, {2, 2, 2, 2});
    comm.iallreduce(sums, ReduceOp::kSum).wait();
    expect(sums, {4, 4, 4, 4});
    hips::Request twice = comm.allreduce_init(ones, sums, ReduceOp::kProd);
    twice.start();
    twice.wait();
    expect(sums, {1, 1, 1, 1});
    comm.reduce_scatter_block(ones, part, ReduceOp::kSum);
    expect(part, {2, 2});
    comm.reduce_scatter(ones, section, counts, ReduceOp::kSum);
    expect(std::span(section).first(1), {2});
    comm.allgather(two, both);
    expect(both, {1, 1, 2, 2});
    comm.iallgatherv(section, std::span(both), counts).wait();
    expect(both, {2, 2, 2, 2});
    part = {rank + 5, rank + 5};
    comm.bcast(part, 1);
    expect(part, {6, 6});
    comm.reduce(two, part, ReduceOp::kSum, 0);
    if (rank == 0) expect(part, {3, 3});
    std::vector<std::vector<int>> layers = {{1, 2}, {3}};
    comm.allreduce_coalesced(layers, ReduceOp::kSum);
    expect(layers[0], {2, 4});
    expect(layers[1], {6});
    // The forms with an explicit element type still take what converts to a span.
    comm.allreduce<int>(two, part, ReduceOp::kSum);
    expect(part, {3, 3});
    struct Pair {
      int a, b;
    };
    const hips::UserOp<Pair> add([](const Pair& x, const Pair& y) { return Pair{x.a + y.a, x.b + y.b}; });
    std::vector<Pair> pairs = {{1, 2}};
    comm.allreduce(pairs, add);
    return pairs[0].a == 2 && pairs[0].b == 4 ? "right" : "wrong pairs";
  });
  EXPECT_EQ(text, "right");
}

}  // namespace
}  // namespace communicator_test
