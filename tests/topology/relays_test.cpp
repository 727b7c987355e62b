// Jobs whose servers reach each other only through servers outside the job, and jobs in trees with odd cables.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/cost/bound.hpp"
#include "lib/cost/estimate.hpp"
#include "lib/plan/builder.hpp"
#include "lib/plan/check/check.hpp"
#include "tests/choices.hpp"
#include "topology/formats/parse.hpp"
#include "topology/formats/part.hpp"
#include "topology/formats/told_wiring.hpp"
#include "topology/graph_wiring.hpp"
#include "topology/parts/components.hpp"
#include "topology/parts/folded.hpp"
#include "topology/parts/restrict.hpp"

namespace hips::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TopologyFile named(Topology topology) {
  TopologyFile file;
  file.topology = std::move(topology);
  for (std::int64_t s = 0; s < file.topology.num_servers(); ++s)
    file.server_names.push_back(fmt::format("s{}", s));
  return file;
}

TopologyFile named(const std::string& spec) {
  return named(value_or_throw(parse(spec)));
}

JobHosts hosts_of(const std::set<std::int64_t>& servers, std::int32_t ranks = 1) {
  JobHosts hosts;
  for (const std::int64_t server : servers) hosts.names.push_back(fmt::format("s{}", server));
  hosts.ranks_per_host = ranks;
  return hosts;
}

TopologyFile job_on(const std::string& spec, const std::set<std::int64_t>& servers) {
  return value_or_throw(restrict_to(named(spec), hosts_of(servers)));
}

/// The cable at NIC 0 of a server.
LinkOverride link(std::int64_t server, double bytes_per_s, bool up) {
  LinkOverride one;
  one.server = server;
  one.rail = 0;
  one.bandwidth_bytes_per_s = bytes_per_s;
  one.up = up;
  return one;
}

/// The names of the switches that are servers of the whole.
std::set<std::string> relays_of(const Topology& job) {
  std::set<std::string> names;
  if (job.wiring.value == nullptr) return names;
  for (const GraphNode& node : job.graph().nodes)
    if (node.is_switch && node.name.size() > 1 && node.name[0] == 's' && std::isdigit(node.name[1]) != 0)
      names.insert(node.name);
  return names;
}

TEST(Relays, JoinServersOfARingByTheShorterWay) {
  const TopologyFile job = job_on("torus:8@25Gb", {0, 3});
  EXPECT_EQ(job.topology.family, Family::kGraph);
  EXPECT_EQ(job.topology.num_servers(), 2);
  EXPECT_THAT(relays_of(job.topology), ElementsAre("s1", "s2"));
  EXPECT_EQ(job.topology.num_links, 3);
  for (const GraphLink& link : job.topology.graph().links) EXPECT_EQ(link.bandwidth_bytes_per_s, 25e9 / 8);
  ASSERT_TRUE(job.notes);
  EXPECT_THAT(
      *job.notes,
      ElementsAre(
          "Torus(8): the servers of the job reach each other only through 2 servers outside it; s[1-2] "
          "have to relay, that is to forward between their NICs, and take no part in the job"));
  // Server 0 leaves by its NIC x+, server 3 by x-.
  const auto route = job.topology.route(0, 1);
  ASSERT_EQ(route.size(), 1U);
  EXPECT_EQ(route[0].out, 0);
  EXPECT_EQ(route[0].in, 1);
}

TEST(Relays, JoinServersOfABcubeThatDifferInTwoDigits) {
  const TopologyFile job = job_on("bcube:3,1", {0, 4});
  EXPECT_THAT(relays_of(job.topology), ElementsAre("s1"));
  ASSERT_TRUE(job.notes);
  EXPECT_THAT(
      job.notes->front(),
      HasSubstr("only through a server outside it; s1 has to relay, that is to forward between its NICs, and "
                "takes no part in the job"));
}

TEST(Relays, AreNoneWhereTheJobIsConnected) {
  EXPECT_EQ(job_on("torus:4", {0, 1}).topology.spec, "torus:4[0-1]");
  EXPECT_EQ(job_on("bcube:3,1", {0, 1, 4}).topology.spec, "bcube:3,1[0-1,4]");
  EXPECT_FALSE(job_on("bcube:3,1", {0, 1, 4}).notes);
  // Trees of switches join any servers.
  EXPECT_EQ(job_on("leafspine:4,4", {0, 1, 5}).topology.family, Family::kLeafSpine);
}

TEST(Relays, AreNoneWhereServersMayNotRelay) {
  TopologyFile file = named("torus:4");
  file.topology.relay_off = true;
  const auto job = restrict_to(file, hosts_of({0, 2}));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_FALSE(job->notes);
  EXPECT_EQ(num_components(job->topology), 2U);
  const auto builder = plan::make_builder(job->topology, {});
  ASSERT_FALSE(builder);
  EXPECT_THAT(builder.error().message, HasSubstr("are not connected"));
}

TEST(Relays, AvoidCablesThatAreDown) {
  TopologyFile file = named("torus:8");
  file.topology.overrides.push_back(link(1, 1e9, false));
  const TopologyFile job = value_or_throw(restrict_to(file, hosts_of({0, 3})));
  EXPECT_THAT(relays_of(job.topology), ElementsAre("s4", "s5", "s6", "s7"));
  // Neighbours whose cable is down are not connected either.
  const TopologyFile near = value_or_throw(restrict_to(file, hosts_of({1, 2, 3, 4, 5, 6, 7})));
  EXPECT_THAT(relays_of(near.topology), ElementsAre("s0"));
  const TopologyFile pair = value_or_throw(restrict_to(file, hosts_of({1, 2})));
  EXPECT_EQ(relays_of(pair.topology).size(), 6U);
}

TEST(Relays, KeepNamesApartFromThoseOfSwitches) {
  const auto whole = value_or_throw(parse_topology_file(
      "g.yaml",
      "hips-topology: 1\nshape: graph\nservers: {count: 3, names: [a, b, c]}\nswitches: {names: [b]}\n"
      "cables:\n  - {server: a, nic: 0, switch: b}\n  - {server: b, nic: 0, switch: b}\n"
      "  - {server: b, nic: 1, to: c, to-nic: 0}\n"));
  const TopologyFile job = value_or_throw(restrict_to(whole, {.names = {"a", "c"}, .ranks_per_host = 2}));
  EXPECT_EQ(job.topology.num_ranks(), 4);
  const Graph graph = job.topology.graph();
  ASSERT_EQ(graph.nodes.size(), 4U);
  EXPECT_EQ(graph.nodes[2].name, "b");
  EXPECT_EQ(graph.nodes[3].name, "b (server)");
}

TEST(Relays, CannotJoinWhatNoCableJoins) {
  const auto whole = value_or_throw(parse_topology_file(
      "g.yaml",
      "hips-topology: 1\nshape: graph\nservers: {count: 4}\n"
      "cables:\n  - {server: 0, nic: 0, to: 1, to-nic: 0}\n  - {server: 2, nic: 0, to: 3, to-nic: 0}\n"));
  TopologyFile file = named(whole.topology);
  const TopologyFile job = value_or_throw(restrict_to(file, hosts_of({0, 2})));
  EXPECT_FALSE(job.notes);
  const auto builder = plan::make_builder(job.topology, {});
  ASSERT_FALSE(builder);
  EXPECT_THAT(builder.error().message, HasSubstr("are not connected"));
}

TEST(Folded, IsShortAndKeepsTheOrder) {
  const auto text = [](const std::vector<std::string>& names) { return folded(names); };
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(text({"n1"}), "n1");
  EXPECT_EQ(text({"n1", "n2", "n3", "n7", "login"}), "n[1-3,7],login");
  EXPECT_EQ(text({"n08", "n09", "n10", "n11"}), "n[08-11]");
  EXPECT_EQ(text({"n9", "n10"}), "n[9-10]");
  EXPECT_EQ(text({"r1n1.x", "r1n2.x", "r2n1.x"}), "r1n[1-2].x,r2n1.x");
  EXPECT_EQ(text({"n99999999999999999999", "n1"}), "n[99999999999999999999,1]");
}

/// A connected wiring of servers with cables to each other and to switches, so that servers have to relay.
Topology random_graph(std::mt19937_64& random) {
  const std::int64_t servers = 3 + static_cast<std::int64_t>(random() % 70);
  const std::int64_t switches = static_cast<std::int64_t>(random() % 12);
  Graph graph;
  std::vector<Rail> nics(static_cast<std::size_t>(servers), 0);
  for (std::int64_t node = 0; node < servers + switches; ++node)
    graph.nodes.push_back({.is_switch = node >= servers,
                           .id = node < servers ? node : node - servers,
                           .name = node < servers ? fmt::format("<{}>", node) : fmt::format("sw{}", node)});
  const auto add = [&](std::int64_t a, std::int64_t b) {
    if (a > b) std::swap(a, b);
    const auto port = [&](std::int64_t node) {
      return node < servers ? nics[static_cast<std::size_t>(node)]++ : kNoRail;
    };
    GraphLink link{.a = a, .b = b, .bandwidth_bytes_per_s = 1e9 * static_cast<double>(1 + random() % 4)};
    link.latency_ns = kDefaultLatencyNs;
    link.a_port = port(a);
    link.b_port = port(b);
    graph.links.push_back(link);
  };
  // A random tree, and some more cables, of which some are down. A server has at most six NICs.
  const auto has_place = [&](std::int64_t node) {
    return node >= servers || nics[static_cast<std::size_t>(node)] < 6;
  };
  std::vector<std::int64_t> order(graph.nodes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  std::ranges::shuffle(order, random);
  for (std::size_t i = 1; i < order.size(); ++i) {
    std::int64_t other = order[random() % i];
    while (!has_place(other)) other = order[random() % i];
    add(order[i], other);
  }
  for (std::uint64_t more = random() % graph.nodes.size(); more > 0; --more) {
    const std::int64_t a = order[random() % order.size()], b = order[random() % order.size()];
    if (a == b || !has_place(a) || !has_place(b)) continue;
    add(a, b);
    graph.links.back().up = random() % 8 != 0;
  }
  return value_or_throw(make_graph_topology(std::move(graph)));
}

/// Are these nodes joined by cables that are up, over nodes that `passable` allows?
bool joined(const Graph& graph, const std::set<std::int64_t>& nodes,
            const std::function<bool(std::int64_t)>& passable) {
  std::vector<std::vector<std::int64_t>> near(graph.nodes.size());
  for (const GraphLink& link : graph.links) {
    if (!link.up || !passable(link.a) || !passable(link.b)) continue;
    near[static_cast<std::size_t>(link.a)].push_back(link.b);
    near[static_cast<std::size_t>(link.b)].push_back(link.a);
  }
  std::set<std::int64_t> seen{*nodes.begin()};
  std::vector<std::int64_t> next{*nodes.begin()};
  while (!next.empty()) {
    const std::int64_t node = next.back();
    next.pop_back();
    for (const std::int64_t other : near[static_cast<std::size_t>(node)])
      if (seen.insert(other).second) next.push_back(other);
  }
  return std::ranges::includes(seen, nodes);
}

/// The job's plan is proved and has a finite cost that is not below the bound.
void expect_proved(const Topology& job, const std::string& what) {
  const auto builder = plan::make_builder(job, {});
  ASSERT_TRUE(builder) << what << ": " << builder.error().message;
  const Plan plan = plan::build_all(**builder);
  const auto report = plan::check(plan, {.count = 1'000'003, .topology = &job});
  ASSERT_TRUE(report.ok()) << what << ": " << report.findings.front().text;
  const double ratio = cost::estimate_all(job, **builder, {.count = 1 << 20}).ratio;
  EXPECT_TRUE(std::isfinite(ratio)) << what;
  EXPECT_GE(ratio, 1 - 1e-3) << what;
}

/// Each relay is needed, outside the job, and has the cables of the whole.
void expect_needed(const TopologyFile& whole, const std::set<std::int64_t>& chosen, const TopologyFile& job,
                   const std::string& what) {
  const std::set<std::string> relays = relays_of(job.topology);
  ASSERT_FALSE(relays.empty()) << what;
  for (const std::int64_t server : chosen) EXPECT_FALSE(relays.contains(fmt::format("s{}", server))) << what;
  const Graph graph = job.topology.graph(), all = whole.topology.graph();
  std::set<std::int64_t> servers;
  for (std::int64_t server = 0; server < job.topology.num_servers(); ++server) servers.insert(server);
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    if (!relays.contains(graph.nodes[node].name)) continue;
    EXPECT_FALSE(
        joined(graph, servers, [&](std::int64_t other) { return other != static_cast<std::int64_t>(node); }))
        << what << ": " << graph.nodes[node].name << " is not needed";
  }
  // Every cable is one of the whole, with its rate.
  const auto name_in = [](const TopologyFile& file, const Graph& of, std::int64_t node) {
    return node < file.topology.num_servers() ? file.server_names[static_cast<std::size_t>(node)]
                                              : of.nodes[static_cast<std::size_t>(node)].name;
  };
  const auto key = [&](const TopologyFile& file, const Graph& of, const GraphLink& link) {
    const std::string a = name_in(file, of, link.a), b = name_in(file, of, link.b);
    return std::tuple(std::min(a, b), std::max(a, b), link.bandwidth_bytes_per_s);
  };
  std::multiset<std::tuple<std::string, std::string, double>> known;
  for (const GraphLink& link : all.links) known.insert(key(whole, all, link));
  for (const GraphLink& link : graph.links) {
    const auto found = known.find(key(job, graph, link));
    ASSERT_NE(found, known.end()) << what;
    known.erase(found);
  }
}

void expect_written_and_read(const TopologyFile& job, const std::string& what) {
  const auto again = parse_topology_file("job.yaml", value_or_throw(topology_file_text(job, false)));
  ASSERT_TRUE(again) << what << ": " << again.error().message;
  EXPECT_EQ(again->topology.wiring, job.topology.wiring) << what;
}

class AnyJob : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, AnyJob,
                         ::testing::Values("torus:4", "torus:16", "torus:80", "torus:8x8", "torus:4x4x4",
                                           "mesh:12", "mesh:8x8", "mesh:3x5", "bcube:4,2", "bcube:8,1",
                                           "bcube:2,5", "bcube:3,3", "bcube:2x4x3", "graph"));

TEST_P(AnyJob, IsAcceptedAndProved) {
  std::mt19937_64 random(test::seed() + std::hash<std::string>()(GetParam()));
  int joined_by_others = 0;
  const int trials = test::runs_everything() ? 400 : test::runs_a_sample() ? 4 : 40;
  for (int trial = 0; trial < trials; ++trial) {
    TopologyFile whole = GetParam() == "graph" ? named(random_graph(random)) : named(GetParam());
    const auto servers = static_cast<std::uint64_t>(whole.topology.num_servers());
    if (GetParam() != "graph" && random() % 4 == 0)
      whole.topology.overrides.push_back(link(static_cast<std::int64_t>(random() % servers), 1.25e9,
                                              GetParam().starts_with("mesh") || random() % 2 == 0));
    // As many small jobs as large ones.
    const std::uint64_t most = std::min<std::uint64_t>({servers, 64, std::uint64_t{2} << (random() % 6)});
    const std::uint64_t size = 2 + random() % (most - 1);
    std::set<std::int64_t> chosen;
    while (chosen.size() < size) chosen.insert(static_cast<std::int64_t>(random() % servers));
    const std::string what = fmt::format("{} of {}", fmt::join(chosen, ","), whole.topology.name);
    const auto job = restrict_to(whole, hosts_of(chosen, random() % 4 == 0 ? 2 : 1));
    ASSERT_TRUE(job) << what << ": " << job.error().message;
    ASSERT_EQ(job->topology.num_servers(), static_cast<Rank>(size)) << what;
    ASSERT_EQ(num_components(job->topology), 1U) << what;
    expect_proved(job->topology, what);
    const Graph graph = whole.topology.graph();
    const bool alone = joined(graph, chosen, [&](std::int64_t node) {
      return graph.nodes[static_cast<std::size_t>(node)].is_switch || chosen.contains(node);
    });
    ASSERT_EQ(job->notes.has_value(), !alone) << what;
    if (alone) {
      EXPECT_EQ(job->topology.family == Family::kGraph, GetParam() == "graph") << what;
      continue;
    }
    ++joined_by_others;
    EXPECT_EQ(job->notes->size(), 1U);
    EXPECT_THAT(job->topology.spec, StartsWith(kPartOf));
    expect_needed(whole, chosen, *job, what);
    expect_written_and_read(*job, what);
    if (HasFatalFailure()) return;
  }
  std::cout << GetParam() << ": " << joined_by_others << " of " << trials << " jobs need others\n";
  EXPECT_TRUE(joined_by_others > 0 || test::runs_a_sample());
}

/// Cables between switches that are slow or down do not keep jobs elsewhere from being planned; those on their ways count.
TEST(JobsOfTrees, WithOddCablesAreAcceptedAndHaveTheBoundOfTheWhole) {
  std::mt19937_64 random(test::seed());
  const int trials = test::runs_everything() ? 2000 : test::runs_a_sample() ? 20 : 200;
  int with_odd_cables = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const std::vector<std::string> specs = {"leafspine:3,2,1", "leafspine:6,8,4", "fattree:4", "fattree:6"};
    TopologyFile whole = named(specs[random() % specs.size()]);
    const Graph graph = whole.topology.graph();
    std::vector<std::size_t> trunks;
    for (std::size_t i = 0; i < graph.links.size(); ++i)
      if (graph.nodes[static_cast<std::size_t>(graph.links[i].a)].is_switch) trunks.push_back(i);
    const bool is_down = whole.topology.name != "Leaf-Spine(3,2,1)" && random() % 3 == 0;
    const GraphLink& odd = graph.links[trunks[random() % trunks.size()]];
    LinkOverride one;
    one.bandwidth_bytes_per_s = odd.bandwidth_bytes_per_s / (is_down ? 1 : 8);
    one.up = !is_down;
    one.lower = graph.nodes[static_cast<std::size_t>(odd.a)].name;
    one.upper = graph.nodes[static_cast<std::size_t>(odd.b)].name;
    whole.topology.overrides.push_back(one);
    const auto servers = static_cast<std::uint64_t>(whole.topology.num_servers());
    std::set<std::int64_t> chosen;
    const std::uint64_t size = 2 + random() % (servers - 1), first = random() % servers;
    // Neighbours, as a scheduler chooses, or any.
    const bool adjacent = random() % 2 == 0;
    for (std::uint64_t i = 0; chosen.size() < size; ++i)
      chosen.insert(static_cast<std::int64_t>((adjacent ? first + i : random()) % servers));
    const std::string what =
        fmt::format("{} of {}, {} to {}", fmt::join(chosen, ","), whole.topology.name, one.lower, one.upper);
    const auto job = restrict_to(whole, hosts_of(chosen, 1));
    ASSERT_TRUE(job) << what << ": " << job.error().message;
    ASSERT_EQ(job->topology.num_servers(), static_cast<Rank>(size)) << what;
    with_odd_cables += job->topology.overrides.empty() ? 0 : 1;
    expect_proved(job->topology, what);
    // A part of the whole is the same to the bound as the smaller topology that stands for it.
    Topology part = whole.topology;
    if (size < servers) {
      const std::vector<std::int64_t> used(chosen.begin(), chosen.end());
      part = value_or_throw(parse(fmt::format("{}[{}]", whole.topology.spec, part_text(used))));
      part.overrides = whole.topology.overrides;
    }
    const double of_job = cost::bound(job->topology).seconds(1e6), of_part = cost::bound(part).seconds(1e6);
    EXPECT_NEAR(of_job, of_part, 1e-9 * of_part) << what << ": " << job->topology.name;
    if (HasFailure()) return;
  }
  EXPECT_GT(with_odd_cables, trials / 10);
}

TEST(JobsOfTrees, InOnePodDoNotSeeCablesAboveIt) {
  TopologyFile whole = named("fattree:4");
  const Graph graph = whole.topology.graph();
  const std::vector<std::size_t> levels = levels_of_links(whole.topology);
  const auto above = static_cast<std::size_t>(std::ranges::max_element(levels) - levels.begin());
  LinkOverride slow;
  slow.bandwidth_bytes_per_s = 1e9;
  slow.lower = graph.nodes[static_cast<std::size_t>(graph.links[above].a)].name;
  slow.upper = graph.nodes[static_cast<std::size_t>(graph.links[above].b)].name;
  whole.topology.overrides.push_back(slow);
  EXPECT_EQ(value_or_throw(restrict_to(whole, hosts_of({0, 1, 2, 3}, 1))).topology.spec, "leafspine:2,2");
  EXPECT_EQ(
      value_or_throw(restrict_to(whole, hosts_of({0, 1, 2, 3, 4, 5, 6, 7}, 1))).topology.overrides.size(),
      1U);
}

}  // namespace
}  // namespace hips::topology
