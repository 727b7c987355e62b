#include "lib/comm/setup/wiring.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "topology/discover/segments.hpp"
#include "topology/formats/parse.hpp"

namespace hips::comm {
namespace {

using testing::ElementsAre;

constexpr double kGigabit = 1e9 / 8;

NicInfo nic(std::string name, std::string address, std::string subnet, double gigabits = 25) {
  return {.name = name,
          .address = std::move(address),
          .subnet = std::move(subnet),
          .device = name,
          .bandwidth_bytes_per_s = gigabits * kGigabit,
          .mtu = 9000};
}

NicInfo named_by_node(NicInfo nic) {
  nic.named_by_node = true;
  return nic;
}

/// Processes, `ranks` on each node in order; nics_of(node) are the interfaces of a node.
std::vector<ProcessInfo> processes_of(std::size_t nodes, std::size_t ranks,
                                      const std::function<std::vector<NicInfo>(std::size_t)>& nics_of) {
  std::vector<ProcessInfo> processes;
  for (std::size_t node = 0; node < nodes; ++node) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      ProcessInfo& process = processes.emplace_back();
      process.uid = ProcessUid::random();
      process.host = process.node_key = fmt::format("node{}", node);
      process.socket_nics = nics_of(node);
    }
  }
  return processes;
}

/// The NICs of a server of a topology: NIC k leads to the subnet of its segment.
std::function<std::vector<NicInfo>(std::size_t)> wired_as(const std::string& spec) {
  const topology::Segments segments = topology::segments_of(topology::parse(spec).value());
  return [segments](std::size_t node) {
    std::vector<NicInfo> nics;
    for (std::size_t k = 0; k < segments.of[node].size(); ++k) {
      const std::int32_t segment = segments.of[node][k];
      nics.push_back(
          nic(fmt::format("nic{}", k), fmt::format("10.{}.{}.{}", segment, k, node + 1),
              segment < 0 ? fmt::format("10.9{}.{}.0/24", k, node) : fmt::format("10.{}.0.0/16", segment)));
    }
    return nics;
  };
}

std::string spec_of(const std::vector<ProcessInfo>& processes) {
  const auto wiring = wiring_of("auto", processes);
  return wiring ? wiring->topology.spec : "none";
}

TEST(Wiring, families_are_recognised_with_one_and_with_several_ranks_on_a_node) {
  for (const std::string spec : {"bcube:3,1", "bcube:2,2", "bcube:2x4", "rail:9,2", "rail:4,8", "switch:5",
                                 "torus:3x3", "torus:4x3", "mesh:3x4"}) {
    const auto nodes = static_cast<std::size_t>(topology::parse(spec)->num_servers());
    EXPECT_EQ(spec_of(processes_of(nodes, 1, wired_as(spec))), spec);
    EXPECT_EQ(spec_of(processes_of(nodes, 3, wired_as(spec))), spec + "/3");
  }
}

TEST(Wiring, a_network_that_all_nodes_share_beside_a_BCube_is_not_used) {
  const auto wired = wired_as("bcube:3,1");
  const auto wiring = wiring_of(
      "auto", processes_of(9, 1, [&](std::size_t node) {
        auto nics = wired(node);
        nics.insert(nics.begin(),
                    named_by_node(nic("mgmt", fmt::format("10.99.0.{}", node + 1), "10.99.0.0/24")));
        return nics;
      }));
  ASSERT_TRUE(wiring);
  EXPECT_EQ(wiring->topology.spec, "bcube:3,1");
  EXPECT_THAT(wiring->nics[4], ElementsAre(1, 2));
}

TEST(Wiring, the_network_of_the_nodes_names_is_a_rail_only_where_it_is_needed) {
  const auto processes_with = [](double named_rate, std::size_t others, std::int32_t named_mtu = 9000) {
    return processes_of(4, 1, [=](std::size_t node) {
      std::vector<NicInfo> nics{
          named_by_node(nic("eth0", fmt::format("10.9.0.{}", node + 1), "10.9.0.0/24", named_rate))};
      nics[0].mtu = named_mtu;
      for (std::size_t k = 0; k < others; ++k)
        nics.push_back(nic(fmt::format("eth{}", k + 1), fmt::format("10.{}.0.{}", k, node + 1),
                           fmt::format("10.{}.0.0/24", k)));
      return nics;
    });
  };
  EXPECT_EQ(spec_of(processes_with(25, 2)), "rail:4,2");
  EXPECT_THAT(wiring_of("auto", processes_with(25, 2))->nics[0], ElementsAre(1, 2));
  EXPECT_EQ(spec_of(processes_with(25, 1)), "rail:4,2") << "two equal NICs";
  EXPECT_EQ(spec_of(processes_with(25, 1, 1500)), "switch:4") << "small packets";
  EXPECT_EQ(spec_of(processes_with(1, 1)), "switch:4");
  EXPECT_THAT(wiring_of("auto", processes_with(1, 1))->nics[3], ElementsAre(1));
  EXPECT_EQ(spec_of(processes_with(25, 0)), "switch:4");
}

TEST(Wiring, rails_share_equally_so_a_slow_one_is_left_out) {
  const auto rates = [](std::vector<double> gigabits) {
    return spec_of(processes_of(3, 1, [&](std::size_t node) {
      std::vector<NicInfo> nics;
      for (std::size_t k = 0; k < gigabits.size(); ++k)
        nics.push_back(nic(fmt::format("eth{}", k), fmt::format("10.{}.0.{}", k, node + 1),
                           fmt::format("10.{}.0.0/24", k), gigabits[k]));
      return nics;
    }));
  };
  EXPECT_EQ(rates({100, 100, 1}), "rail:3,2");
  EXPECT_EQ(rates({100, 60}), "rail:3,2");
  EXPECT_EQ(rates({100, 40}), "switch:3");
  EXPECT_EQ(rates({0, 0}), "rail:3,2") << "all unknown, as in virtual machines";
  EXPECT_EQ(rates({25, 0}), "switch:3") << "a tunnel has no rate";
}

TEST(Wiring, bridges_inside_nodes_and_VLANs_of_one_NIC_are_no_rails) {
  const auto wiring =
      wiring_of("auto", processes_of(3, 2, [](std::size_t node) {
                  std::vector<NicInfo> nics{
                      nic("br0", "172.17.0.1", "172.17.0.0/16"),
                      nic("cni0", fmt::format("10.244.{}.1", node), fmt::format("10.244.{}.0/24", node)),
                      nic("eth0", fmt::format("10.0.0.{}", node + 1), "10.0.0.0/24"),
                      nic("eth0.7", fmt::format("10.7.0.{}", node + 1), "10.7.0.0/24")};
                  nics[3].device = "eth0";
                  return nics;
                }));
  ASSERT_TRUE(wiring);
  EXPECT_EQ(wiring->topology.spec, "switch:3/2");
  EXPECT_THAT(wiring->nics[5], ElementsAre(2));
}

TEST(Wiring, NICs_may_have_other_numbers_on_each_node) {
  const auto wiring =
      wiring_of("auto", processes_of(2, 1, [](std::size_t node) {
                  std::vector<NicInfo> nics{nic("a", fmt::format("10.0.0.{}", node + 1), "10.0.0.0/24"),
                                            nic("b", fmt::format("10.1.0.{}", node + 1), "10.1.0.0/24")};
                  if (node == 1) std::swap(nics[0], nics[1]);
                  if (node == 1) nics.insert(nics.begin(), nic("c", "192.168.0.1", "192.168.0.0/24"));
                  return nics;
                }));
  ASSERT_TRUE(wiring);
  EXPECT_EQ(wiring->topology.spec, "rail:2,2");
  EXPECT_THAT(wiring->nics[0], ElementsAre(0, 1));
  EXPECT_THAT(wiring->nics[1], ElementsAre(2, 1));
}

TEST(Wiring, ranks_out_of_order_get_rails_but_no_BCube) {
  auto rack = processes_of(3, 2, wired_as("rail:3,2"));
  std::swap(rack[1], rack[4]);
  auto wiring = wiring_of("auto", rack);
  ASSERT_TRUE(wiring);
  EXPECT_EQ(wiring->topology.spec, "rail:6,2");
  EXPECT_EQ(wiring->nodes.spec, "rail:3,2");
  rack.pop_back();
  EXPECT_EQ(spec_of(rack), "rail:5,2");
  auto cube = processes_of(9, 1, wired_as("bcube:3,1"));
  std::swap(cube[1], cube[5]);
  EXPECT_EQ(spec_of(cube), "none");
}

TEST(Wiring, a_part_of_a_BCube_is_recognised_for_some_of_its_ranks) {
  auto processes = processes_of(9, 1, wired_as("bcube:3,1"));
  const std::vector<ProcessInfo> row(processes.begin() + 3, processes.begin() + 6);
  EXPECT_EQ(spec_of(row), "switch:3");
  processes.erase(processes.begin() + 7);
  EXPECT_EQ(spec_of(processes), "bcube:3,1[0-6,8]");
}

TEST(Wiring, one_node_and_nodes_without_a_common_network_have_none) {
  EXPECT_EQ(spec_of(processes_of(1, 4, wired_as("switch:2"))), "none");
  EXPECT_EQ(spec_of(processes_of(3, 1,
                                 [](std::size_t node) {
                                   return std::vector<NicInfo>{nic("eth0", fmt::format("10.{}.0.1", node),
                                                                   fmt::format("10.{}.0.0/24", node))};
                                 })),
            "none");
  EXPECT_EQ(spec_of(processes_of(2, 1, [](std::size_t) { return std::vector<NicInfo>(); })), "none");
}

}  // namespace
}  // namespace hips::comm
