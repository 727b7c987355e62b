// What processes know of the network between their nodes, and when a communicator measures it again.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/comm/setup/design.hpp"
#include "lib/comm/setup/network_measurement.hpp"

namespace known_network_test {
namespace {

using hips::comm::Announcement;
using hips::comm::Blob;
using hips::comm::ProcessInfo;
using hips::cost::Constants;

std::vector<ProcessInfo> on_nodes(int num_nodes, int ranks_per_node) {
  std::vector<ProcessInfo> processes;
  for (int node = 0; node < num_nodes; ++node)
    for (int rank = 0; rank < ranks_per_node; ++rank)
      processes.emplace_back().node_key = "node" + std::to_string(node);
  return processes;
}

Constants measured_between(std::uint32_t num_nodes) {
  Constants constants;
  constants.hop_seconds = 1e-6 * num_nodes;
  constants.bytes_per_s = 1e9;
  constants.num_nodes = num_nodes;
  return constants;
}

TEST(KnownNetwork, OfFarFewerNodesIsMeasuredAgain) {
  const auto is_enough = [](int nodes, int ranks_per_node, std::uint32_t measured) {
    return hips::comm::is_enough_for(on_nodes(nodes, ranks_per_node), measured_between(measured));
  };
  EXPECT_TRUE(is_enough(2, 1, 2));
  EXPECT_TRUE(is_enough(2, 8, 2)) << "what counts are nodes";
  EXPECT_FALSE(is_enough(3, 1, 2)) << "between two nodes nothing arrives at once";
  EXPECT_TRUE(is_enough(9, 2, 3));
  EXPECT_FALSE(is_enough(12, 1, 3));
  EXPECT_TRUE(is_enough(2, 1, 9));
}

TEST(KnownNetwork, OfTheMostNodesCountsForAllRanks) {
  std::vector<Blob> blobs;
  for (const std::uint32_t nodes : {0U, 2U, 9U, 3U}) {
    Announcement one;
    if (nodes != 0) one.network = measured_between(nodes);
    blobs.push_back(encode(one));
  }
  const auto agreed = hips::comm::compare(blobs);
  ASSERT_TRUE(agreed) << agreed.error().message;
  ASSERT_TRUE(agreed->network);
  EXPECT_EQ(*agreed->network, measured_between(9));
}

}  // namespace
}  // namespace known_network_test
