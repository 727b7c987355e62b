#include "lib/comm/setup/interfaces.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace interfaces_test {
namespace {

using hips::DeviceFilter;
using hips::SocketAddress;
using hips::comm::by_reachability;
using hips::comm::host_of;
using hips::comm::LocalNetwork;
using hips::comm::resolve;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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

TEST(Interfaces, AddressesInSharedNetworksComeFirst) {
  // Server 3 of BCube(2,1) shares no rail with server 0, only the management network.
  const std::vector<LocalNetwork> server3 = {
      {address("10.100.1.4"), 24}, {address("10.100.3.4"), 24}, {address("10.99.0.4"), 16}};
  EXPECT_THAT(ordered({"10.100.0.1", "10.100.2.1", "10.99.0.1"}, server3),
              ElementsAre("10.99.0.1", "10.100.0.1", "10.100.2.1"));
}

TEST(Interfaces, AnAddressOfThisNodeComesLast) {
  // Docker creates a bridge with the same address on every node.
  const std::vector<LocalNetwork> mine = {{address("172.17.0.1"), 16}, {address("10.1.0.7"), 23}};
  EXPECT_THAT(ordered({"172.17.0.1", "192.0.2.9", "10.1.1.8", "10.1.2.8"}, mine),
              ElementsAre("10.1.1.8", "192.0.2.9", "10.1.2.8", "172.17.0.1"));
}

TEST(Interfaces, AddressesOfBothFamiliesAreSorted) {
  const std::vector<LocalNetwork> mine = {{address("fd00:1::7"), 64}};
  EXPECT_THAT(ordered({"10.0.0.1", "fd00:2::1", "fd00:1::1"}, mine),
              ElementsAre("fd00:1::1", "10.0.0.1", "fd00:2::1"));
}

/// The interfaces that data_networks() chooses among `names`; "lo" is loopback.
std::vector<std::string> data_interfaces(const std::vector<const char*>& names, const char* filter) {
  std::vector<LocalNetwork> all;
  for (const char* name : names)
    all.push_back({address("10.0.0.1"), 24, name, std::string_view(name) == "lo"});
  DeviceFilter parsed;
  if (*filter != '\0') parsed = DeviceFilter::parse(filter, hips::kSocketSyntax).value();
  std::vector<std::string> result;
  for (const LocalNetwork& network : hips::comm::choose_data_networks(all, parsed))
    result.push_back(network.interface);
  return result;
}

TEST(DataNetworks, TheDefaultSkipsLoopbackAndContainerBridges) {
  EXPECT_THAT(data_interfaces({"lo", "eth0", "docker0", "eth1", "virbr0"}, ""), ElementsAre("eth0", "eth1"));
  EXPECT_THAT(data_interfaces({"lo", "docker0"}, ""), ElementsAre("docker0"));
  EXPECT_THAT(data_interfaces({"lo"}, ""), ElementsAre("lo"));
  EXPECT_THAT(data_interfaces({}, ""), IsEmpty());
}

TEST(DataNetworks, AnInterfaceWithSeveralAddressesIsOneRail) {
  EXPECT_THAT(data_interfaces({"lo", "eth0", "eth0", "eth1", "eth0"}, ""), ElementsAre("eth0", "eth1"));
}

TEST(DataNetworks, TheUserChoosesInterfacesAndTheirOrder) {
  const std::vector<const char*> all = {"lo", "eth0", "eth1", "eth10", "docker0"};
  EXPECT_THAT(data_interfaces(all, "eth"), ElementsAre("eth0", "eth1", "eth10"));
  EXPECT_THAT(data_interfaces(all, "=eth1"), ElementsAre("eth1"));
  EXPECT_THAT(data_interfaces(all, "=eth1,eth0"), ElementsAre("eth1", "eth0"));
  EXPECT_THAT(data_interfaces(all, "=eth0,eth0"), ElementsAre("eth0", "eth0"));
  EXPECT_THAT(data_interfaces(all, "lo"), ElementsAre("lo"));
  EXPECT_THAT(data_interfaces(all, "docker"), ElementsAre("docker0"));
  EXPECT_THAT(data_interfaces(all, "ib"), IsEmpty());
}

TEST(DataNetworks, TheUserExcludesInterfaces) {
  const std::vector<const char*> all = {"lo", "eth0", "eth1", "docker0"};
  EXPECT_THAT(data_interfaces(all, "^lo"), ElementsAre("eth0", "eth1", "docker0"));
  EXPECT_THAT(data_interfaces(all, "^eth1,docker"), ElementsAre("eth0"));
  EXPECT_THAT(data_interfaces(all, "^eth,docker"), ElementsAre("lo"));
}

TEST(DataNetworks, TheErrorForAnUnknownNameListsTheInterfaces) {
  const auto none = hips::comm::data_networks("warp9");
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, hips::Code::kInvalidArgument);
  EXPECT_THAT(none.error().message, AllOf(HasSubstr("HIPS_SOCKET_IFNAME=\"warp9\""), HasSubstr("lo")));
  const auto wrong = hips::comm::data_networks("eth0,,eth1");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_THAT(wrong.error().message, AllOf(HasSubstr("HIPS_SOCKET_IFNAME"), HasSubstr("a name is missing")));
}

TEST(Interfaces, TheListOfThisNodeHasNoLoopback) {
  const auto networks = hips::comm::local_networks();
  if (!networks) {
    EXPECT_THAT(networks.error().message, testing::HasSubstr("no network address except loopback"));
    return;
  }
  EXPECT_FALSE(networks->empty());
  for (const LocalNetwork& network : *networks) {
    EXPECT_THAT(host_of(network.address), testing::Not(testing::StartsWith("127.")));
    EXPECT_GT(network.prefix_bits, 0u);
  }
}

}  // namespace
}  // namespace interfaces_test
