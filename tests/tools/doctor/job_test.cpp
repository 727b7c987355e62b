#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include <fmt/format.h>

#include "tools/doctor/job.hpp"
#include "tools/hips/job/meeting.hpp"

namespace hips::doctor {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Ranks on separate nodes with `num_rails` equal NICs each.
std::vector<RankReport> job(Rank size, int num_rails) {
  std::vector<RankReport> reports;
  for (Rank rank = 0; rank < size; ++rank) {
    RankReport report;
    report.rank = rank;
    report.host = report.node_key = "node" + std::to_string(rank);
    report.version = "1.0";
    report.transport = "auto";
    report.cpus = "0-7";
    report.num_online_cpus = 8;
    for (int rail = 0; rail < num_rails; ++rail) {
      const std::string digits = std::to_string(rail);
      report.rails.push_back({.name = "mlx5_" + digits + ":1",
                              .address = "10.0." + digits + "." + std::to_string(rank + 1),
                              .kind = "RoCE v2",
                              .interface = "eth" + digits,
                              .mtu = 4096});
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

void put_on_one_node(std::vector<RankReport>& reports) {
  for (RankReport& report : reports) report.host = report.node_key = "node0";
}

/// The trials of both ends; `works` tells whether a path works.
template <typename Works>
std::vector<Trial> trials(const std::vector<ProbePath>& paths, Works&& works) {
  std::vector<Trial> all;
  for (const ProbePath& path : paths) {
    for (const Rank from : {path.a, path.b}) {
      const bool ok = works(path);
      all.push_back({.path = path,
                     .from = from,
                     .rtt_us = 2.5,
                     .small_ok = ok,
                     .large_ok = ok,
                     .error = ok ? "" : "no answer"});
    }
  }
  return all;
}

auto finds_between(FindingLevel level, const std::string& where, const std::string& text,
                   const std::string& fix) {
  return Contains(AllOf(Field(&DoctorFinding::level, level), Field(&DoctorFinding::where, HasSubstr(where)),
                        Field(&DoctorFinding::text, HasSubstr(text)),
                        Field(&DoctorFinding::fix, HasSubstr(fix))));
}

TEST(DoctorJob, TriesSharedMemoryInsideANodeAndEqualNicsBetweenNodes) {
  auto reports = job(3, 2);
  reports[1].node_key = reports[0].node_key;
  EXPECT_THAT(paths_to_try(reports, false),
              ElementsAre(ProbePath{0, 1}, ProbePath{0, 2, 0, 0}, ProbePath{0, 2, 1, 1},
                          ProbePath{1, 2, 0, 0}, ProbePath{1, 2, 1, 1}));
  EXPECT_EQ(paths_to_try(reports, true).size(), 1u + 4 + 4);
  for (RankReport& report : reports) report.transport = "verbs";
  EXPECT_EQ(paths_to_try(reports, false).size(), 6u);
  for (RankReport& report : reports) report.transport = "shm";
  EXPECT_THAT(paths_to_try(reports, false), ElementsAre(ProbePath{0, 1}));
}

TEST(DoctorJob, TriesTheNicsThatTheTopologyConnects) {
  auto reports = job(4, 2);
  reports[0].topology = "bcube:2,1";
  // Rail 0 connects 0-1 and 2-3, rail 1 connects 0-2 and 1-3.
  EXPECT_THAT(paths_to_try(reports, false), ElementsAre(ProbePath{0, 1, 0, 0}, ProbePath{0, 2, 1, 1},
                                                        ProbePath{1, 3, 1, 1}, ProbePath{2, 3, 0, 0}));
  // Cables of a ring go from + to -.
  reports[0].topology = "torus:4";
  EXPECT_THAT(paths_to_try(reports, false), Contains(ProbePath{0, 1, 0, 1}));
  // A topology of another size is ignored.
  reports[0].topology = "bcube:3,1";
  EXPECT_EQ(paths_to_try(reports, false).size(), 12u);
}

TEST(DoctorJob, TriesTheSamePathsOnAllRanksIfOneReadsAnotherTopology) {
  auto reports = job(4, 2);
  const auto without = paths_to_try(reports, false);
  for (RankReport& report : reports) {
    report.topology = "bcube:2,1";
    report.wiring = "bcube:2,1#1";
  }
  EXPECT_NE(paths_to_try(reports, false), without);
  reports[3].wiring = "no such file";
  EXPECT_EQ(paths_to_try(reports, false), without);
  EXPECT_THAT(compare_ranks(reports), finds_between(FindingLevel::kError, "rank 3 on node3",
                                                    "HIPS_TOPO: no such file", "mpirun -x HIPS_TOPO"));
}

TEST(DoctorJob, EveryRankHasOnePartnerInARound) {
  for (const Rank size : {2, 3, 5, 8, 33}) {
    const auto paths = paths_to_try(job(size, 2), false);
    const auto rounds = in_rounds(paths, size);
    EXPECT_LE(rounds.size(), static_cast<std::size_t>(2 * size));
    std::size_t count = 0;
    for (const auto& round : rounds) {
      std::set<std::pair<Rank, Rank>> pairs;
      for (const ProbePath& path : round) pairs.insert({path.a, path.b});
      std::set<Rank> ranks;
      for (const auto& [a, b] : pairs) {
        EXPECT_TRUE(ranks.insert(a).second);
        EXPECT_TRUE(ranks.insert(b).second);
      }
      count += round.size();
    }
    EXPECT_EQ(count, paths.size());
  }
}

TEST(DoctorJob, OnlyTheFirstRankOfEachNodeTriesPathsInALargeJob) {
  auto reports = job(40, 1);
  for (RankReport& report : reports) report.node_key = "node" + std::to_string(report.rank / 20);
  const auto paths = paths_to_try(reports, false);
  EXPECT_EQ(paths.size(), 19u + 19 + 1);
  EXPECT_THAT(paths, Contains(ProbePath{0, 20, 0, 0}));
}

TEST(DoctorJob, ReportsAreSerialisedAndParsed) {
  RankReport report = job(1, 2)[0];
  report.locked_bytes = 65536;
  report.findings = {{FindingLevel::kWarning, "here", "text \xff", "fix"},
                     {FindingLevel::kOk, "there", "fine", ""}};
  report.details = {{"host", "node0"}};
  const auto back = decode_report(encode(report));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->rails, report.rails);
  EXPECT_EQ(back->locked_bytes, report.locked_bytes);
  EXPECT_EQ(back->findings.size(), 2u);
  EXPECT_EQ(back->findings[1], report.findings[1]);
  EXPECT_EQ(back->details, report.details);
  for (const char* wrong : {"", "[]", "{}", "{\"rank\":\"x\"}"})
    EXPECT_FALSE(decode_report(wrong).has_value());
}

TEST(DoctorJob, TheMismatchingRankIsNamed) {
  auto reports = job(4, 1);
  EXPECT_THAT(compare_ranks(reports), IsEmpty());
  reports[2].version = "0.9";
  reports[3].rails[0].mtu = 1024;
  reports[1].locked_bytes = 65536;
  reports[1].topology = "bcube:2,1";
  const Findings findings = compare_ranks(reports);
  EXPECT_THAT(findings, finds_between(FindingLevel::kError, "rank 2 on node2",
                                      "version: 0.9, but 3 of 4 ranks have 1.0", "install HiPS 1.0"));
  EXPECT_THAT(findings, finds_between(FindingLevel::kWarning, "rank 3 on node3", "MTU of NIC 0: 1024",
                                      "ip link set eth0 mtu 9000"));
  EXPECT_THAT(findings, finds_between(FindingLevel::kWarning, "rank 1 on node1", "locked memory: 64 KiB",
                                      "ulimit -l unlimited"));
  EXPECT_THAT(findings, finds_between(FindingLevel::kError, "rank 1 on node1", "HIPS_TOPO: bcube:2,1",
                                      "unset HIPS_TOPO"));
}

TEST(DoctorJob, TheRankThatHasLessIsNamedHoweverManyThereAre) {
  auto reports = job(3, 2);
  for (const std::size_t rank : {0U, 1U}) {
    reports[rank].locked_bytes = 8U << 20U;
    reports[rank].rails[0].mtu = 1024;
    reports[rank].rails.pop_back();
  }
  reports[2].rails[0].mtu = 4096;
  const Findings findings = compare_ranks(reports);
  EXPECT_THAT(findings, finds_between(FindingLevel::kWarning, "ranks 0 and 1",
                                      "locked memory: 8 MiB, but 1 of 3 ranks have unlimited", "on node0"));
  EXPECT_THAT(findings, finds_between(FindingLevel::kWarning, "ranks 0 and 1",
                                      "number of NICs: 1, but 1 of 3 ranks have 2", "on node0"));
  EXPECT_THAT(findings, finds_between(FindingLevel::kWarning, "ranks 0 and 1", "MTU of NIC 0: 1024",
                                      "ip link set eth0 mtu 9000, on node0"));
  // Of versions none is better; of two that are equally common, the first rank's counts.
  auto pair = job(2, 1);
  pair[0].version = "1.1";
  EXPECT_THAT(compare_ranks(pair), finds_between(FindingLevel::kError, "rank 1 on node1",
                                                 "but 1 of 2 ranks have 1.1", "install HiPS 1.1 on node1"));
}

TEST(DoctorJob, ATopologyOfAnotherSizeAndTooManyRanksAreReported) {
  auto reports = job(3, 1);
  put_on_one_node(reports);
  for (RankReport& report : reports) {
    report.topology = "bcube:2,1";
    report.num_online_cpus = 2;
  }
  const Findings findings = compare_ranks(reports);
  EXPECT_THAT(findings, finds_between(FindingLevel::kError, "HIPS_TOPO", "has 4 ranks, but 3 were started",
                                      "mpirun -n 4"));
  EXPECT_THAT(findings, finds_between(FindingLevel::kNote, "node0", "3 ranks share 2 CPUs", "ppr:2:node"));
  for (RankReport& report : reports) {
    report.num_online_cpus = 8;
    report.cpus = "0";
  }
  EXPECT_THAT(compare_ranks(reports),
              finds_between(FindingLevel::kWarning, "node0", "bound to CPUs 0", "--bind-to core"));
}

TEST(DoctorJob, ANicThatReachesNoOtherIsOneFinding) {
  const auto reports = job(4, 2);
  const auto paths = paths_to_try(reports, false);
  const auto all = trials(paths, [](const ProbePath& path) { return path.b != 3 || path.b_rail != 1; });
  const Findings findings = judge_reach(reports, all, 0);
  EXPECT_THAT(findings, finds_between(FindingLevel::kError, "rank 3 on node3, mlx5_1:1 (10.0.1.4)",
                                      "reaches no other rank: ranks 0, 1 and 2 tried; no answer",
                                      "on node3: ping -I eth1 10.0.1.1"));
  EXPECT_EQ(std::count_if(findings.begin(), findings.end(),
                          [](const DoctorFinding& one) { return one.level == FindingLevel::kError; }),
            1);
}

TEST(DoctorJob, APathThatLosesLargeMessagesPointsToTheSwitches) {
  const auto reports = job(3, 1);
  auto all = trials(paths_to_try(reports, false), [](const ProbePath&) { return true; });
  EXPECT_THAT(judge_reach(reports, all, 0), ElementsAre(Field(&DoctorFinding::level, FindingLevel::kOk)));
  for (Trial& trial : all)
    if (trial.path == ProbePath{0, 1, 0, 0}) trial.large_ok = false;
  EXPECT_THAT(judge_reach(reports, all, 0),
              finds_between(FindingLevel::kError, "rank 0 on node0", "does not reach rank 1 on node1",
                            "ping -M do -s 4132 -I eth0"));
  EXPECT_THAT(judge_reach(reports, all, 5),
              finds_between(FindingLevel::kWarning, "reach", "no time was left for 5 paths", "--timeout"));
  const std::string text = job_text(reports, all);
  EXPECT_THAT(text, HasSubstr("            0      - small   2.5\n"));
  EXPECT_EQ(trials_json(reports, all).size(), all.size());
  EXPECT_EQ(trials_json(reports, all)[0]["to_nic"], "mlx5_0:1");
}

TEST(DoctorJob, TheFixForAPathWithoutJumboFramesDoesNotNeedThem) {
  auto reports = job(2, 1);
  reports[1].rails[0].mtu = 1024;  // the MTU of the path is the smaller one
  auto all = trials(paths_to_try(reports, false), [](const ProbePath&) { return true; });
  for (Trial& trial : all) trial.large_ok = false;
  const Findings small = judge_reach(reports, all, 0);
  EXPECT_THAT(small, finds_between(FindingLevel::kError, "rank 0 on node0", "does not reach rank 1 on node1",
                                   "ping -M do -s 1472 -I eth0"));
  for (const DoctorFinding& finding : small) EXPECT_THAT(finding.fix, testing::Not(HasSubstr("jumbo")));
  for (RankReport& report : reports) report.rails[0].mtu = 2048;
  EXPECT_THAT(judge_reach(reports, all, 0),
              finds_between(FindingLevel::kError, "rank 0 on node0", "", "ping -M do -s 2084 -I eth0"));
}

TEST(DoctorJob, TheFixForTheMtuNamesOneThatTheInterfaceNeeds) {
  for (const auto& [common, interface_mtu] :
       {std::pair(4096, "9000"), std::pair(2048, "2200"), std::pair(1024, "1500")}) {
    auto reports = job(3, 1);
    for (RankReport& report : reports) report.rails[0].mtu = common;
    reports[2].rails[0].mtu = 512;
    EXPECT_THAT(compare_ranks(reports),
                finds_between(FindingLevel::kWarning, "rank 2 on node2", "MTU of NIC 0: 512",
                              fmt::format("ip link set eth0 mtu {}, on node2", interface_mtu)));
  }
}

TEST(DoctorJob, SoftwareDevicesOfOneNodeHaveAFixOfTheirOwn) {
  auto reports = job(2, 1);
  put_on_one_node(reports);
  for (RankReport& report : reports) {
    report.transport = "verbs";
    report.rails[0].software = true;
    report.rails[0].name = "rxe" + std::to_string(report.rank) + ":1";
  }
  const auto all = trials(paths_to_try(reports, false), [](const ProbePath&) { return false; });
  EXPECT_THAT(judge_reach(reports, all, 0),
              finds_between(FindingLevel::kError, "rank 0", "does not reach", "HIPS_IB_HCA=rxe1:1"));
}

TEST(DoctorJob, ARankWithoutRdmaIsAnErrorOnlyIfRdmaIsRequested) {
  auto reports = job(2, 1);
  reports[1].rails.clear();
  reports[1].no_rails = "no RDMA device";
  reports[1].findings = {{FindingLevel::kWarning, "devices", "there is no RDMA device", "modprobe rdma_rxe"}};
  EXPECT_THAT(judge_reach(reports, {}, 0), finds_between(FindingLevel::kWarning, "rank 1 on node1",
                                                         "only by TCP: no RDMA device", "modprobe rdma_rxe"));
  for (RankReport& report : reports) report.transport = "tcp";
  EXPECT_THAT(judge_reach(reports, {}, 0), IsEmpty());
  EXPECT_THAT(paths_to_try(reports, false), IsEmpty());
  for (RankReport& report : reports) report.transport = "verbs";
  EXPECT_THAT(judge_reach(reports, {}, 0),
              finds_between(FindingLevel::kError, "rank 1 on node1", "no RDMA device", "modprobe rdma_rxe"));
  for (RankReport& report : reports) report.transport = "auto";
  put_on_one_node(reports);
  EXPECT_THAT(judge_reach(reports, {}, 0), IsEmpty());
}

TEST(DoctorJob, FindingsOfAllRanksAreListedOnce) {
  auto reports = job(3, 1);
  for (RankReport& report : reports) report.findings = {{FindingLevel::kWarning, "limits", "small", "raise"}};
  reports[2].findings.push_back({FindingLevel::kError, "eth0", "down", "up"});
  reports[2].findings.push_back({FindingLevel::kNote, "eth0", "a note of another node", ""});
  const Findings merged = merge_findings(reports);
  EXPECT_THAT(merged, ElementsAre(Field(&DoctorFinding::where, "limits"),
                                  Field(&DoctorFinding::where, "rank 2 on node2: eth0")));
}

}  // namespace
}  // namespace hips::doctor

namespace hips::cli {
namespace {

using ::testing::HasSubstr;

Result<Meeting> meeting(const Environment& environment) {
  return find_meeting("doctor", load_config(environment).config, environment,
                      detect_launcher([&](const char* name) -> const char* {
                        for (const auto& [key, value] : environment)
                          if (key == name) return value.c_str();
                        return nullptr;
                      }));
}

TEST(DoctorMeeting, UsesTheFirstMethodThatTellsTheAddressOfRankZero) {
  EXPECT_EQ(meeting({})->how, Meeting::How::kAlone);
  EXPECT_EQ(meeting({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}})->how,
            Meeting::How::kAlone);
  const Environment mpirun{{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "2"}};
  EXPECT_EQ(meeting(mpirun)->how, Meeting::How::kByPmix);
  Environment with_root = mpirun;
  with_root.emplace_back("HIPS_ROOT", "node0:18500");
  const auto at_root = meeting(with_root);
  ASSERT_EQ(at_root->how, Meeting::How::kRendezvous);
  EXPECT_EQ(at_root->rendezvous.rank, 2);
  EXPECT_EQ(at_root->rendezvous.size, 4);
  EXPECT_EQ(at_root->rendezvous.host, "node0");
  const auto given =
      meeting({{"HIPS_RANK", "1"}, {"HIPS_SIZE", "2"}, {"HIPS_ROOT", "a:1"}, {"OMPI_COMM_WORLD_SIZE", "9"}});
  EXPECT_EQ(given->rendezvous.size, 2);
  EXPECT_EQ(meeting({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "7"}})
                ->rendezvous.port,
            8);
}

TEST(DoctorMeeting, UnderSrunRankZeroIsOnTheFirstNodeOfTheStep) {
  const auto step = meeting({{"SLURM_STEP_ID", "3"},
                             {"SLURM_JOB_ID", "77"},
                             {"SLURM_PROCID", "1"},
                             {"SLURM_STEP_NUM_TASKS", "2"},
                             {"SLURM_STEP_NODELIST", "node[003-005,9],x"}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->rendezvous.host, "node003");
  EXPECT_GE(step->rendezvous.port, 20000);
}

TEST(DoctorMeeting, TheErrorUnderOtherLaunchersTellsWhatToType) {
  const auto hydra = meeting({{"PMI_RANK", "0"}, {"PMI_SIZE", "4"}});
  ASSERT_FALSE(hydra.has_value());
  EXPECT_THAT(hydra.error().message, HasSubstr("mpiexec.hydra -genv HIPS_ROOT"));
  EXPECT_FALSE(meeting({{"HIPS_RANK", "1"}}).has_value());
}

}  // namespace
}  // namespace hips::cli
