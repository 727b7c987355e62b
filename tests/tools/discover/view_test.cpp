#include "tools/discover/view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/discover/reach.hpp"

namespace hips::discover {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

/// The view of a rank on a node with RDMA ports in these subnets.
RankView rank_on(Rank rank, const std::string& host, const std::vector<std::string>& subnets) {
  RankView view{.rank = rank, .host = host, .node_key = "key of " + host, .nics = {}};
  for (const std::string& subnet : subnets) {
    const std::string name = "mlx5_" + std::to_string(view.nics.size());
    view.nics.push_back({{name, "10.0.0.1", subnet, 12.5e9}, "eth" + name, true});
  }
  return view;
}

TEST(DiscoveryView, IsSerialisedAndParsed) {
  RankView view = rank_on(3, "node1", {"10.0.0.0/24", ""});
  view.neighbours = {
      {.interface = "mlx5_0", .via = "LLDP", .chassis = "leaf1", .port_id = "swp1", .is_bridge = true}};
  const comm::Blob bytes = encode(view);
  EXPECT_EQ(value_or_throw(decode_view(bytes)), view);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_view(std::span(bytes).first(size))) << size;
}

TEST(DiscoveryView, SubnetsAreAddressesWithoutTheirLastBits) {
  EXPECT_EQ(subnet_of("10.0.1.7", 24), "10.0.1.0/24");
  EXPECT_EQ(subnet_of("10.0.1.7", 31), "10.0.1.6/31");
  EXPECT_EQ(subnet_of("10.0.1.7", 0), "0.0.0.0/0");
  EXPECT_EQ(subnet_of("fd00::1:2", 64), "fd00::/64");
  EXPECT_EQ(subnet_of("node7", 24), "");
}

TEST(DiscoveryView, RanksOfANodeAreOneServer) {
  const std::vector<RankView> views{rank_on(0, "a", {"s"}), rank_on(1, "b", {"s"}), rank_on(2, "a", {"t"})};
  const auto servers = servers_of(views);
  ASSERT_THAT(servers, SizeIs(2));
  EXPECT_THAT(servers[0].ranks, ElementsAre(0, 2));
  const auto seen = observation_of(views, servers);
  EXPECT_EQ(seen.servers[0].ranks, 2);
  EXPECT_EQ(seen.servers[0].nics[0].subnet, "s");
}

TEST(DiscoveryView, TriesNicsOfOneSubnetAndOfEqualNumber) {
  std::vector<RankView> views{rank_on(0, "a", {"s", "t"}), rank_on(1, "b", {"u", "s"})};
  const auto servers = servers_of(views);
  const auto paths = paths_to_try(observation_of(views, servers));
  ASSERT_THAT(paths, SizeIs(3));  // 0-0 and 1-1 by number, 0-1 by subnet
  // RDMA is tried only within a subnet.
  EXPECT_THAT(rdma_paths(views, servers, paths), ElementsAre(doctor::ProbePath{0, 1, 0, 1}));
  // With a thousand servers every NIC tries some others, not all.
  views.clear();
  for (Rank rank = 0; rank < 1000; ++rank) views.push_back(rank_on(rank, "n" + std::to_string(rank), {"s"}));
  EXPECT_THAT(paths_to_try(observation_of(views, servers_of(views))), SizeIs(10'000));
}

TEST(DiscoveryView, ResultsOfRdmaOverrideThoseOfPackets) {
  const std::vector<RankView> views{rank_on(0, "a", {"s"}), rank_on(1, "b", {"s"}), rank_on(2, "c", {"s"})};
  const auto servers = servers_of(views);
  std::vector<topology::SeenPath> paths{{0, 0, 1, 0, true, 1, 0}};
  const auto trial = [](Rank a, Rank b, Rank from, bool ok) {
    doctor::Trial one;
    one.path = {a, b, 0, 0};
    one.from = from;
    one.small_ok = one.large_ok = ok;
    one.rtt_us = from == a ? 4 : 3;
    return one;
  };
  add_trials(servers, std::vector{trial(0, 1, 0, true), trial(0, 1, 1, false), trial(1, 2, 1, true)}, paths);
  ASSERT_THAT(paths, SizeIs(2));
  EXPECT_FALSE(paths[0].reached);
  EXPECT_TRUE(paths[1].reached);
  EXPECT_EQ(paths[0].latency_ns, 1500);
  EXPECT_EQ(paths[1].latency_ns, 2000);
}

}  // namespace
}  // namespace hips::discover
