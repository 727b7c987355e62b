// NICs of servers in graphs of several networks.

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/choices.hpp"
#include "topology/graph_wiring.hpp"
#include "topology/wiring/recognise.hpp"

namespace hips::topology {
namespace {

/// Networks of a few switches each, in which servers have NICs: one that all are in, others at random.
Cabling several_networks(std::mt19937_64& random) {
  const std::size_t networks = 2 + random() % 4, servers = 4 + random() % 12;
  Cabling cabling;
  for (std::size_t s = 0; s < servers; ++s)
    cabling.nodes.push_back({.name = fmt::format("n{}", s), .kind = CabledNode::Kind::kServer});
  const auto join = [&](std::size_t a, std::size_t b) {
    cabling.cables.push_back({.a = {a, ""}, .b = {b, ""}, .bandwidth_bytes_per_s = 12.5e9});
  };
  const std::size_t of_all = random() % networks;
  for (std::size_t network = 0; network < networks; ++network) {
    const std::size_t first = cabling.nodes.size(), switches = 2 + random() % 2;
    for (std::size_t s = 0; s < switches; ++s) {
      cabling.nodes.push_back(
          {.name = fmt::format("sw{}-{}", network, s), .kind = CabledNode::Kind::kSwitch});
      if (s > 0) join(first + s, first);
    }
    for (std::size_t server = 0; server < servers; ++server) {
      const std::size_t nics = network == of_all ? 1 : random() % 4 == 0 ? 0 : 1 + random() % 2;
      for (std::size_t nic = 0; nic < nics; ++nic) join(server, first + (server + nic) % switches);
    }
  }
  std::ranges::shuffle(cabling.cables, random);
  return cabling;
}

TEST(NicNumbers, OfEachServerAreThoseOfItsNicsAndInTheSameOrder) {
  std::mt19937_64 random(test::seed());
  int graphs = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const auto found = topology_of("cables", several_networks(random));
    ASSERT_TRUE(found) << found.error().message;
    if (found->topology.family != Family::kGraph) continue;
    ++graphs;
    const GraphWiring& wiring = *found->topology.wiring.value;
    std::vector<std::set<Rail>> nics(static_cast<std::size_t>(wiring.num_servers));
    for (const GraphLink& link : wiring.graph.links) {
      if (link.a < wiring.num_servers) nics[static_cast<std::size_t>(link.a)].insert(link.a_port);
      if (link.b < wiring.num_servers) nics[static_cast<std::size_t>(link.b)].insert(link.b_port);
    }
    std::set<std::pair<std::int32_t, std::int32_t>> before;  // planes, of which the first has lower numbers
    for (std::int64_t server = 0; server < wiring.num_servers; ++server) {
      const auto& own = nics[static_cast<std::size_t>(server)];
      EXPECT_EQ(*own.begin(), 0);
      EXPECT_EQ(*own.rbegin() + 1, static_cast<Rail>(own.size()))
          << found->nodes[static_cast<std::size_t>(server)];
      for (Rail nic = 1; nic < static_cast<Rail>(own.size()); ++nic) {
        const std::int32_t low = wiring.plane[wiring.nic(server, nic - 1)];
        const std::int32_t high = wiring.plane[wiring.nic(server, nic)];
        if (low != high) before.emplace(low, high);
      }
    }
    for (const auto& [low, high] : before) EXPECT_FALSE(before.contains({high, low}));
    // The network that every server has one NIC in has the same number everywhere.
    EXPECT_FALSE(found->topology.servers_relay) << found->topology.name;
  }
  EXPECT_GT(graphs, 100);
}

}  // namespace
}  // namespace hips::topology
