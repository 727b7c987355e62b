// Lists that do not tell servers from switches, of hosts with several NICs: their names do.

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/cabling/cabling.hpp"
#include "topology/wiring/kinds.hpp"
#include "topology/wiring/recognise.hpp"

namespace hips::topology {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

/// A cabling whose nodes are of unknown kind, in the order in which cables name them.
class UnknownKinds {
 public:
  void add(const std::string& a, const std::string& b, double rate = 12.5e9) {
    cabling_.cables.push_back(
        {.a = {.node = node(a)}, .b = {.node = node(b)}, .bandwidth_bytes_per_s = rate});
  }
  void name_ports(const std::string& a, const std::string& b) {
    cabling_.cables.back().a.port = a;
    cabling_.cables.back().b.port = b;
  }
  [[nodiscard]] const Cabling& cabling() const { return cabling_; }

 private:
  std::size_t node(const std::string& name) {
    for (std::size_t i = 0; i < cabling_.nodes.size(); ++i)
      if (cabling_.nodes[i].name == name) return i;
    cabling_.nodes.push_back({.name = name});
    return cabling_.nodes.size() - 1;
  }
  Cabling cabling_;
};

TEST(Kinds, RailsOfFewHostsWithManyNics) {
  UnknownKinds list;
  for (int host = 0; host < 4; ++host)
    for (int rail = 0; rail < 8; ++rail) list.add(fmt::format("dgx{}", host), fmt::format("rail-sw{}", rail));
  const auto cluster = topology_of("c.csv", list.cabling());
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->topology.spec, "rail:4,8");
  EXPECT_THAT(cluster->nodes, testing::ElementsAre("dgx0", "dgx1", "dgx2", "dgx3"));
  EXPECT_THAT(cluster->notes,
              Contains(HasSubstr("unless --hosts REGEX or --switches REGEX tells otherwise")));
}

TEST(Kinds, TwoHostsBelowTwoSwitches) {
  for (const std::string host : {"node", "h"}) {
    UnknownKinds list;
    for (int i = 1; i <= 2; ++i)
      for (int tor = 1; tor <= 2; ++tor) list.add(host + std::to_string(i), fmt::format("tor{}", tor));
    EXPECT_EQ(value_or_throw(topology_of("c.csv", list.cabling())).topology.spec, "rail:2,2") << host;
  }
}

/// Hosts with NICs in several leaves, which spines join, whether names of hosts or of spines tell or not.
TEST(Kinds, HostsWithSeveralNicsBelowLeavesAndSpines) {
  for (const std::string host : {"gpu", "h"}) {
    for (const std::string spine : {"spine", "s"}) {
      UnknownKinds list;
      for (int i = 0; i < 16; ++i)
        for (int nic = 0; nic < 2; ++nic)
          list.add(fmt::format("{}{}", host, i), fmt::format("leaf{}", 2 * (i / 8) + nic));
      for (int leaf = 0; leaf < 4; ++leaf)
        for (int up = 0; up < 2; ++up) list.add(fmt::format("leaf{}", leaf), fmt::format("{}{}", spine, up));
      const auto cluster = value_or_throw(topology_of("c.csv", list.cabling()));
      EXPECT_EQ(cluster.topology.num_servers(), 16) << host << " " << spine;
      EXPECT_EQ(cluster.topology.num_switches, 6) << host << " " << spine;
      EXPECT_THAT(cluster.nodes, testing::Each(testing::StartsWith(host)));
    }
  }
}

TEST(Kinds, NothingToldIsSaid) {
  UnknownKinds ring;
  for (int i = 0; i < 4; ++i) ring.add(fmt::format("x{}", i), fmt::format("x{}", (i + 1) % 4));
  const auto cluster = value_or_throw(topology_of("c.csv", ring.cabling()));
  EXPECT_EQ(cluster.topology.spec, "torus:4");
  EXPECT_THAT(cluster.notes, Contains(HasSubstr("all 4 nodes are taken for servers, unless --hosts REGEX")));
}

/// Cables of a mesh of x columns and y rows, without some.
UnknownKinds mesh(int x, int y, const std::set<std::pair<int, int>>& without) {
  UnknownKinds list;
  for (int node = 0; node < x * y; ++node) {
    for (const int other : {node % x + 1 < x ? node + 1 : -1, node + x < x * y ? node + x : -1}) {
      if (other >= 0 && !without.contains({node, other}))
        list.add(fmt::format("d{}", node), fmt::format("d{}", other));
    }
  }
  return list;
}

/// A corner with one cable is no host of a switch.
TEST(Kinds, CornersOfAMeshThatLostACable) {
  for (const auto& without :
       {std::set<std::pair<int, int>>{{0, 1}}, {{0, 1}, {3, 7}}, {{0, 4}, {8, 9}, {10, 11}}}) {
    const auto cluster = value_or_throw(topology_of("c.csv", mesh(4, 3, without).cabling()));
    EXPECT_EQ(cluster.topology.family, Family::kMesh);
    EXPECT_EQ(cluster.topology.num_servers(), 12);
    EXPECT_THAT(cluster.notes,
                Contains(HasSubstr("all 12 nodes are taken for servers, unless --hosts REGEX")));
  }
  // Half of the nodes have one cable, and no two of them share a switch.
  const auto small = value_or_throw(topology_of("c.csv", mesh(2, 3, {{0, 1}, {0, 2}, {3, 5}}).cabling()));
  EXPECT_GT(small.topology.num_servers(), 1);
}

TEST(Kinds, AnErrorHasAnExampleOfTheFilesOwnNames) {
  const auto error_of = [](const std::string& a, const std::string& b) {
    UnknownKinds list;
    for (int i = 1; i <= 3; ++i) list.add(fmt::format("{}{}", a, i), fmt::format("{}0", b));
    list.add(a + "4", b + "7");
    list.add(a + "5", b + "7");
    const auto cluster = topology_of("c.csv", list.cabling());
    return cluster ? "accepted" : cluster.error().message;
  };
  EXPECT_THAT(error_of("c.", "x"),
              testing::EndsWith("; the file does not tell servers from switches: tell which are by "
                                "--hosts REGEX or --switches REGEX, such as --hosts '^c\\.[0-9]+$'"));
  EXPECT_THAT(error_of("d", "d"), testing::EndsWith("such as --hosts '^(d1|d2|d3)$'"));
  EXPECT_THAT(error_of(std::string(100'000, 'd'), "it's\n"),
              testing::EndsWith("such as --hosts '^gpu[0-9]+$'"));
  EXPECT_THAT(error_of("node", "x"), testing::Not(HasSubstr("does not tell")));
}

TEST(Management, SwitchesOfSlowNicsAreLeftOut) {
  UnknownKinds list;
  for (int i = 0; i < 6; ++i) {
    for (int rail = 0; rail < 2; ++rail) list.add(fmt::format("node{}", i), fmt::format("tor{}", rail));
    list.add(fmt::format("node{}", i), "mgmt-sw", 0.125e9);
  }
  const auto cluster = value_or_throw(topology_of("c.csv", list.cabling()));
  EXPECT_EQ(cluster.topology.spec, "rail:6,2");
  EXPECT_THAT(cluster.notes,
              Contains("c.csv: servers have NICs at least 10 times as fast as those to mgmt-sw; taken for a "
                       "management network and left out"));
}

TEST(Management, WhatAloneJoinsServersStays) {
  UnknownKinds list;
  for (int i = 0; i < 6; ++i) {
    list.add(fmt::format("node{}", i), fmt::format("tor{}", i / 3));
    list.add(fmt::format("node{}", i), "mgmt-sw", 0.125e9);
  }
  const auto cluster = value_or_throw(topology_of("c.csv", list.cabling()));
  EXPECT_EQ(cluster.topology.num_servers(), 6);
  EXPECT_EQ(cluster.topology.num_switches, 3);
}

TEST(Kinds, NodesAllOfWhosePortsAreThoseOfSwitchesAreSwitches) {
  UnknownKinds list;
  for (int rail = 0; rail < 2; ++rail) {
    for (int host = 0; host < 4; ++host) {
      list.add(fmt::format("gpu{}", host), fmt::format("rail-{}", rail));
      list.name_ports(fmt::format("mlx5_{}", rail), fmt::format("swp{}", host));
    }
    for (int top = 0; top < 2; ++top) {
      list.add(fmt::format("rail-{}", rail), fmt::format("sp{}", top));
      list.name_ports(fmt::format("swp5{}", top), fmt::format("swp{}", rail));
    }
  }
  const auto cluster = topology_of("c.csv", list.cabling());
  ASSERT_TRUE(cluster);
  EXPECT_THAT(cluster->nodes, testing::ElementsAre("gpu0", "gpu1", "gpu2", "gpu3"));
}

TEST(Kinds, PortsTellNothingWhereAllAreCalledAlike) {
  UnknownKinds list;
  for (int i = 0; i < 4; ++i) {
    list.add(fmt::format("a{}", i), "b");
    list.name_ports("Ethernet1", fmt::format("Ethernet{}", i));
  }
  const auto cluster = topology_of("c.csv", list.cabling());
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->topology.spec, "switch:4");
}

}  // namespace
}  // namespace hips::topology
