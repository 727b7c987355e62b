// Hierarchical calls: through memory and between nodes. Ranks are threads that sleep whenever they wait, to find
// errors that only real concurrency shows. Runs under TSan in tools/check.

#include "lib/comm/setup/node_groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/comm/calls/hierarchical_call.hpp"
#include "lib/comm/calls/hierarchical_calls.hpp"
#include "tests/choices.hpp"
#include "tests/exchange.hpp"
#include "tests/hang_limit.hpp"
#include "transports/shm/shm.hpp"

namespace hips::comm {
namespace {

using exec::Engine;
using test::ThreadExchange;
using testing::ElementsAre;

std::vector<ProcessInfo> processes_on(const std::vector<const char*>& nodes) {
  std::vector<ProcessInfo> processes;
  for (const char* node : nodes) {
    processes.emplace_back();
    processes.back().host = processes.back().node_key = node;
  }
  return processes;
}

Design design_of(const std::string& spec) {
  Design design;
  design.named = design.topology_named = true;
  design.topology = parse_topology(spec);
  return design;
}

/// A design, and the node of each of its ranks.
struct Job {
  Design design;
  std::vector<const char*> on;
};

/// Of a topology with several ranks on each server, or "3,1,2": the numbers of ranks of nodes without a topology.
Job job_of(const std::string& spec) {
  if (spec.find(':') != std::string::npos) {
    Design design = design_of(spec);
    const auto size = static_cast<std::size_t>(design.topology.num_ranks());
    return {std::move(design), std::vector<const char*>(size, "here")};
  }
  std::vector<const char*> on;
  const char* const names[] = {"a", "b", "c"};
  for (std::size_t i = 0; i < spec.size(); i += 2)
    on.insert(on.end(), static_cast<std::size_t>(spec[i] - '0'), names[i / 2]);
  Design design = design_of("switch:" + std::to_string(on.size()));
  design.named = design.topology_named = false;
  return {std::move(design), std::move(on)};
}

void expect_ok(const Status& status) {
  if (!status.ok()) throw Error(status);
}

/// What one rank has of a hierarchical communicator. One with an even id takes the other nodes for reached through sockets.
class Member {
 public:
  Member(Engine& engine, transport::Transport* transport, const std::string& spec, std::uint64_t id,
         Rank rank, ThreadExchange& exchange)
      : engine_(engine), rank_(rank) {
    const auto [design, on] = job_of(spec);
    size_ = design.topology.num_ranks();
    nodes_ = *NodeGroups::of(design, Config(), processes_on(on), rank);
    auto choices = value_or_throw(choose_plans(design, rank, cost::Medium::kMemory));
    first_between_ = static_cast<std::int32_t>(choices.size());
    plans_.emplace(choices, rank);
    between_ =
        value_or_throw(choose_plans_between(topology_of_nodes(design, nodes_), nodes_,
                                            id % 2 == 0 ? cost::Medium::kSockets : cost::Medium::kMemory));
    choices.insert(choices.end(), between_.choices.begin(), between_.choices.end());
    exec::Team::Config config;
    config.id = id;
    config.rank = rank;
    config.size = size_;
    for (const Design::Choice& choice : choices) config.plans.push_back({choice.shape, choice.program});
    config.route_to = [&](Rank peer) {
      return exec::Team::Route{{engine.peer_for(1, static_cast<std::uint64_t>(peer), 0)}, {transport}};
    };
    config.max_segment_bytes = 16384;
    team_ = value_or_throw(exec::Team::create(engine, std::move(config)));
    const auto addresses =
        exchange.all(rank, value_or_throw(team_->allocate(exchange.all(rank, team_->offer()))));
    expect_ok(team_->connect(addresses));
    std::vector<Rank> ranks;
    for (Rank number = 0; number < nodes_.ranks_here(); ++number)
      ranks.push_back(nodes_.rank_of(nodes_.node, number));
    auto segment = value_or_throw(node::NodeSegment::create());
    expect_ok(segment->make_wake_pipe());
    node_ = value_or_throw(node::NodeTeam::create({.segment = segment,
                                                   .rank = nodes_.local_rank,
                                                   .size = nodes_.ranks_here(),
                                                   .names = ranks,
                                                   .uses_wake_pipes = true}));
    const node::NodeName name = segment->name();
    const auto bytes = std::as_bytes(std::span(&name, 1));
    const auto all = exchange.all(rank, {{bytes.begin(), bytes.end()}, {}}).from_all;
    std::vector<node::NodeName> names(ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i)
      std::memcpy(&names[i], all[static_cast<std::size_t>(ranks[i])].data(), sizeof(node::NodeName));
    expect_ok(node_->connect(names));
    calls_ = std::make_unique<HierarchicalCalls>(
        engine, *node_, nodes_,
        [this](Rank number) {
          return number == nodes_.ranks_here()
                     ? node_->layout()
                     : node::StagingLayout::of(number, node::NodeTeam::Config().max_staging_bytes);
        },
        [this](const Status& status) { fail(status); });
  }

  [[nodiscard]] Rank size() const { return size_; }
  [[nodiscard]] std::unique_ptr<HierarchicalCall> make_call() {
    return std::make_unique<HierarchicalCall>(HierarchicalParts{.nodes = nodes_,
                                                                .node = *node_,
                                                                .team = {.engine = engine_,
                                                                         .team = *team_,
                                                                         .plans = *plans_,
                                                                         .buffers = buffers_,
                                                                         .rank = rank_,
                                                                         .size = size_},
                                                                .between = between_,
                                                                .first_between = first_between_,
                                                                .calls = *calls_});
  }
  /// Fails all calls, as the control plane does.
  void fail(const Status& status) {
    node_->fail(status);
    team_->fail(status);
  }

 private:
  Engine& engine_;
  Rank rank_, size_ = 0;
  NodeGroups nodes_;
  std::optional<TeamPlans> plans_;
  PlansBetween between_;
  std::int32_t first_between_ = 0;
  WorkBuffers buffers_;
  std::unique_ptr<exec::Team> team_;
  std::unique_ptr<node::NodeTeam> node_;
  std::unique_ptr<HierarchicalCalls> calls_;
};

/// Runs `body(engine, transport, rank, exchange)` on one thread per rank. No thread spins.
template <typename Body>
void on_all_ranks(Rank size, Body body) {
  ThreadExchange exchange(size);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Engine engine({.waits = std::make_shared<WaitPolicy>(WaitPolicy::fixed({0, 0}))});
      auto* transport = engine.add_transport(value_or_throw(shm::create({})));
      body(engine, transport, rank, exchange);
      exchange.meet();
    });
  }
  for (auto& thread : threads) thread.join();
}

/// An allreduce, a bcast or a reduce of numbers, with its buffers.
class Sum {
 public:
  Sum(Member& member, Rank rank, std::uint64_t count, std::int64_t salt, bool in_place,
      Collective collective = Collective::kAllreduce, Rank root = 0)
      : call_(member.make_call()),
        rank_(rank),
        size_(member.size()),
        salt_(salt),
        collective_(collective),
        root_(root) {
    in_.resize(count);
    out_.assign(count, kUntouched);
    for (std::uint64_t i = 0; i < count; ++i) in_[i] = given(rank, i);
    in_place = collective == Collective::kBcast || (in_place && has_result());
    if (in_place) out_ = in_;
    expect_ok(call_->set({.collective = collective,
                          .in = bytes(in_place ? out_ : in_),
                          .out = has_result() || rank % 2 == 0 ? bytes(out_) : nullptr,
                          .count = count,
                          .type = DataType::kInt64,
                          .op = ReduceOp::kSum,
                          .root = root}));
    call_->start();
  }
  [[nodiscard]] HierarchicalCall& call() { return *call_; }
  void check() const {
    for (std::uint64_t i = 0; i < out_.size(); ++i) {
      const std::int64_t n = size_;
      const std::int64_t sum = n * given(0, i) + n * (n - 1) / 2;
      const std::int64_t right = !has_result()                       ? kUntouched
                                 : collective_ == Collective::kBcast ? given(root_, i)
                                                                     : sum;
      ASSERT_EQ(out_[i], right) << "element " << i << " of " << out_.size() << " on rank " << rank_
                                << " of a " << to_string(collective_) << ", root " << root_;
    }
  }

 private:
  static constexpr std::int64_t kUntouched = -77;
  [[nodiscard]] bool has_result() const { return collective_ != Collective::kReduce || rank_ == root_; }
  static std::byte* bytes(std::vector<std::int64_t>& values) {
    return reinterpret_cast<std::byte*>(values.data());
  }
  [[nodiscard]] std::int64_t given(Rank rank, std::uint64_t i) const {
    return rank + salt_ + static_cast<std::int64_t>(i % 1021) * 3;
  }

  std::unique_ptr<HierarchicalCall> call_;
  Rank rank_, size_;
  std::int64_t salt_;
  Collective collective_;
  Rank root_;
  std::vector<std::int64_t> in_, out_;
};

/// Options of a wait that hangs for 20 s if its wake-up is lost.
WaitOptions long_wait() {
  WaitOptions options;
  options.tick_ns = 20'000'000'000;
  options.deadline_ns = SystemClock::instance().now_ns() + 20'000'000'000;
  return options;
}

std::uint64_t count_for(std::mt19937_64& random, bool sample) {
  const std::uint64_t kind = random() % 1000;
  if (kind == 0) return sample ? 140'000 : 400'000;  // several chunks
  if (kind < 20) return 1024 + random() % 30'000;
  return random() % 40;
}

TEST(HierarchicalCall, loses_no_wake_up_while_it_waits_for_memory_and_for_other_nodes) {
  const std::uint64_t seed = test::seed();
  const bool sample = test::runs_a_sample();
  const int rounds = sample ? 3'000 : 100'000;
  for (const std::uint64_t id : {1, 2})
    on_all_ranks(4,
                 [&](Engine& engine, transport::Transport* transport, Rank rank, ThreadExchange& exchange) {
                   Member member(engine, transport, "switch:2/2", id, rank, exchange);
                   std::mt19937_64 program(seed), own(seed + 1 + static_cast<std::uint64_t>(rank));
                   for (int round = 0; round < rounds / 2; ++round) {
                     Sum sum(member, rank, count_for(program, sample), round, own() % 2 == 0);
                     const Status status = sum.call().wait(long_wait());
                     ASSERT_TRUE(status.ok()) << status.message << " in round " << round;
                     sum.check();
                   }
                   exchange.meet();
                 });
}

TEST(HierarchicalCall, runs_with_other_outstanding_calls_on_several_communicators) {
  const std::uint64_t seed = test::seed();
  const bool sample = test::runs_a_sample();
  const int rounds = sample ? 100 : 1'000;
  for (const char* spec : {"switch:2/2", "switch:2/3", "torus:3/2", "3,2", "1,3", "2,1,3"}) {
    const Rank size = job_of(spec).design.topology.num_ranks();
    on_all_ranks(size, [&](Engine& engine, transport::Transport* transport, Rank rank,
                           ThreadExchange& exchange) {
      Member members[] = {{engine, transport, spec, 1, rank, exchange},
                          {engine, transport, spec, 2, rank, exchange}};
      std::mt19937_64 program(seed), own(seed + 1 + static_cast<std::uint64_t>(rank));
      std::vector<std::unique_ptr<Sum>> open;
      const auto end_one = [&] {
        const std::size_t which = own() % open.size();
        if (own() % 2 == 0) {
          while (!open[which]->call().test()) std::this_thread::yield();
        }
        const Status status = open[which]->call().wait(long_wait());
        ASSERT_TRUE(status.ok()) << status.message;
        open[which]->check();
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
      };
      for (int round = 0; round < rounds; ++round) {
        Member& member = members[program() % 2];
        const Collective collectives[] = {Collective::kAllreduce, Collective::kAllreduce, Collective::kBcast,
                                          Collective::kReduce};
        const Collective collective = collectives[program() % 4];
        const Rank root = static_cast<Rank>(program() % static_cast<std::uint64_t>(size));
        const std::uint64_t count = count_for(program, sample);
        open.push_back(std::make_unique<Sum>(member, rank, count, round, own() % 2 == 0, collective, root));
        while (open.size() > 6 || (!open.empty() && own() % 3 == 0)) end_one();
      }
      while (!open.empty()) end_one();
      exchange.meet();
    });
  }
}

TEST(HierarchicalCall, of_a_barrier_ends_on_no_rank_before_all_have_begun_it) {
  const int rounds = test::runs_a_sample() ? 200 : 2'000;
  for (const std::uint64_t id : {1, 2}) {
    for (const char* spec : {"switch:2/2", "switch:2/3", "torus:3/2", "3,2", "1,3", "2,1,3"}) {
      const Rank size = job_of(spec).design.topology.num_ranks();
      std::atomic<int> begun{0};
      on_all_ranks(size,
                   [&](Engine& engine, transport::Transport* transport, Rank rank, ThreadExchange& exchange) {
                     Member member(engine, transport, spec, id, rank, exchange);
                     std::mt19937_64 own(test::seed() + static_cast<std::uint64_t>(rank));
                     const auto barrier = member.make_call();
                     for (int round = 1; round <= rounds; ++round) {
                       if (own() % 8 == 0) std::this_thread::yield();
                       begun.fetch_add(1);
                       expect_ok(barrier->set({.collective = Collective::kBarrier}));
                       barrier->start();
                       expect_ok(barrier->wait(long_wait()));
                       ASSERT_GE(begun.load(), round * size) << "rank " << rank << " in round " << round;
                     }
                     exchange.meet();
                   });
    }
  }
}

TEST(HierarchicalCall, divides_an_average_once_around_the_largest_vector_that_one_leader_sends) {
  for (const char* spec : {"switch:2/3", "2,1,3"}) {
    const Rank size = job_of(spec).design.topology.num_ranks();
    on_all_ranks(size,
                 [&](Engine& engine, transport::Transport* transport, Rank rank, ThreadExchange& exchange) {
                   Member member(engine, transport, spec, 2, rank, exchange);
                   for (const std::size_t count : {1, 2, 511, 512, 513, 2000}) {
                     std::vector<double> in(count), out(count, -1);
                     for (std::size_t i = 0; i < count; ++i)
                       in[i] = static_cast<double>(rank) + static_cast<double>(i);
                     const auto call = member.make_call();
                     expect_ok(call->set({.in = reinterpret_cast<std::byte*>(in.data()),
                                          .out = reinterpret_cast<std::byte*>(out.data()),
                                          .count = count,
                                          .type = DataType::kFloat64,
                                          .op = ReduceOp::kAvg}));
                     call->start();
                     expect_ok(call->wait(long_wait()));
                     for (std::size_t i = 0; i < count; ++i)
                       ASSERT_DOUBLE_EQ(out[i], static_cast<double>(size - 1) / 2 + static_cast<double>(i))
                           << "element " << i << " of " << count << " on rank " << rank;
                     for (Rank root = 0; root < size; ++root) {
                       out.assign(count, -1);
                       expect_ok(call->set({.collective = Collective::kReduce,
                                            .in = reinterpret_cast<std::byte*>(in.data()),
                                            .out = reinterpret_cast<std::byte*>(out.data()),
                                            .count = count,
                                            .type = DataType::kFloat64,
                                            .op = ReduceOp::kAvg,
                                            .root = root}));
                       call->start();
                       expect_ok(call->wait(long_wait()));
                       for (std::size_t i = 0; i < count && rank == root; ++i)
                         ASSERT_DOUBLE_EQ(out[i], static_cast<double>(size - 1) / 2 + static_cast<double>(i))
                             << "element " << i << " of " << count << " at the root of a reduce, " << rank;
                     }
                   }
                   exchange.meet();
                 });
  }
}

TEST(HierarchicalCall, of_one_thread_makes_progress_on_calls_of_other_threads) {
  const int rounds = test::runs_a_sample() ? 100 : 1'000;
  const std::uint64_t seed = test::seed();
  on_all_ranks(4, [&](Engine& engine, transport::Transport* transport, Rank rank, ThreadExchange& exchange) {
    std::vector<std::unique_ptr<Member>> members;
    for (std::uint64_t id = 1; id <= 2; ++id)
      members.push_back(std::make_unique<Member>(engine, transport, "switch:2/2", id, rank, exchange));
    std::vector<std::thread> users;
    for (auto& member : members) {
      users.emplace_back([&] {
        std::mt19937_64 program(seed + (member == members[0] ? 0 : 1));
        for (int round = 0; round < rounds; ++round) {
          Sum sum(*member, rank, count_for(program, true), round, round % 2 == 0);
          WaitOptions options = long_wait();
          options.tick_ns = 1'000'000;  // like a program with calls on several communicators
          const Status status = sum.call().wait(options);
          ASSERT_TRUE(status.ok()) << status.message;
          sum.check();
        }
      });
    }
    for (auto& user : users) user.join();
    exchange.meet();
  });
}

TEST(HierarchicalCall, fails_wherever_it_waits_and_names_the_missing_ranks) {
  // Rank 3 does not start the call: rank 2 waits for it in memory, and ranks 0 and 1 for data of ranks 2 and 3, or, where
  // rank 0 is the only leader of its node, rank 0 for data of rank 2 and rank 1 for rank 0.
  for (const std::uint64_t id : {1, 2})
    on_all_ranks(4,
                 [&](Engine& engine, transport::Transport* transport, Rank rank, ThreadExchange& exchange) {
                   Member member(engine, transport, "switch:2/2", id, rank, exchange);
                   const Rank missing = rank == 2 ? 3 : rank == 1 && id == 2 ? 0 : rank + 2;
                   if (rank != 3) {
                     Sum sum(member, rank, 4, 0, false), behind(member, rank, 7, 0, false);
                     std::atomic<bool> told{false};
                     std::thread failure([&] {
                       const auto limit = std::chrono::steady_clock::now() + hips::test::kHangLimit;
                       while (!told && std::chrono::steady_clock::now() < limit)
                         std::this_thread::sleep_for(std::chrono::milliseconds(5));
                       EXPECT_FALSE(sum.call().done());
                       member.fail(Status::error(Code::kPeerLost, "rank 3 died"));
                     });
                     WaitOptions options = long_wait();
                     options.tick_ns = 20'000'000;
                     // Another rank may be late for a while.
                     const std::vector<Rank> wanted{missing};
                     options.on_tick = [&](std::int64_t) {
                       if (sum.call().waiting_for() == wanted && behind.call().waiting_for() == wanted)
                         told = true;
                     };
                     EXPECT_EQ(sum.call().wait(options).message, "rank 3 died");
                     EXPECT_EQ(behind.call().wait(options).message, "rank 3 died");
                     EXPECT_TRUE(told);
                     failure.join();
                   }
                   exchange.meet();
                 });
}

// ---- Grouping ranks by node ----------------------------------------------------------------------------

TEST(NodeGroups, follow_shared_memory_or_the_servers_of_a_named_topology) {
  Design unnamed = design_of("switch:4");
  unnamed.named = unnamed.topology_named = false;
  // Ranks are placed cyclically: the second rank of a node is two above the first.
  const auto turns = NodeGroups::of(unnamed, Config(), processes_on({"a", "b", "a", "b"}), 3);
  ASSERT_TRUE(turns);
  EXPECT_THAT(turns->ranks, ElementsAre(0, 2, 1, 3));
  EXPECT_EQ(turns->node, 1);
  EXPECT_EQ(turns->local_rank, 1);
  EXPECT_EQ(topology_of_nodes(unnamed, *turns).spec, "switch:2");
  const auto uneven = NodeGroups::of(unnamed, Config(), processes_on({"a", "b", "a", "a"}), 3);
  ASSERT_TRUE(uneven);
  EXPECT_THAT(uneven->ranks, ElementsAre(0, 2, 3, 1));
  EXPECT_EQ(uneven->ranks_here(), 3);
  EXPECT_EQ(uneven->ranks_on(1), 1);
  EXPECT_EQ(uneven->rank_of(1, 0), 1);
  EXPECT_EQ(uneven->least_ranks(), 1);
  EXPECT_FALSE(uneven->share_long_vectors());
  const auto unlike = NodeGroups::of(unnamed, Config(), processes_on({"a", "b", "a", "b", "a"}), 0);
  ASSERT_TRUE(unlike);
  EXPECT_TRUE(unlike->share_long_vectors());
  const auto servers = NodeGroups::of(design_of("bcube:2,1@25Gb/2"), Config(),
                                      processes_on({"a", "a", "a", "a", "a", "a", "a", "a"}), 5);
  ASSERT_TRUE(servers);
  EXPECT_EQ(servers->node, 2);
  EXPECT_EQ(servers->local_rank, 1);
  EXPECT_EQ(topology_of_nodes(design_of("bcube:2,1@25Gb/2"), *servers), parse_topology("bcube:2,1@25Gb"));
}

TEST(NodeGroups, do_not_exist_if_a_plan_of_all_ranks_is_named_or_needed) {
  Design unnamed = design_of("switch:4");
  unnamed.named = unnamed.topology_named = false;
  const auto has = [](const Design& design, const std::vector<const char*>& on, const Config& config = {}) {
    return NodeGroups::of(design, config, processes_on(on), 0).has_value();
  };
  EXPECT_TRUE(has(unnamed, {"a", "a", "a", "b"})) << "unequal numbers";
  EXPECT_FALSE(has(unnamed, {"a", "b", "c", "d"})) << "one rank each";
  EXPECT_FALSE(has(unnamed, {"a", "a", "a", "a"})) << "one node";
  EXPECT_FALSE(has(design_of("switch:4"), {"a", "a", "b", "b"})) << "each rank is a server";
  EXPECT_FALSE(has(design_of("switch:2/2"), {"a", "b", "a", "b"})) << "servers that share no memory";
  EXPECT_FALSE(has(design_of("switch:1/4"), {"a", "a", "a", "a"})) << "one server";
  Config shm;
  shm.transport = "shm";
  EXPECT_FALSE(has(design_of("switch:2/2"), {"a", "a", "a", "a"}, shm)) << "a transport is named";
  Design planned = design_of("switch:2/2");
  planned.choices.emplace_back();
  EXPECT_FALSE(has(planned, {"a", "a", "b", "b"})) << "a plan is named";
  planned.choices.push_back({.automatic = true});
  EXPECT_TRUE(has(planned, {"a", "a", "b", "b"})) << "a plan is named for some sizes";
  EXPECT_TRUE(has(design_of("switch:2/2"), {"a", "a", "b", "b"}));
}

TEST(PlansBetween, let_one_rank_of_a_node_send_short_vectors_through_sockets) {
  const auto up_to = [&](const std::string& spec, cost::Medium medium) {
    const auto [design, on] = job_of(spec);
    const NodeGroups nodes = *NodeGroups::of(design, Config(), processes_on(on), 0);
    const auto between =
        value_or_throw(choose_plans_between(topology_of_nodes(design, nodes), nodes, medium));
    return std::pair(between.one_leader_up_to_bytes, between.whole_up_to_bytes);
  };
  EXPECT_EQ(up_to("switch:2/2", cost::Medium::kWires).first, 0u) << "each rank drives RDMA by itself";
  EXPECT_EQ(up_to("switch:2/2", cost::Medium::kSockets), std::pair(4096ul, 0ul));
  EXPECT_EQ(up_to("switch:2/33", cost::Medium::kSockets).first, 1024u) << "it reduces for 32 others";
  EXPECT_EQ(up_to("3,2", cost::Medium::kWires), std::pair(0ul, 0ul)) << "one rank has no counterpart";
}

TEST(PlansBetween, send_whole_vectors_for_every_rank_only_where_the_NICs_hardly_notice) {
  const auto [design, on] = job_of("rail:3,2/3");
  const NodeGroups nodes = *NodeGroups::of(design, Config(), processes_on(on), 0);
  const Topology wiring = topology_of_nodes(design, nodes);
  const auto up_to = [&](std::optional<double> bytes_per_s) {
    const auto constants =
        bytes_per_s ? std::optional(cost::Constants{
                          .hop_seconds = 2e-6, .message_seconds = 0.5e-6, .bytes_per_s = *bytes_per_s})
                    : std::nullopt;
    return value_or_throw(choose_plans_between(wiring, nodes, cost::Medium::kWires, constants))
        .whole_up_to_bytes;
  };
  EXPECT_GE(up_to(std::nullopt), 4096u) << "100 Gbit/s";
  EXPECT_LE(up_to(std::nullopt), 16384u) << "32 KiB more for two other ranks";
  EXPECT_LE(up_to(25e6), 64u) << "200 Mbit/s: 5 us for 128 bytes of two other ranks";
  EXPECT_GE(up_to(25e6), 4u);
  std::uint64_t before = 0;
  for (double rate = 1e6; rate < 1e12; rate *= 2) {
    EXPECT_GE(up_to(rate), before) << rate << " bytes/s";
    before = up_to(rate);
  }
  EXPECT_EQ(before, 16384u);
}

TEST(ChosenPlans, leave_the_sizes_without_a_named_plan_to_hips) {
  const auto choices_of = [&](std::vector<Design::Choice> named) {
    Design design = design_of("bcube:3,1");
    design.choices = std::move(named);
    return value_or_throw(choose_plans(design, 0, cost::Medium::kWires));
  };
  const auto automatic = choices_of({});
  ASSERT_GE(automatic.size(), 2u) << "plans by size";
  const auto program_for = [](const std::vector<Design::Choice>& choices, std::uint64_t bytes) {
    const auto of =
        std::ranges::find_if(choices, [&](const auto& each) { return bytes <= each.up_to_bytes; });
    return std::pair(of->shape->description, of->automatic);
  };
  PlanShape shape = *automatic[0].shape;
  shape.description = "mine";
  Design::Choice mine = automatic[0];
  mine.shape = std::make_shared<PlanShape>(shape);
  mine.automatic = false;
  std::mt19937_64 random(hips::test::seed());
  for (int round = 0; round < 200; ++round) {
    // Random limits, including those of the automatic plans. Every other range is left to HiPS.
    std::set<std::uint64_t> limits = {UINT64_MAX};
    for (std::uint64_t i = random() % 4; i > 0; --i)
      limits.insert(random() % 2 == 0 ? automatic[random() % automatic.size()].up_to_bytes
                                      : std::uint64_t{1} << random() % 40);
    std::vector<Design::Choice> named;
    bool left = random() % 2 == 0;
    for (const std::uint64_t limit : limits) {
      named.push_back(left ? Design::Choice{.automatic = true} : mine);
      named.back().up_to_bytes = limit;
      left = !left;
    }
    const auto choices = choices_of(named);
    EXPECT_EQ(choices.back().up_to_bytes, UINT64_MAX);
    EXPECT_TRUE(std::ranges::is_sorted(choices, std::less_equal<>(), &Design::Choice::up_to_bytes));
    for (int power = 0; power < 42; ++power) {
      for (const std::uint64_t bytes : {(std::uint64_t{1} << power) - 1, std::uint64_t{1} << power}) {
        const auto line =
            std::ranges::find_if(named, [&](const auto& each) { return bytes <= each.up_to_bytes; });
        const auto expected =
            line->automatic ? program_for(automatic, bytes) : std::pair(std::string("mine"), false);
        EXPECT_EQ(program_for(choices, bytes), expected) << bytes;
      }
    }
  }
}

}  // namespace
}  // namespace hips::comm
