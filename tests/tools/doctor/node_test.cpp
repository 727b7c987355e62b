#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/doctor/fake_tree.hpp"
#include "tools/doctor/judge.hpp"
#include "tools/doctor/report.hpp"

namespace hips::doctor {
namespace {

using test::FakeTree;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// The doctor's facts and findings for a tree.
struct Visit {
  NodeFacts node;
  RailChoice rails;
  Findings findings;
};

Visit visit(const FakeTree& tree, const Environment& environment = {}) {
  Visit visit;
  const LoadedConfig loaded = load_config(environment);
  visit.node = inspect_node(tree.tree());
  visit.rails = choose_rails(visit.node, loaded.config.rdma);
  visit.findings = judge_node(visit.node, loaded, visit.rails);
  for (const DoctorFinding& finding : visit.findings) {
    if (finding.level >= FindingLevel::kWarning) {
      EXPECT_NE(finding.fix, "") << finding.text;
    }
  }
  return visit;
}

auto finds(FindingLevel level, const std::string& where, const std::string& text, const std::string& fix) {
  return Contains(::testing::AllOf(::testing::Field(&DoctorFinding::level, level),
                                   ::testing::Field(&DoctorFinding::where, where),
                                   ::testing::Field(&DoctorFinding::text, HasSubstr(text)),
                                   ::testing::Field(&DoctorFinding::fix, HasSubstr(fix))));
}

std::vector<std::string> wheres(const Findings& findings, FindingLevel level) {
  std::vector<std::string> names;
  for (const DoctorFinding& finding : findings)
    if (finding.level == level) names.push_back(finding.where);
  return names;
}

TEST(Doctor, ReadsANicAndUsesItsRoceV2AddressOverIpv4) {
  FakeTree tree;
  tree.mlx5().process("unlimited", "65536");
  const Visit seen = visit(tree);
  ASSERT_EQ(seen.node.devices.size(), 2u);
  const Device& device = seen.node.devices[0];
  EXPECT_EQ(device.driver, "mlx5_core");
  EXPECT_EQ(device.firmware, "20.31.1014");
  EXPECT_EQ(device.model, "MT4123");
  EXPECT_FALSE(device.software);
  const DevicePort& port = device.ports.at(0);
  EXPECT_TRUE(port.active());
  EXPECT_EQ(port.netdev.name, "eth0");
  EXPECT_EQ(port.netdev.mtu, 9000);
  EXPECT_EQ(port.gids.size(), 4u);
  EXPECT_FALSE(port.counters.contains("lifespan"));
  ASSERT_EQ(seen.rails.by_rail.size(), 1u);
  const PortUse& use = seen.rails.ports[seen.rails.by_rail[0]];
  EXPECT_EQ(use.name, "mlx5_0:1");
  EXPECT_EQ(use.gid->gid.to_string(), "RoCE v2 10.0.0.1 at index 3");
  EXPECT_EQ(transports_text(seen.node, {}, seen.rails), "shm inside a node, verbs (mlx5_0:1) between nodes");
  Config config;
  config.transport = "tcp";
  EXPECT_EQ(transports_text(seen.node, config, seen.rails), "tcp for all ranks");
  EXPECT_FALSE(any_error(seen.findings));
}

TEST(Doctor, APortThatIsDownIsAWarningAndAnErrorIfItIsNamed) {
  FakeTree tree;
  tree.mlx5().process("unlimited");
  EXPECT_THAT(visit(tree).findings, finds(FindingLevel::kWarning, "mlx5_1:1", "the port is DOWN (Disabled)",
                                          "ip link set eth1 up"));
  const Visit named = visit(tree, {{"HIPS_IB_HCA", "mlx5_1:1"}});
  EXPECT_THAT(named.findings,
              finds(FindingLevel::kError, "mlx5_1:1", "HIPS_IB_HCA names it", "ip link set eth1 up"));
  EXPECT_THAT(named.findings, finds(FindingLevel::kNote, "mlx5_0:1", "excludes it", ""));
  EXPECT_THAT(named.rails.by_rail, IsEmpty());
  EXPECT_THAT(named.rails.problem.message, HasSubstr("mlx5_1:1 is DOWN"));
}

TEST(Doctor, APortThatIsDownIsNoErrorWhereAnotherIsUsedOrNoneIsWanted) {
  FakeTree tree;
  tree.mlx5().process("unlimited");
  // The name of both, of which one is active.
  const Visit both = visit(tree, {{"HIPS_IB_HCA", "mlx5"}});
  EXPECT_FALSE(both.rails.by_rail.empty());
  EXPECT_THAT(both.findings,
              finds(FindingLevel::kWarning, "mlx5_1:1", "HiPS does not use it", "ip link set eth1 up"));
  EXPECT_FALSE(any_error(both.findings));
  EXPECT_THAT(visit(tree, {{"HIPS_IB_HCA", "^mlx5_1"}}).findings,
              finds(FindingLevel::kNote, "mlx5_1:1", "excludes it", ""));
  EXPECT_FALSE(any_error(visit(tree, {{"HIPS_IB_HCA", "mlx5_1:1"}, {"HIPS_TRANSPORT", "tcp"}}).findings));
}

TEST(Doctor, InvalidChoicesOfPortsAndAddressesAreErrors) {
  FakeTree tree;
  tree.rxe("rxe0", "nic0", 9000).process("unlimited");
  EXPECT_THAT(
      visit(tree, {{"HIPS_IB_HCA", "mlx5"}}).findings,
      finds(FindingLevel::kError, "devices", "matches no port; this node has rxe0:1", "unset HIPS_IB_HCA"));
  EXPECT_THAT(visit(tree, {{"HIPS_IB_GID_INDEX", "7"}}).findings,
              finds(FindingLevel::kError, "rxe0:1",
                    "no GID at HIPS_IB_GID_INDEX=7, but RoCE v2 fe80::", "unset HIPS_IB_GID_INDEX"));
  EXPECT_THAT(visit(tree, {{"HIPS_IB_GID_INDEX", "0"}}).findings,
              finds(FindingLevel::kWarning, "rxe0:1", "is link-local", "unset HIPS_IB_GID_INDEX"));
  EXPECT_THAT(
      visit(tree, {{"HIPS_IB_GID_INDEX", "x"}, {"HIPS_IB_HCAS", "y"}}).findings,
      ::testing::AllOf(
          finds(FindingLevel::kError, "environment", "HIPS_IB_GID_INDEX=\"x\"", "unset HIPS_IB_GID_INDEX"),
          finds(FindingLevel::kWarning, "environment", "did you mean", "unset HIPS_IB_HCAS")));
}

TEST(Doctor, KnowsTheRestrictionsOfSoftRoce) {
  FakeTree tree;
  tree.rxe("rxe0", "nic0", 1500).rxe("rxe1", "nic1", 9000, false).process("unlimited");
  const Visit seen = visit(tree);
  EXPECT_EQ(seen.node.devices[0].driver, "rdma_rxe");
  EXPECT_TRUE(seen.node.devices[0].software);
  EXPECT_THAT(seen.findings,
              finds(FindingLevel::kWarning, "rxe0:1", "nic0 has MTU 1500", "ip link set nic0 mtu 9000"));
  EXPECT_THAT(seen.findings,
              finds(FindingLevel::kWarning, "rxe1:1", "link-local", "ip addr add 10.0.0.1/24 dev nic1"));
  EXPECT_THAT(seen.findings, finds(FindingLevel::kNote, "rxe0, rxe1", "do not reach each other", ""));
  EXPECT_FALSE(any_error(seen.findings));
}

TEST(Doctor, DevicesThatCannotBeOpenedAreNotUsed) {
  FakeTree tree;
  tree.rxe("rxe0", "nic0", 9000).rxe("rxe1", "nic1", 9000).process("unlimited");
  NodeFacts node = visit(tree).node;
  node.devices[0].problem = "verbs: cannot open rxe0; check the permissions of /dev/infiniband";
  RailChoice rails = choose_rails(node, RdmaConfig());
  EXPECT_THAT(rails.by_rail, ::testing::SizeIs(1));
  EXPECT_EQ(rails.ports[0].why_not, "it cannot be opened");
  EXPECT_THAT(judge_devices(node, Config(), rails), finds(FindingLevel::kError, "devices", "cannot open rxe0",
                                                          "chmod 666 /dev/infiniband/uverbs*"));
  node.devices[1].problem = "verbs: cannot open rxe1; check the permissions of /dev/infiniband";
  rails = choose_rails(node, RdmaConfig());
  EXPECT_TRUE(rails.by_rail.empty());
  EXPECT_THAT(rails.problem.message, ::testing::HasSubstr("cannot open rxe0"));
  const Findings findings = judge_devices(node, Config(), rails);
  EXPECT_THAT(findings, finds(FindingLevel::kError, "devices", "cannot open rxe1", ""));
  EXPECT_EQ(std::ranges::count(findings, FindingLevel::kError, &DoctorFinding::level), 2);
}

TEST(Doctor, WithoutADeviceReportsWhatStillWorksAndHowToMakeOne) {
  FakeTree tree;
  tree.interface("eth0", 1500).process("65536");
  const Visit seen = visit(tree);
  EXPECT_THAT(seen.findings, finds(FindingLevel::kWarning, "devices", "ranks of this node use shared memory",
                                   "rdma link add rxe0 type rxe netdev eth0"));
  // Without a device a low limit does not matter.
  EXPECT_THAT(seen.findings, finds(FindingLevel::kNote, "locked memory", "64 KiB", ""));
  EXPECT_FALSE(any_error(seen.findings));
  EXPECT_THAT(visit(tree, {{"HIPS_TRANSPORT", "verbs"}}).findings,
              finds(FindingLevel::kError, "devices", "no RDMA device", "modprobe rdma_rxe"));
}

TEST(Doctor, ALowLimitOfLockedMemoryIsAnErrorUnlessItDoesNotApply) {
  const auto levels = [](const std::string& locked, const std::string& capabilities) {
    FakeTree tree;
    tree.mlx5().process(locked, "65536", capabilities);
    for (const DoctorFinding& finding : visit(tree).findings)
      if (finding.where == "locked memory") return finding.level;
    return FindingLevel::kNote;
  };
  EXPECT_EQ(levels("65536", "0000000000000000"), FindingLevel::kError);
  EXPECT_EQ(levels("67108864", "0000000000000000"), FindingLevel::kWarning);
  EXPECT_EQ(levels("4294967296", "0000000000000000"), FindingLevel::kOk);
  EXPECT_EQ(levels("unlimited", "0000000000000000"), FindingLevel::kOk);
  EXPECT_EQ(levels("65536", "000001ffffffffff"), FindingLevel::kOk);
}

TEST(Doctor, CountersOfPfcAndEcnAreReportedAndLossIsAWarning) {
  FakeTree tree;
  tree.mlx5().process("unlimited");
  EXPECT_THAT(wheres(visit(tree).findings, FindingLevel::kWarning), Not(Contains("mlx5_0:1")));

  tree.mlx5_counter("out_of_sequence", 5000).mlx5_counter("duplicate_request", 3);
  tree.mlx5_counter("np_ecn_marked_roce_packets", 70).mlx5_counter("np_cnp_sent", 60);
  tree.write("sys/class/net/eth0/statistics/rx_prio3_pause", "12");
  tree.write("sys/class/net/eth0/statistics/tx_prio3_pause", "0");
  const Findings lossy = visit(tree).findings;
  EXPECT_THAT(lossy,
              finds(FindingLevel::kWarning, "mlx5_0:1",
                    "out_of_sequence 5000, duplicate_request 3 of 1000000 packets", "mlnx_qos -i eth0"));
  EXPECT_THAT(lossy, finds(FindingLevel::kNote, "mlx5_0:1",
                           "ECN works: 70 marked packets received, 60 notifications sent, 0 handled", ""));
  EXPECT_THAT(lossy,
              finds(FindingLevel::kNote, "mlx5_0:1", "PFC works and has paused: rx_prio3_pause 12", ""));

  // Marks of which no sender is notified.
  tree.mlx5_counter("np_cnp_sent", 0);
  EXPECT_THAT(visit(tree).findings,
              finds(FindingLevel::kWarning, "mlx5_0:1", "no sender was notified", "roce_np/enable"));
  // Pauses of the whole link.
  tree.write("sys/class/net/eth0/statistics/rx_prio3_pause", "0");
  tree.write("sys/class/net/eth0/statistics/rx_pause_ctrl_phy", "9");
  EXPECT_THAT(visit(tree).findings,
              finds(FindingLevel::kWarning, "mlx5_0:1", "rx_pause_ctrl_phy 9", "ethtool -A eth0"));
  tree.write("sys/class/net/eth0/statistics/rx_crc_errors", "2");
  EXPECT_THAT(visit(tree).findings,
              finds(FindingLevel::kWarning, "mlx5_0:1", "rx_crc_errors 2", "ethtool -m eth0"));
}

TEST(Doctor, TheFixForLossSuitsTheNic) {
  const auto lossy = [](const std::string& driver, const std::string& interface_name) {
    FakeTree tree;
    tree.nic("nic_0", driver, interface_name).process("unlimited");
    for (const auto& [name, value] :
         {std::pair("hw_counters/out_of_sequence", "5000"), std::pair("counters/port_rcv_packets", "1000000"),
          std::pair("counters/link_downed", "3")})
      tree.write(fmt::format("sys/class/infiniband/nic_0/ports/1/{}", name), value);
    return visit(tree).findings;
  };
  EXPECT_THAT(lossy("mlx5_core", "eth0"),
              finds(FindingLevel::kWarning, "nic_0:1", "out_of_sequence 5000", "mlnx_qos -i eth0"));
  for (const char* driver : {"ice", "bnxt_en"}) {
    const Findings findings = lossy(driver, "eth0");
    EXPECT_THAT(findings, finds(FindingLevel::kWarning, "nic_0:1", "out_of_sequence 5000",
                                "dcb pfc set dev eth0 prio-pfc all:off 3:on"));
    EXPECT_THAT(findings, finds(FindingLevel::kNote, "nic_0:1", "went down", "dmesg | grep eth0"));
  }
  EXPECT_THAT(lossy("ice", "eth0"), finds(FindingLevel::kWarning, "nic_0:1", "",
                                          "ethtool --set-priv-flags eth0 fw-lldp-agent off"));

  // InfiniBand has neither PFC nor an interface, and loses packets only on bad links.
  const Findings findings = lossy("mlx5_core", "");
  EXPECT_THAT(findings, finds(FindingLevel::kWarning, "nic_0:1", "out_of_sequence 5000", "ibqueryerrors"));
  EXPECT_THAT(findings,
              finds(FindingLevel::kNote, "nic_0:1", "went down", "ibstat nic_0 1; dmesg | grep mlx5_core"));
  for (const DoctorFinding& finding : findings)
    EXPECT_THAT(finding.fix, ::testing::AllOf(Not(HasSubstr("pfc")), Not(HasSubstr("HIPS_IB_TC"))));
}

TEST(Doctor, AProcessFarFromItsNicIsAWarning) {
  FakeTree tree;
  tree.mlx5().process("unlimited", "1024", "0000000000000000", "0-7");
  EXPECT_THAT(visit(tree).findings,
              finds(FindingLevel::kWarning, "mlx5_0:1", "runs on CPUs 0-7, but the NIC is local to 16-31",
                    "--cpunodebind=1"));
}

TEST(Doctor, ListsOfCpusAreCountedAndCompared) {
  EXPECT_EQ(count_cpus("0-3,8"), 5);
  EXPECT_EQ(count_cpus(""), 0);
  EXPECT_EQ(count_cpus("x,5-2,7"), 1);
  EXPECT_TRUE(share_cpus("0-3,8", "8-9"));
  EXPECT_FALSE(share_cpus("0-3", "4-9,12"));
}

TEST(Doctor, MalformedFilesAreNoError) {
  FakeTree tree;
  tree.rxe("rxe0", "nic0", 9000).process("unlimited");
  tree.write("sys/class/infiniband/rxe0/ports/1/gids/1", "not a gid")
      .write("sys/class/infiniband/rxe0/ports/1/state", "");
  tree.write("sys/class/infiniband/odd/ports/x/state", "4: ACTIVE")
      .write("proc/self/limits", "Max locked memory");
  const Visit seen = visit(tree);
  EXPECT_EQ(seen.node.devices.size(), 2u);
  EXPECT_THAT(seen.rails.by_rail, IsEmpty());
}

TEST(Doctor, TheReportListsDevicesAddressesAndFixesWorstFirst) {
  FakeTree tree;
  tree.mlx5().process("65536");
  const Visit seen = visit(tree);
  const std::string text = node_text(seen.node, seen.rails, "shm");
  EXPECT_THAT(text, HasSubstr("  mlx5_0  mlx5_core, MT4123, firmware 20.31.1014, NUMA node 1\n"));
  EXPECT_THAT(
      text, HasSubstr("port 1  ACTIVE, Ethernet, 100 Gb/sec (4X EDR), on eth0 (up, MTU 9000)  <- rail 0\n"));
  EXPECT_THAT(text, HasSubstr("GID RoCE v2 10.0.0.1 at index 3  <- used: the best of 4\n"));
  EXPECT_THAT(text, HasSubstr("(not used: it is DOWN)"));
  const std::string findings = findings_text(seen.findings);
  EXPECT_LT(findings.find("  error    locked memory"), findings.find("  warning  mlx5_1:1"));
  EXPECT_THAT(findings, HasSubstr("           fix: echo '* - memlock unlimited'"));
  EXPECT_THAT(findings, HasSubstr("1 error, "));
  const auto json = node_json(seen.node, seen.rails, "shm");
  EXPECT_EQ(json["devices"][0]["ports"][0]["gids"][3]["taken"], true);
  EXPECT_EQ(json["devices"][0]["ports"][0]["gids"][3]["type"], "RoCE v2");
  EXPECT_EQ(json["limits"]["locked_bytes"], 65536);
}

}  // namespace
}  // namespace hips::doctor
