#include "topology/health/health.hpp"
#include "topology/health/cabling_of.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "topology/formats/parse.hpp"
#include "topology/health/difference.hpp"
#include "topology/union_find.hpp"

namespace hips::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kRate = 12.5e9;

struct Sizes {
  std::size_t leaves = 0, spines = 0, servers = 0, uplinks = 0;
};

/// A leaf-spine with ports, in random order: `uplinks` cables from each leaf to each spine.
Cabling leaf_spine(std::mt19937_64& random, const Sizes& sizes) {
  Cabling cabling;
  const auto add_node = [&](std::string name, CabledNode::Kind kind) {
    cabling.nodes.push_back({.name = std::move(name), .kind = kind});
    return cabling.nodes.size() - 1;
  };
  std::vector<std::size_t> spines;
  for (std::size_t s = 0; s < sizes.spines; ++s)
    spines.push_back(add_node(fmt::format("spine{}", s), CabledNode::Kind::kSwitch));
  for (std::size_t l = 0; l < sizes.leaves; ++l) {
    const std::size_t leaf = add_node(fmt::format("leaf{}", l), CabledNode::Kind::kSwitch);
    std::size_t port = 0;
    const auto add_cable = [&](std::size_t other, std::string other_port) {
      Cable cable{.a = {leaf, std::to_string(++port)},
                  .b = {other, std::move(other_port)},
                  .bandwidth_bytes_per_s = kRate};
      if (random() % 2 == 0) std::swap(cable.a, cable.b);
      cabling.cables.push_back(std::move(cable));
    };
    for (std::size_t i = 0; i < sizes.servers; ++i)
      add_cable(add_node(fmt::format("n{}-{}", l, i), CabledNode::Kind::kServer), "hca0");
    for (const std::size_t spine : spines)
      for (std::size_t i = 0; i < sizes.uplinks; ++i)
        add_cable(spine, std::to_string(l * sizes.uplinks + i + 1));
  }
  std::ranges::shuffle(cabling.cables, random);
  return cabling;
}

Sizes random_sizes(std::mt19937_64& random) {
  return {.leaves = 3 + random() % 5,
          .spines = 2 + random() % 3,
          .servers = 3 + random() % 8,
          .uplinks = 1 + random() % 3};
}

bool at_server(const Cabling& cabling, const Cable& cable) {
  return cabling.nodes[cable.a.node].kind == CabledNode::Kind::kServer ||
         cabling.nodes[cable.b.node].kind == CabledNode::Kind::kServer;
}

class HealthOf : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  std::mt19937_64 random_{GetParam()};
  Sizes sizes_ = random_sizes(random_);
  Cabling cabling_ = leaf_spine(random_, sizes_);
};
INSTANTIATE_TEST_SUITE_P(Seeds, HealthOf, ::testing::Range<std::uint64_t>(0, 30));

TEST_P(HealthOf, AnEvenNetworkHasNothingToSay) {
  const Health health = examine(cabling_);
  EXPECT_THAT(health.leaves, IsEmpty());
  EXPECT_THAT(health.uplinks, IsEmpty());
  EXPECT_THAT(health.missing, IsEmpty());
  EXPECT_THAT(health.odd, IsEmpty());
  EXPECT_THAT(health.fewer_nics, IsEmpty());
  for (const CutPoint& point : health.cut_points) EXPECT_TRUE(point.only_single_servers);
  EXPECT_EQ(health.servers_with_one_cable, sizes_.leaves * sizes_.servers);
  EXPECT_EQ(health.tiers.highest, 2U);
}

TEST_P(HealthOf, NamesTheSlowCableAndNoOther) {
  const std::size_t slow = random_() % cabling_.cables.size();
  cabling_.cables[slow].bandwidth_bytes_per_s /= 4;
  const Health health = examine(cabling_);
  ASSERT_EQ(health.odd.size(), 1U);
  EXPECT_EQ(health.odd[0].cable, slow);
  EXPECT_EQ(health.odd[0].usual_bytes_per_s, kRate);
}

TEST_P(HealthOf, NamesTheHalfEmptyLeafAndNoOther) {
  // All but one server of leaf 1 go.
  std::size_t left = 1;
  std::erase_if(cabling_.cables, [&](const Cable& cable) {
    if (!at_server(cabling_, cable)) return false;
    const bool here =
        cabling_.nodes[cable.a.node].name == "leaf1" || cabling_.nodes[cable.b.node].name == "leaf1";
    return here && left-- != 1;
  });
  const Health health = examine(cabling_);
  ASSERT_EQ(health.leaves.size(), 1U);
  EXPECT_EQ(cabling_.nodes[health.leaves[0].node].name, "leaf1");
  EXPECT_EQ(health.leaves[0].count, 1U);
  EXPECT_EQ(health.leaves[0].usual, sizes_.servers);
}

TEST_P(HealthOf, NamesBothEndsOfARemovedCableBetweenSwitches) {
  const auto removed =
      std::ranges::find_if(cabling_.cables, [&](const Cable& cable) { return !at_server(cabling_, cable); });
  std::set<std::string> ends{cabling_.nodes[removed->a.node].name, cabling_.nodes[removed->b.node].name};
  cabling_.cables.erase(removed);
  const Health health = examine(cabling_);
  ASSERT_EQ(health.missing.size(), 1U);
  EXPECT_EQ(
      (std::set{cabling_.nodes[health.missing[0].lower].name, cabling_.nodes[health.missing[0].upper].name}),
      ends);
  EXPECT_EQ(health.missing[0].count, sizes_.uplinks - 1);
  EXPECT_EQ(health.missing[0].usual, sizes_.uplinks);
}

/// The sizes of the parts of the servers without one switch or cable, in descending order.
std::vector<std::size_t> parts_without(const Cabling& cabling, bool is_cable, std::size_t index) {
  UnionFind joined(cabling.nodes.size());
  for (std::size_t i = 0; i < cabling.cables.size(); ++i) {
    const Cable& cable = cabling.cables[i];
    const bool lost = is_cable ? i == index : cable.a.node == index || cable.b.node == index;
    if (cable.up && !lost) joined.join(cable.a.node, cable.b.node);
  }
  std::vector<std::size_t> count(cabling.nodes.size(), 0), parts;
  for (std::size_t node = 0; node < cabling.nodes.size(); ++node)
    if (cabling.nodes[node].kind == CabledNode::Kind::kServer) ++count[joined.find(node)];
  for (const std::size_t servers : count)
    if (servers > 0) parts.push_back(servers);
  std::ranges::sort(parts, std::ranges::greater{});
  return parts;
}

class CutPointsOf : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, CutPointsOf, ::testing::Range<std::uint64_t>(0, 300));

TEST_P(CutPointsOf, ARandomGraphAreThoseOfRemovingEachInTurn) {
  std::mt19937_64 random(GetParam());
  Cabling cabling;
  const std::size_t nodes = 2 + random() % 12;
  for (std::size_t i = 0; i < nodes; ++i)
    cabling.nodes.push_back(
        {.name = std::to_string(i),
         .kind = random() % 2 == 0 ? CabledNode::Kind::kServer : CabledNode::Kind::kSwitch});
  // A tree joins all, so that the parts without nothing are one.
  for (std::size_t i = 1; i < nodes; ++i) cabling.cables.push_back({.a = {i}, .b = {random() % i}});
  for (std::size_t i = random() % nodes; i > 0; --i) {
    const std::size_t a = random() % nodes, b = random() % nodes;
    cabling.cables.push_back({.a = {a}, .b = {b}, .up = random() % 4 != 0});
  }
  std::vector<std::vector<std::size_t>> expected;
  for (const bool is_cable : {false, true}) {
    for (std::size_t i = 0; i < (is_cable ? cabling.cables.size() : nodes); ++i) {
      if (!is_cable && cabling.nodes[i].kind == CabledNode::Kind::kServer) continue;
      const auto parts = parts_without(cabling, is_cable, i);
      if (parts.size() < 2) continue;
      std::size_t cut_off = 0;
      for (std::size_t k = parts[0] > 1 || is_cable ? 1 : 0; k < parts.size(); ++k) cut_off += parts[k];
      expected.push_back({is_cable ? 1U : 0U, i, parts.size(), cut_off});
    }
  }
  std::vector<std::vector<std::size_t>> found;
  for (const CutPoint& point : cut_points(cabling))
    found.push_back({point.is_cable ? 1U : 0U, point.index, point.parts, point.cut_off});
  EXPECT_EQ(found, expected);
}

TEST(CutPoints, AUplinkOfALeafWithOneServerIsNoCableOfAServer) {
  // n0 - leaf0 - spine - leaf1 - n1, n2
  Cabling cabling;
  for (const char* name : {"n0", "n1", "n2", "leaf0", "leaf1", "spine"})
    cabling.nodes.push_back(
        {.name = name, .kind = name[0] == 'n' ? CabledNode::Kind::kServer : CabledNode::Kind::kSwitch});
  for (const auto& [a, b] : {std::pair<std::size_t, std::size_t>{0, 3}, {1, 4}, {2, 4}, {3, 5}, {4, 5}})
    cabling.cables.push_back({.a = {a}, .b = {b}});
  std::vector<bool> only_single;
  for (const CutPoint& point : cut_points(cabling))
    if (point.is_cable) only_single.push_back(point.only_single_servers);
  EXPECT_THAT(only_single, ElementsAre(true, true, true, false, false));
}

TEST(Health, CountsServersWithFewerNics) {
  TopologyFile file;
  file.topology = *parse("rail:4,2");
  file.server_names = {"a", "b", "c", "d"};
  Cabling cabling = cabling_of(file);
  const auto first = std::ranges::find_if(cabling.cables, [&](const Cable& cable) {
    return cabling.nodes[cable.a.node].name == "b" || cabling.nodes[cable.b.node].name == "b";
  });
  cabling.cables.erase(first);
  const Health health = examine(cabling);
  ASSERT_EQ(health.fewer_nics.size(), 1U);
  EXPECT_EQ(cabling.nodes[health.fewer_nics[0].node].name, "b");
  EXPECT_EQ(health.servers_with_one_cable, 1U);
}

TEST(Health, EqualPortsOfServersAreAlike) {
  // Of a BCube whose second NICs are slower, no cable is odd.
  TopologyFile file;
  file.topology = *parse("bcube:3,1");
  file.topology.levels[1].bandwidth_bytes_per_s /= 4;
  EXPECT_THAT(examine(cabling_of(file)).odd, IsEmpty());
  // Nor where one server has names of its own for its NICs.
  file.devices = {"mlx5_0", "mlx5_1"};
  file.other_devices = {{4, {"mlx5_2", "mlx5_3"}}};
  EXPECT_THAT(examine(cabling_of(file)).odd, IsEmpty());
}

TEST(Health, ASlowCableBetweenServersIsOdd) {
  for (const char* spec : {"torus:8", "torus:4x4", "mesh:3x3"}) {
    TopologyFile file;
    file.topology = *parse(spec);
    // Axes may differ.
    for (Level& level : file.topology.levels)
      level.bandwidth_bytes_per_s = kRate / static_cast<double>(level.rails[0] + 1);
    EXPECT_THAT(examine(cabling_of(file)).odd, IsEmpty()) << spec;
    LinkOverride slow;
    slow.server = 1;
    slow.rail = 0;
    slow.bandwidth_bytes_per_s = kRate / 10;
    file.topology.overrides.push_back(slow);
    const auto odd = examine(cabling_of(file)).odd;
    ASSERT_EQ(odd.size(), 1U) << spec;
    EXPECT_EQ(odd[0].usual_bytes_per_s, kRate) << spec;
  }
}

TEST_P(HealthOf, SwitchesWithoutServersOfTheJobAreLeftOut) {
  TopologyFile file;
  file.cabling.value = std::make_shared<const Cabling>(cabling_);
  file.server_names = {"n0-0", "n0-1", "n1-0"};
  const Cabling part = cabling_of(file);
  std::set<std::string> leaves;
  for (const CabledNode& node : part.nodes)
    if (node.name.starts_with("leaf")) leaves.insert(node.name);
  EXPECT_THAT(leaves, ElementsAre("leaf0", "leaf1"));
  EXPECT_EQ(part.nodes.size(), 3 + 2 + sizes_.spines);
  EXPECT_EQ(part.cables.size(), 3 + 2 * sizes_.spines * sizes_.uplinks);
}

TEST_P(HealthOf, TheDifferenceNamesWhatChangedAndNothingElse) {
  Cabling now = cabling_;
  std::ranges::shuffle(now.cables, random_);
  EXPECT_TRUE(compare_cablings(cabling_, now).empty());
  // A slower cable, a removed one, and a server that goes.
  const auto between = [&](const Cable& cable) { return !at_server(now, cable); };
  const auto uplink = std::ranges::find_if(now.cables, between);
  uplink->bandwidth_bytes_per_s /= 2;
  const auto second = std::find_if(uplink + 1, now.cables.end(), between);
  now.cables.erase(second);
  std::size_t gone = 0;
  while (now.nodes[gone].name != "n0-0") ++gone;
  std::erase_if(now.cables, [&](const Cable& cable) { return cable.a.node == gone || cable.b.node == gone; });
  now.nodes[gone] = {.name = "new", .kind = CabledNode::Kind::kServer};
  const CablingDifference difference = compare_cablings(cabling_, now);
  EXPECT_THAT(difference.servers_gone, ElementsAre("n0-0"));
  EXPECT_THAT(difference.servers_new, ElementsAre("new"));
  ASSERT_EQ(difference.rates.size(), 1U);
  EXPECT_EQ(difference.rates[0].before, kRate);
  EXPECT_EQ(difference.rates[0].now, kRate / 2);
  EXPECT_EQ(difference.cables_gone.size(), 1U);
  EXPECT_THAT(difference.cables_new, IsEmpty());
  EXPECT_THAT(difference.moved, IsEmpty());
  EXPECT_THAT(difference.switches_gone, IsEmpty());
}

TEST(CablingDifference, ACableInAnotherPortHasMoved) {
  std::mt19937_64 random(1);
  const Cabling before = leaf_spine(random, {.leaves = 2, .spines = 1, .servers = 2, .uplinks = 1});
  Cabling now = before;
  for (Cable& cable : now.cables)
    for (CableEnd* end : {&cable.a, &cable.b})
      if (end->port == "hca0" && now.nodes[end->node].name == "n1-1") end->port = "hca1";
  const CablingDifference difference = compare_cablings(before, now);
  EXPECT_THAT(difference.moved, ElementsAre("leaf1 port 2 -- n1-1 hca1, before leaf1 port 2 -- n1-1 hca0"));
  EXPECT_THAT(difference.cables_gone, IsEmpty());
}

TEST(CablingOfLeaf, HasAllSwitchesThatTheServersOfTheLeafShare) {
  Cabling cabling;
  for (const char* name : {"n0", "n1", "n2", "leaf0", "leaf1", "leaf2", "spine"})
    cabling.nodes.push_back(
        {.name = name, .kind = name[0] == 'n' ? CabledNode::Kind::kServer : CabledNode::Kind::kSwitch});
  // n0 and n1 are at leaf0 and leaf1, n1 and n2 at leaf2.
  for (const auto& [a, b] : std::vector<std::pair<std::size_t, std::size_t>>{
           {0, 3}, {1, 3}, {0, 4}, {4, 1}, {1, 5}, {2, 5}, {3, 6}, {4, 6}, {5, 6}})
    cabling.cables.push_back({.a = {a, ""}, .b = {b, ""}, .bandwidth_bytes_per_s = kRate});
  const auto names = [&](std::size_t leaf) {
    std::vector<std::string> all;
    for (const CabledNode& node : cabling_of_leaf(cabling, leaf).nodes) all.push_back(node.name);
    return all;
  };
  EXPECT_THAT(names(3), ElementsAre("n0", "n1", "leaf0", "leaf1"));
  EXPECT_THAT(names(5), ElementsAre("n1", "n2", "leaf2"));
  EXPECT_EQ(cabling_of_leaf(cabling, 3).cables.size(), 4U);
}

TEST(Difference, OfParallelCablesWithoutPortsTheOneThatIsAsBeforeIsNotGone) {
  std::mt19937_64 random(7);
  Cabling before = leaf_spine(random, {.leaves = 3, .spines = 2, .servers = 3, .uplinks = 2});
  std::vector<std::size_t> pair;
  for (std::size_t i = 0; i < before.cables.size(); ++i) {
    Cable& cable = before.cables[i];
    cable.a.port.clear();
    cable.b.port.clear();
    const std::set<std::string> ends{before.nodes[cable.a.node].name, before.nodes[cable.b.node].name};
    if (ends == std::set<std::string>{"leaf0", "spine0"}) pair.push_back(i);
  }
  ASSERT_EQ(pair.size(), 2U);
  before.cables[pair[0]].bandwidth_bytes_per_s = kRate / 2;
  Cabling now = before;
  now.cables.erase(now.cables.begin() + static_cast<std::ptrdiff_t>(pair[0]));
  const CablingDifference difference = compare_cablings(before, now);
  EXPECT_THAT(difference.rates, IsEmpty());
  EXPECT_EQ(difference.cables_gone.size(), 1U);
}

}  // namespace
}  // namespace hips::topology
