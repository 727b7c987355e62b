#include "lib/comm/interfaces.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace {

using hips::comm::by_reachability;
using hips::comm::host_of;
using hips::comm::LocalNetwork;
using hips::comm::resolve;
using hips::SocketAddress;
using testing::ElementsAre;

SocketAddress address(const char* text) {
  return resolve(text, 0).value().front();
}

std::vector<std::string> ordered(const std::vector<const char*>& hosts,
                                 const std::vector<LocalNetwork>& mine) {
  std::vector<SocketAddress> addresses;
  for (const char* host : hosts) addresses.push_back(address(host));
  std::vector<std::string> result;
  for (const SocketAddress& one : by_reachability(addresses, mine)) result.push_back(host_of(one));
  return result;
}

TEST(Interfaces, OfAServerWithSeveralNicsOnlyTheSharedNetworksAreTriedFirst) {
  // Server 3 of BCube(2,1) shares no rail with server 0, but the management network.
  const std::vector<LocalNetwork> server3 = {
      {address("10.100.1.4"), 24}, {address("10.100.3.4"), 24}, {address("10.99.0.4"), 16}};
  EXPECT_THAT(ordered({"10.100.0.1", "10.100.2.1", "10.99.0.1"}, server3),
              ElementsAre("10.99.0.1", "10.100.0.1", "10.100.2.1"));
}

TEST(Interfaces, AnAddressThatThisHostHasItselfComesLast) {
  // Docker gives every host the same bridge.
  const std::vector<LocalNetwork> mine = {{address("172.17.0.1"), 16}, {address("10.1.0.7"), 23}};
  EXPECT_THAT(ordered({"172.17.0.1", "192.0.2.9", "10.1.1.8", "10.1.2.8"}, mine),
              ElementsAre("10.1.1.8", "192.0.2.9", "10.1.2.8", "172.17.0.1"));
}

TEST(Interfaces, BothFamiliesAreCompared) {
  const std::vector<LocalNetwork> mine = {{address("fd00:1::7"), 64}};
  EXPECT_THAT(ordered({"10.0.0.1", "fd00:2::1", "fd00:1::1"}, mine),
              ElementsAre("fd00:1::1", "10.0.0.1", "fd00:2::1"));
}

TEST(Interfaces, ThisHostsAreListedWithoutLoopbackOrSaidToBeNone) {
  const auto networks = hips::comm::local_networks();
  if (!networks) {
    EXPECT_THAT(networks.error().message, testing::HasSubstr("no network address but loopback"));
    return;
  }
  for (const LocalNetwork& network : *networks) {
    EXPECT_THAT(host_of(network.address), testing::Not(testing::StartsWith("127.")));
    EXPECT_GT(network.prefix_bits, 0u);
  }
}

}  // namespace
