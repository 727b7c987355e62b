#include "tools/discover/server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tools/discover/hwloc_tree.hpp"

namespace hips::discover {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kTwoSockets = HIPS_SOURCE_ROOT "/tests/tools/discover/two_sockets.xml";

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

const ServerNic& nic_of(const Server& server, const std::string& name) {
  for (const ServerNic& nic : server.nics)
    if (nic.name() == name) return nic;
  throw std::out_of_range(name);
}

TEST(Discovery, ReadsAServerFromAnHwlocFile) {
  const Server server = value_or_throw(read_server(kTwoSockets));
  EXPECT_EQ(server.host, "node7");
  EXPECT_EQ(server.num_packages, 2);
  ASSERT_EQ(server.numa.size(), 2U);
  EXPECT_EQ(server.numa[1].cpus, "8-15");
  EXPECT_EQ(server.numa[1].num_cores, 4);
  EXPECT_EQ(server.numa[1].memory_bytes, std::uint64_t{64} << 30U);
  // An RDMA device and the interface of its PCI function are one NIC.
  EXPECT_EQ(server.nics.size(), 7U);
  const ServerNic& nic = nic_of(server, "mlx5_5");
  EXPECT_EQ(nic.interface, "eth7");
  EXPECT_EQ(nic.location.pci, "0000:81:00.0");
  EXPECT_THAT(nic.location.numa, ElementsAre(1));
  EXPECT_NEAR(nic.location.pcie_bytes_per_s, 15.75e9, 0.01e9);
}

TEST(Discovery, ComputesTheDistanceBetweenNics) {
  const Server server = value_or_throw(read_server(kTwoSockets));
  const auto between = [&](const char* a, const char* b) {
    const Distance there = distance(nic_of(server, a), nic_of(server, b));
    EXPECT_EQ(there, distance(nic_of(server, b), nic_of(server, a)));
    return there;
  };
  EXPECT_EQ(between("mlx5_0", "mlx5_0"), Distance::kSelf);
  EXPECT_EQ(between("mlx5_0", "mlx5_1"), Distance::kPix);  // two ports of one PCIe switch
  EXPECT_EQ(between("mlx5_3", "mlx5_4"), Distance::kPix);  // two functions of one card
  EXPECT_EQ(between("mlx5_0", "mlx5_2"), Distance::kPxb);  // a switch below the switch
  EXPECT_EQ(between("mlx5_0", "mlx5_3"), Distance::kPhb);  // two root ports
  EXPECT_EQ(between("mlx5_0", "eth0"), Distance::kNode);   // two host bridges of a socket
  EXPECT_EQ(between("mlx5_0", "mlx5_5"), Distance::kSys);  // two sockets
  EXPECT_EQ(distance(nic_of(server, "mlx5_5"), server.numa[0]), Distance::kSys);
  EXPECT_EQ(distance(nic_of(server, "mlx5_5"), server.numa[1]), Distance::kNode);
  ServerNic bridge;
  bridge.interface = "br0";
  EXPECT_EQ(distance(bridge, nic_of(server, "mlx5_0")), Distance::kUnknown);
}

TEST(Discovery, RejectsFilesThatAreNotHwlocXml) {
  const std::string whole = text_of(kTwoSockets);
  ASSERT_GT(whole.size(), 5000U);
  const auto error_of = [](const std::string& text) {
    const auto read = HwlocTree::of_xml("node.xml", text);
    return read ? std::string() : read.error().message;
  };
  EXPECT_THAT(error_of(whole), IsEmpty());
  EXPECT_THAT(error_of(""), HasSubstr("node.xml is not an XML file of hwloc"));
  EXPECT_THAT(error_of("\x7f"
                       "ELF"),
              HasSubstr("is not an XML file of hwloc"));
  EXPECT_THAT(error_of(whole.substr(0, 5000)),
              AllOf(HasSubstr("is malformed or truncated XML"), HasSubstr("lstopo FILE.xml")));
  EXPECT_THAT(error_of(R"(<?xml version="1.0"?><topology version="2.0"></topology>)"),
              HasSubstr("not a description that hwloc can read"));
  std::string deep = "<topology>";
  for (int i = 0; i < 100'000; ++i) deep += "<object type=\"Group\">";
  EXPECT_THAT(error_of(deep), HasSubstr("nested more than 200 levels deep"));
  EXPECT_THAT(read_server("/no/such.xml").error().message,
              HasSubstr("--hwloc: \"/no/such.xml\" cannot be read"));
}

TEST(Discovery, ReadsRatesOfPorts) {
  EXPECT_EQ(port_rate("100 Gb/sec (4X EDR)"), 12.5e9);
  EXPECT_EQ(port_rate("2.5 Gb/sec (1X SDR)"), 0.3125e9);
  EXPECT_EQ(port_rate("?"), 0);
  EXPECT_EQ(port_rate("-1 Gb/sec"), 0);
}

TEST(Discovery, DescribesThisMachine) {
  doctor::NodeFacts node;
  node.name = "here";
  doctor::Device device;
  device.name = "rxe0";
  device.software = true;
  device.ports.emplace_back().netdev.name = "lo";
  node.devices.push_back(device);
  const Server server = value_or_throw(inspect_server(node));
  EXPECT_GT(server.num_cpus, 0);
  EXPECT_EQ(nic_of(server, "rxe0").interface, "lo");
  EXPECT_THAT(server_text(server), HasSubstr("rxe0"));
}

}  // namespace
}  // namespace hips::discover
