#include "tools/lab/network/wiring.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace hips::lab {
namespace {

using testing::ElementsAre;

Wiring wiring_of(const std::string& spec) {
  return value_or_throw(wire(parse_topology(spec)));
}

const Port& port_at(const Wiring& wiring, std::int64_t server, Rail rail) {
  for (const Port& port : wiring.ports) {
    if (port.server == server && port.rail == rail) return port;
  }
  throw std::out_of_range("no such NIC");
}

/// Where a frame to `mac` ends that a server sends into the network: the tap that it leaves by, or what went
/// wrong.
std::string follow(const Wiring& wiring, const Port& from, const std::string& mac) {
  std::int64_t bridge = from.bridge;
  for (int hops = 0; hops < 10; ++hops) {
    const Forwarding* found = nullptr;
    std::int64_t next = -1;
    for (const Forwarding& entry : wiring.tables) {
      if (entry.mac != mac) continue;
      for (const Trunk& trunk : wiring.trunks) {
        if (trunk.a == bridge && trunk.a_end == entry.interface) found = &entry, next = trunk.b;
        if (trunk.b == bridge && trunk.b_end == entry.interface) found = &entry, next = trunk.a;
      }
      for (const Port& port : wiring.ports) {
        if (port.bridge == bridge && port.tap == entry.interface) return port.tap;
      }
    }
    if (!found) return "no entry";
    bridge = next;
  }
  return "loop";
}

class EveryTopology : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Samples, EveryTopology,
                         testing::Values("bcube:2,1", "bcube:3,1", "bcube:2x3x4", "torus:4x4", "torus:2x3",
                                         "torus:5", "rail:4,2", "switch:5", "fattree:2", "fattree:4",
                                         "leafspine:2,2", "leafspine:3,4,2", "bcube:3,1/2"));

TEST_P(EveryTopology, ARailReachesTheRailsOfItsNeighboursAndNoOthers) {
  const Topology topology = parse_topology(GetParam());
  const Wiring wiring = wiring_of(GetParam());
  ASSERT_EQ(wiring.ports.size(), static_cast<std::size_t>(topology.num_servers()) * topology.num_rails);
  for (const Port& port : wiring.ports) {
    std::set<std::pair<std::int64_t, Rail>> expected, found;
    for (const Hop& hop : topology.neighbours(static_cast<Rank>(port.server * topology.ranks_per_server))) {
      // In a tree every server is reached, those of other switches in one hop of the topology as well.
      if (hop.out == port.rail) expected.emplace(hop.to / topology.ranks_per_server, hop.in);
    }
    for (const Port& other : wiring.ports) {
      if (other.segment == port.segment && other.server != port.server)
        found.emplace(other.server, other.rail);
    }
    if (topology.levels.back().kind == LevelKind::kTree) {
      EXPECT_EQ(found.size(), static_cast<std::size_t>(topology.num_servers()) - 1);
    } else {
      EXPECT_EQ(found, expected) << "server " << port.server << " rail " << port.rail;
    }
  }
}

TEST_P(EveryTopology, ASubnetIsASegmentAndNoAddressIsGivenTwice) {
  const Wiring wiring = wiring_of(GetParam());
  std::set<std::string> ips, macs, taps;
  std::map<std::string, std::int64_t> segment_of;
  for (const Port& port : wiring.ports) {
    EXPECT_TRUE(ips.insert(port.ip).second) << port.ip;
    EXPECT_TRUE(macs.insert(port.mac).second) << port.mac;
    EXPECT_TRUE(taps.insert(port.tap).second) << port.tap;
    EXPECT_LT(port.tap.size(), 16u) << "longer than the kernel lets an interface's name be";
    const std::string subnet = port.ip.substr(0, port.ip.rfind('.'));
    EXPECT_EQ(segment_of.emplace(subnet, port.segment).first->second, port.segment);
  }
}

TEST_P(EveryTopology, FixedTablesLeadFromEveryServerToEveryOther) {
  const Wiring wiring = wiring_of(GetParam());
  for (const Port& from : wiring.ports) {
    for (const Port& to : wiring.ports) {
      if (from.segment != to.segment || from.server == to.server) continue;
      if (!wiring.fixed[static_cast<std::size_t>(from.segment)]) continue;
      EXPECT_EQ(follow(wiring, from, to.mac), to.tap) << from.tap;
    }
  }
}

TEST(Wiring, AFatTreeUsesAllItsCables) {
  const Wiring wiring = wiring_of("fattree:4");
  std::set<std::string> used;
  for (const Forwarding& entry : wiring.tables) used.insert(entry.interface);
  for (const Trunk& trunk : wiring.trunks) {
    EXPECT_TRUE(used.contains(trunk.a_end)) << trunk.a_end;
    EXPECT_TRUE(used.contains(trunk.b_end)) << trunk.b_end;
  }
}

TEST(Wiring, SwitchesWithoutTrunksLearnByThemselves) {
  const Wiring wiring = wiring_of("bcube:3,1");
  EXPECT_TRUE(wiring.tables.empty());
  EXPECT_EQ(wiring.bridges.size(), 6u);
  EXPECT_EQ(port_at(wiring, 4, 0).segment, port_at(wiring, 3, 0).segment);
  EXPECT_EQ(port_at(wiring, 4, 1).segment, port_at(wiring, 1, 1).segment);
  EXPECT_NE(port_at(wiring, 4, 0).segment, port_at(wiring, 4, 1).segment);
}

TEST(Wiring, MoreServersThanAddressesAreRefused) {
  const auto wiring = wire(parse_topology("switch:300"));
  ASSERT_FALSE(wiring.has_value());
  EXPECT_EQ(wiring.error().code, Code::kUnsupported);
  EXPECT_THAT(wiring.error().message, testing::HasSubstr("300 servers"));
}

TEST(SharedDevices, RailsThatTalkToOneAnotherShareADeviceInOneGuest) {
  EXPECT_THAT(shared_devices(parse_topology("bcube:3,1")), ElementsAre(0, 1));
  EXPECT_THAT(shared_devices(parse_topology("rail:4,3")), ElementsAre(0, 1, 2));
  EXPECT_THAT(shared_devices(parse_topology("torus:4x4")), ElementsAre(0, 0, 1, 1));
}

}  // namespace
}  // namespace hips::lab
