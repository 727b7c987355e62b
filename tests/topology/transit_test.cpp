// Switches without servers: those that offer more ways between others count, dead ends do not.

#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/cost/max_flow.hpp"
#include "topology/wiring/recognise.hpp"

namespace hips::topology {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using Kind = CabledNode::Kind;

constexpr double kRate = kDefaultBandwidthBytesPerS;

/// A list of cables such as {"n0", "a"}; names of servers begin with n.
Cabling cabling_of(const std::vector<std::pair<std::string, std::string>>& cables) {
  Cabling cabling;
  std::map<std::string, std::size_t> number;
  const auto node = [&](const std::string& name) {
    const auto [known, is_new] = number.try_emplace(name, cabling.nodes.size());
    if (is_new)
      cabling.nodes.push_back({.name = name, .kind = name[0] == 'n' ? Kind::kServer : Kind::kSwitch});
    return known->second;
  };
  for (const auto& [a, b] : cables)
    cabling.cables.push_back({.a = {node(a), ""}, .b = {node(b), ""}, .bandwidth_bytes_per_s = kRate});
  return cabling;
}

/// Flows of a description as it is, and of what was made of it, between sets of servers with the same names.
class FlowComparison {
 public:
  FlowComparison(const Cabling& listed, const ClusterTopology& made)
      : listed_(graph_of(listed), made.topology.num_servers()),
        made_(made.topology.graph(), made.topology.num_servers()) {
    for (std::size_t i = 0; i < made.nodes.size(); ++i) number_[made.nodes[i]] = i;
    EXPECT_EQ(number_.size(), servers_.size());
  }

  void expect_same(const std::vector<bool>& inside, const std::string& what) {
    std::vector<bool> renamed(inside.size());
    for (std::size_t i = 0; i < inside.size(); ++i) renamed[number_.at(servers_[i])] = inside[i];
    EXPECT_EQ(made_.leaving(renamed), listed_.leaving(inside)) << what;
  }

  [[nodiscard]] std::size_t num_servers() const { return servers_.size(); }

 private:
  /// Servers first.
  Graph graph_of(const Cabling& cabling) {
    Graph graph;
    std::vector<std::int64_t> number(cabling.nodes.size());
    for (const Kind kind : {Kind::kServer, Kind::kSwitch}) {
      for (std::size_t i = 0; i < cabling.nodes.size(); ++i) {
        if (cabling.nodes[i].kind != kind) continue;
        if (kind == Kind::kServer) servers_.push_back(cabling.nodes[i].name);
        number[i] = static_cast<std::int64_t>(graph.nodes.size());
        graph.nodes.push_back({.is_switch = kind == Kind::kSwitch, .id = number[i], .name = ""});
      }
    }
    for (const Cable& cable : cabling.cables)
      graph.links.push_back({.a = number[cable.a.node],
                             .b = number[cable.b.node],
                             .bandwidth_bytes_per_s = cable.bandwidth_bytes_per_s,
                             .up = cable.up});
    return graph;
  }

  std::vector<std::string> servers_;
  cost::MaxFlow listed_, made_;
  std::map<std::string, std::size_t> number_;
};

TEST(TransitSwitch, AddsItsCablesBetweenTheSwitchesThatItJoins) {
  // Leaves a and b with three servers each are joined by one cable, and by another way over f and g.
  const Cabling cabling = cabling_of({{"n0", "a"},
                                      {"n1", "a"},
                                      {"n2", "a"},
                                      {"n3", "b"},
                                      {"n4", "b"},
                                      {"n5", "b"},
                                      {"a", "b"},
                                      {"a", "f"},
                                      {"f", "g"},
                                      {"g", "b"}});
  const auto found = topology_of("cables", cabling);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->topology.num_switches, 4);
  EXPECT_THAT(found->notes, Not(Contains(HasSubstr("left out"))));
  FlowComparison(cabling, *found).expect_same({true, true, true, false, false, false}, "a and b");
}

TEST(TransitSwitch, IsLeftOutWhereItLeadsNowhere) {
  // A ring of three switches behind b, a switch with one cable, and one with two cables to a server.
  const auto found = topology_of("cables", cabling_of({{"n0", "a"},
                                                       {"n1", "a"},
                                                       {"n2", "b"},
                                                       {"n2", "a"},
                                                       {"n3", "b"},
                                                       {"a", "b"},
                                                       {"b", "f"},
                                                       {"f", "g"},
                                                       {"g", "h"},
                                                       {"h", "f"},
                                                       {"a", "mgmt"}}));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->topology.num_switches, 2);
  EXPECT_THAT(found->notes, Contains(AllOf(HasSubstr("switch \"f\" (and 3 more) is on no path between"),
                                           HasSubstr("left out"))));
}

TEST(TransitSwitch, WithTheCablesOfALeafIsALeafWithoutServers) {
  std::vector<std::pair<std::string, std::string>> cables;
  for (int leaf = 0; leaf < 4; ++leaf) {
    for (int i = 0; i < 3 && leaf < 3; ++i)
      cables.emplace_back("n" + std::to_string(3 * leaf + i), "leaf" + std::to_string(leaf));
    for (const char* spine : {"x", "y"}) cables.emplace_back("leaf" + std::to_string(leaf), spine);
  }
  const auto found = topology_of("cables", cabling_of(cables));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->topology.name, "Leaf-Spine(4,3,2), 9 of 12 servers");
}

TEST(TransitSwitch, CarriesInAnyWiringWhatItDoesInTheDescription) {
  const char* given = std::getenv("HIPS_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "HIPS_SEED=" << seed << "\n";
  std::mt19937_64 random(seed);
  for (int i = 0; i < 300; ++i) {
    // A random tree of switches with more cables; servers are at a third of them, some with two NICs.
    const std::size_t switches = 2 + random() % 12, with_servers = 1 + switches / 3;
    const std::size_t servers = 2 + random() % 8;
    std::vector<std::pair<std::string, std::string>> cables;
    for (std::size_t s = 1; s < switches; ++s)
      cables.emplace_back("s" + std::to_string(s), "s" + std::to_string(random() % s));
    for (std::size_t more = random() % (2 * switches); more > 0; --more) {
      const std::size_t a = random() % switches, b = random() % switches;
      if (a != b) cables.emplace_back("s" + std::to_string(a), "s" + std::to_string(b));
    }
    for (std::size_t n = 0; n < servers; ++n)
      for (std::size_t nics = 1 + random() % 2; nics > 0; --nics)
        cables.emplace_back("n" + std::to_string(n), "s" + std::to_string(random() % with_servers));
    Cabling cabling = cabling_of(cables);
    for (Cable& cable : cabling.cables)
      if (random() % 4 == 0) cable.bandwidth_bytes_per_s *= 4;
    const auto found = topology_of("cables", cabling);
    ASSERT_TRUE(found) << found.error().message;
    FlowComparison flows(cabling, *found);
    for (int set = 0; set < 20; ++set) {
      std::vector<bool> inside(flows.num_servers());
      for (std::size_t n = 0; n < inside.size(); ++n) inside[n] = random() % 2 == 0;
      inside[0] = true;
      inside[1] = false;
      flows.expect_same(inside, "wiring " + std::to_string(i) + ": " + found->topology.name);
    }
  }
}

}  // namespace
}  // namespace hips::topology
