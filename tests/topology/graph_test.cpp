#include <gtest/gtest.h>

#include <map>
#include <set>

#include <hips/topology.hpp>

#include "tests/topology/samples.hpp"
#include "topology/families/family.hpp"

namespace hips {
namespace {

std::map<std::string, std::int64_t> by_name(const Graph& graph) {
  std::map<std::string, std::int64_t> nodes;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    nodes[graph.nodes[i].name] = static_cast<std::int64_t>(i);
  return nodes;
}

std::int64_t count_links(const Graph& graph, std::int64_t a, std::int64_t b) {
  std::int64_t count = 0;
  for (const GraphLink& link : graph.links)
    count += (link.a == a && link.b == b) || (link.a == b && link.b == a);
  return count;
}

TEST(Graph, HasAsManySwitchesAndCablesAsTheTopologySays) {
  for (const std::string& spec : tests::sample_specs()) {
    const Topology topology = parse_topology(spec);
    const Graph graph = topology.graph();
    std::int64_t switches = 0;
    for (const GraphNode& node : graph.nodes) switches += node.is_switch;
    EXPECT_EQ(switches, topology.num_switches) << spec;
    EXPECT_EQ(static_cast<std::int64_t>(graph.nodes.size()), topology.num_servers() + topology.num_switches)
        << spec;
    EXPECT_EQ(static_cast<std::int64_t>(graph.links.size()), topology.num_links) << spec;
  }
}

TEST(Graph, HasTheClosedFormsOfThePapers) {
  // BCube(n,k): (k+1) n^k switches and (k+1) n^(k+1) cables. Fat-Tree: 5k^2/4 switches, 3k^3/4 cables.
  EXPECT_EQ(parse_topology("bcube:4,2").num_switches, 3 * 16);
  EXPECT_EQ(parse_topology("bcube:4,2").num_links, 3 * 64);
  EXPECT_EQ(parse_topology("bcube:2x4x3").num_switches, 12 + 6 + 8);
  EXPECT_EQ(parse_topology("fattree:4").num_switches, 20);
  EXPECT_EQ(parse_topology("fattree:4").num_links, 48);
  EXPECT_EQ(parse_topology("torus:4x4x4").num_switches, 0);
  EXPECT_EQ(parse_topology("torus:4x4x4").num_links, 3 * 64);
}

TEST(Graph, PlugsEveryNicIntoExactlyOneCable) {
  for (const std::string& spec : tests::sample_specs()) {
    const Topology topology = parse_topology(spec);
    const Graph graph = topology.graph();
    std::set<std::pair<std::int64_t, Rail>> used;
    for (const GraphLink& link : graph.links) {
      for (const auto& [node, port] : {std::pair(link.a, link.a_port), std::pair(link.b, link.b_port)}) {
        if (graph.nodes[node].is_switch) {
          EXPECT_EQ(port, kNoRail) << spec;
        } else {
          EXPECT_TRUE(used.emplace(node, port).second) << spec << " server " << node << " NIC " << port;
        }
      }
      EXPECT_GT(link.bandwidth_bytes_per_s, 0) << spec;
      EXPECT_TRUE(link.up);
    }
    double wired = 0;  // NICs at the ends of lines are not connected
    for (Rail rail = 0; rail < topology.num_rails; ++rail) {
      for (const Level& level : topology::network_levels(topology)) {
        if (std::ranges::find(level.rails, rail) == level.rails.end()) continue;
        wired += topology::share_of_nics_in_use(level) * static_cast<double>(topology.num_servers());
        break;
      }
    }
    if (topology.levels.empty() || topology.num_servers() == 1) continue;
    EXPECT_NEAR(static_cast<double>(used.size()), wired, 1e-6) << spec;
  }
}

TEST(Graph, PlugsNicsIntoTheSwitchesThatTheirFamilyNames) {
  for (const std::string& spec : tests::sample_specs()) {
    const Topology topology = parse_topology(spec);
    const Graph graph = topology.graph();
    const auto& entry = topology::entry_of(topology.family);
    for (const GraphLink& link : graph.links) {
      if (link.a_port == kNoRail) continue;
      const std::string wired = graph.nodes[link.b].is_switch ? graph.nodes[link.b].name : "";
      EXPECT_EQ(entry.switch_name(topology, link.a, link.a_port), wired) << spec;
    }
  }
}

TEST(Graph, GivesEveryNodeAUniqueName) {
  for (const std::string& spec : tests::sample_specs()) {
    const Graph graph = parse_topology(spec).graph();
    EXPECT_EQ(by_name(graph).size(), graph.nodes.size()) << spec;
  }
}

/// Servers that share a switch or a cable: the expected neighbours(), from the wiring alone.
std::set<std::tuple<std::int64_t, Rail, std::int64_t, Rail>> pairs_by_wiring(const Graph& graph) {
  std::set<std::tuple<std::int64_t, Rail, std::int64_t, Rail>> pairs;
  std::map<std::int64_t, std::vector<std::pair<std::int64_t, Rail>>> plugged;
  for (const GraphLink& link : graph.links) {
    if (graph.nodes[link.b].is_switch) {
      plugged[link.b].emplace_back(link.a, link.a_port);
    } else {
      pairs.emplace(link.a, link.a_port, link.b, link.b_port);
      pairs.emplace(link.b, link.b_port, link.a, link.a_port);
    }
  }
  for (const auto& [node, ends] : plugged) {
    for (const auto& [a, a_port] : ends) {
      for (const auto& [b, b_port] : ends) {
        if (a != b) pairs.emplace(a, a_port, b, b_port);
      }
    }
  }
  return pairs;
}

TEST(Graph, AgreesWithTheNeighboursOfEveryServer) {
  for (const std::string& spec : tests::sample_specs()) {
    const Topology topology = parse_topology(spec);
    if (!topology.levels.empty() && topology.levels.back().kind == LevelKind::kTree)
      continue;  // tiers in between: tested below
    const std::int64_t m = topology.ranks_per_server;
    std::set<std::tuple<std::int64_t, Rail, std::int64_t, Rail>> told;
    for (std::int64_t server = 0; server < topology.num_servers(); ++server) {
      for (const Hop& hop : topology.neighbours(static_cast<Rank>(server * m))) {
        if (hop.out != kNoRail) told.emplace(server, hop.out, hop.to / m, hop.in);
      }
    }
    EXPECT_EQ(told, pairs_by_wiring(topology.graph())) << spec;
  }
}

TEST(Graph, OfALeafSpineJoinsEveryLeafToEverySpineAndServersToTheirLeaf) {
  const Topology topology = parse_topology("leafspine:3,4,2");
  const Graph graph = topology.graph();
  const auto nodes = by_name(graph);
  EXPECT_EQ(graph.nodes.size(), 12u + 5u);
  EXPECT_EQ(graph.links.size(), 3u * (4 + 2));
  for (std::int64_t leaf = 0; leaf < 3; ++leaf) {
    const std::int64_t node = nodes.at("leaf " + std::to_string(leaf));
    for (std::int64_t spine = 0; spine < 2; ++spine)
      EXPECT_EQ(count_links(graph, node, nodes.at("spine " + std::to_string(spine))), 1);
    for (std::int64_t server = 0; server < 12; ++server)
      EXPECT_EQ(count_links(graph, server, node), server / 4 == leaf ? 1 : 0);
  }
}

TEST(Graph, OfAFatTreeGivesEverySwitchKPortsAndJoinsEveryPodToEveryCore) {
  for (const std::int64_t k : {2, 4, 6, 8}) {
    const Topology topology = parse_topology("fattree:" + std::to_string(k));
    const Graph graph = topology.graph();
    const auto nodes = by_name(graph);
    std::vector<std::int64_t> ports(graph.nodes.size());
    for (const GraphLink& link : graph.links) {
      ++ports[link.a];
      ++ports[link.b];
    }
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      EXPECT_EQ(ports[i], graph.nodes[i].is_switch ? k : 1) << graph.nodes[i].name;
    }
    for (std::int64_t pod = 0; pod < k; ++pod) {
      const std::string prefix = "pod " + std::to_string(pod);
      for (std::int64_t i = 0; i < k / 2; ++i) {
        const std::int64_t aggregation = nodes.at(prefix + " aggregation " + std::to_string(i));
        for (std::int64_t j = 0; j < k / 2; ++j) {
          const std::int64_t edge = nodes.at(prefix + " edge " + std::to_string(j));
          EXPECT_EQ(count_links(graph, aggregation, edge), 1);
          EXPECT_EQ(count_links(graph, aggregation, nodes.at("core " + std::to_string(i * k / 2 + j))), 1);
        }
      }
    }
    // Servers of one edge switch differ in the lowest digit only.
    for (std::int64_t server = 0; server < topology.num_servers(); ++server) {
      const std::int64_t edge = server / (k / 2);
      const std::string name =
          "pod " + std::to_string(edge / (k / 2)) + " edge " + std::to_string(edge % (k / 2));
      EXPECT_EQ(count_links(graph, server, nodes.at(name)), 1);
    }
  }
}

TEST(Graph, NamesServersByTheirAddress) {
  const Graph graph = parse_topology("bcube:3,1/2").graph();
  EXPECT_EQ(graph.nodes[1].name, "<01>");
  EXPECT_EQ(graph.nodes[1].id, 1);
  EXPECT_EQ(graph.nodes[9].name, "level 0 switch 0");
  EXPECT_EQ(graph.nodes[9].id, 0);
}

TEST(Graph, IsRejectedIfItWouldExhaustTheMemory) {
  try {
    (void)parse_topology("bcube:10,6").graph();
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.status().code, Code::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("70000000 cables"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace hips
