#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hips/topology.hpp>

#include "tests/choices.hpp"
#include "tests/processor_time.hpp"
#include "tests/topology/topo_tool.hpp"

// `hips topo` on files that describe clusters: Slurm, LLDP, drawings and lists of cables.

namespace hips {
namespace {

using test::Outcome;
using test::run;
using ::testing::HasSubstr;
using ::testing::Not;

/// A file of the folder for temporary files.
std::string written(const std::string& name, const std::string& text) {
  std::string path = ::testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

TEST(TopoTool, TellsWhatItAssumedBeforeWhatItIgnored) {
  // Six lines with keys that are ignored hide no other note.
  std::string text;
  for (int i = 0; i < 6; ++i) text += fmt::format("SwitchName=leaf{0} Nodes=n{0}-[1-2] Key{0}=1\n", i);
  const std::string path = written("hips_ordered_notes.conf", text);
  const std::string out = run("topo " + path + " 2>&1").out;
  EXPECT_THAT(out, HasSubstr("assuming that a network joins them"));
  EXPECT_LT(out.find("assuming"), out.find("ignored"));
  std::remove(path.c_str());
}

/// Seven leaves with 14, 3 and 1 nodes, below one switch.
std::string uneven_slurm_tree() {
  std::string text;
  for (int i = 1; i <= 7; ++i)
    text += fmt::format("SwitchName=leaf{0} Nodes=n{0}-[1-{1}]\n", i, i == 1 ? 14 : i == 2 ? 3 : 1);
  return written("hips_uneven_tree.conf", text + "SwitchName=core Switches=leaf[1-7]\n");
}

TEST(TopoTool, CountsWhatTheFileTellsApartFromWhatIsAssumed) {
  const std::string path = uneven_slurm_tree();
  EXPECT_THAT(
      run("topo " + path + " 2>&1").out,
      HasSubstr("\n  switches  8; 14 assumed ones take the place of core\n  cables    22, and 98 assumed\n"));
  const auto json = nlohmann::json::parse(run("topo --json " + path).out);
  EXPECT_EQ(json["switches"], 8);
  EXPECT_EQ(json["switches_assumed"], 14);
  EXPECT_EQ(json["switches_replaced"], std::vector<std::string>{"core"});
  EXPECT_EQ(json["cables"], 22);
  EXPECT_EQ(json["cables_assumed"], 98);
  EXPECT_EQ(json["levels"][0]["bandwidth_assumed"], true);
  EXPECT_EQ(nlohmann::json::parse(run("topo --json leafspine:2,2").out)["levels"][0]["bandwidth_assumed"],
            false);
  std::remove(path.c_str());
}

TEST(TopoTool, AJobOnOneLeafHasOneSwitchAndNoTiers) {
  const std::string path = uneven_slurm_tree();
  const std::string job = "topo " + path + " --nodelist n1-[1-14]";
  const std::string out = run(job).out;
  EXPECT_THAT(out, HasSubstr("\n  switches  1\n  cables    14\n"));
  EXPECT_THAT(out, Not(HasSubstr("tiers")));
  EXPECT_THAT(out, HasSubstr("leaf1 joins all servers"));
  EXPECT_THAT(run(job + " --format dot").out, Not(HasSubstr("assumed=true, style=dashed")));
  EXPECT_THAT(run(job + " --format yaml").out, HasSubstr("- leaf1\n"));
  std::remove(path.c_str());
}

TEST(TopoTool, CallsServersAndSwitchesByTheirNamesInAllCommands) {
  const std::string path = uneven_slurm_tree();
  const std::string job = " --nodelist n1-[1-3],n2-[1-3] ";
  EXPECT_THAT(run("topo -v " + path + job).out,
              HasSubstr("node n2-1\n  NIC 0  leaf2  leaf: n2-2 n2-3  spine: n1-1\n"));
  const std::string plan = run("plan -t " + path + job + "-a flat-mesh").out;
  EXPECT_THAT(plan, HasSubstr("\nserver n1-1, lane 0\n"));
  EXPECT_THAT(plan, Not(HasSubstr("<")));
  EXPECT_THAT(run("compare -t " + path + job + "-a flat-mesh,flat-ps").out,
              HasSubstr("server n1-1 NIC 0 out"));
  // JSON keeps the places.
  EXPECT_THAT(run("compare --format json -t " + path + job + "-a flat-ps").out, HasSubstr("server <"));
  EXPECT_THAT(run("plan -t torus:2x3").out, HasSubstr("Torus(2x3)"));
  std::remove(path.c_str());
}

TEST(TopoTool, CountsOneInTheSingular) {
  const std::string path = written("hips_singular.csv", "a,b,rack\nn1,sw1,x\nn2,sw1,x\nn3,sw1,x\n");
  const std::string out = run("topo " + path + " --columns a,,b, 2>&1").out;
  EXPECT_THAT(out, Not(HasSubstr("in all")));
  EXPECT_THAT(run("topo " + path + " --columns a,,b, --nodelist n2 2>&1").out,
              HasSubstr("  node      n2, as server 0\n"));
  std::remove(path.c_str());
}

TEST(TopoTool, ReadsSlurmsTopologyConf) {
  const std::string path = ::testing::TempDir() + "hips_topology.conf";
  const auto write = [&](const std::string& text) { std::ofstream(path) << text; };
  write(
      "SwitchName=leaf0 Nodes=n[01-02]\nSwitchName=leaf1 Nodes=n[03-04] LinkSpeed=100\n"
      "SwitchName=top Switches=leaf[0-1]\n");
  EXPECT_EQ(run("topo --slurm " + path + " --spec").out, "leafspine:2,2\n");
  const Outcome text = run("topo --slurm " + path + " 2>&1");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, HasSubstr("hips: " + path +
                                  ": line 2: LinkSpeed=\"100\" does not describe the wiring; ignored\n"));
  EXPECT_THAT(text.out, HasSubstr("\n  nodes     n01 n02 n03 n04, as servers 0 to 3\n"));
  EXPECT_THAT(run("topo -v --slurm " + path + " 2>&1").out, HasSubstr("\nserver 2 <10>  node n03\n"));
  const auto json = nlohmann::json::parse(run("topo --json --slurm " + path).out);
  EXPECT_EQ(json["spec"], "leafspine:2,2");
  EXPECT_EQ(json["nodes"], (std::vector<std::string>{"n01", "n02", "n03", "n04"}));
  EXPECT_EQ(json["notes"].size(), 1U);
  // The file alone, and with -t of any command.
  EXPECT_EQ(run("topo " + path + " 2>&1").out, text.out);
  EXPECT_EQ(nlohmann::json::parse(run("topo --json " + path).out), json);
  EXPECT_EQ(run("topo -t " + path + "/2 --spec").out, "leafspine:2,2/2\n");
  EXPECT_THAT(run("check -t " + path).out, HasSubstr("proved: "));
  EXPECT_THAT(run("topo " + path + ".none 2>&1").out,
              HasSubstr("\" cannot be read: No such file or directory"));

  write("SwitchName=leaf0 Nodes=n[02-1]\n");
  // Not the folder of temporary files, which may have any.
  const std::string folder = path + ".folder";
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/topology.conf") << "SwitchName=s0 Nodes=n[0-3]\n";
  for (const std::string& file : {path, path + ".none", folder}) {
    const Outcome outcome = run("topo --slurm " + file + " 2>&1");
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.out, HasSubstr(file == path              ? path + ": line 1: Nodes: "
                                       : file.ends_with(".none") ? "\" cannot be read"
                                                                 : "is a folder"));
    EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
  }

  // A file that would expand to more memory than there is.
  write("SwitchName=leaf0 Nodes=r[0-999999]n[0-999999]\n");
  const auto begin = hips::test::processor_time();
  const Outcome outcome = run("topo --slurm " + path + " 2>&1");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.out, HasSubstr("has 1000000000000 names"));
  EXPECT_LT(hips::test::processor_time() - begin, std::chrono::seconds(5));
  std::remove(path.c_str());
}

TEST(TopoTool, PlansUnevenTreesOfSlurmAndAnyJobOnThem) {
  const std::string path = ::testing::TempDir() + "hips_uneven.conf";
  std::mt19937_64 random(test::seed());
  for (int trial = 0; trial < 12; ++trial) {
    std::ofstream file(path);
    std::string leaves, job;
    int num_nodes = 0;
    for (std::uint64_t leaf = 0, last = 2 + random() % 4; leaf < last; ++leaf) {
      const std::uint64_t size = 1 + random() % 7;
      file << fmt::format("SwitchName=s{} Nodes=n{}-[1-{}]\n", leaf, leaf, size);
      leaves += fmt::format("{}s{}", leaf == 0 ? "" : ",", leaf);
      num_nodes += static_cast<int>(size);
      job += fmt::format("{}n{}-{}", leaf == 0 ? "" : ",", leaf, 1 + random() % size);
    }
    if (random() % 4 > 0) file << "SwitchName=top Switches=" << leaves << "\n";
    file.close();
    const auto json = nlohmann::json::parse(run("topo --json " + path).out);
    EXPECT_EQ(json["servers"], num_nodes) << path;
    EXPECT_THAT(run("check -t " + path + " 2>&1").out, HasSubstr("proved: ")) << json["spec"];
    EXPECT_EQ(run("topo --format yaml " + path + " --nodelist '" + job + "' > " + path + ".yaml").exit_code,
              0)
        << job;
    EXPECT_THAT(run("check -t " + path + ".yaml 2>&1").out, HasSubstr("proved: ")) << json["spec"] << job;
  }
  // More servers than trees are planned for.
  std::ofstream(path)
      << "SwitchName=a Nodes=a[1-700]\nSwitchName=b Nodes=b[1-500]\nSwitchName=t Switches=a,b\n";
  EXPECT_THAT(run("plan -t " + path + " --bytes 16M --rank 1 2>&1").out, HasSubstr("1200 ranks, 16 MiB"));
  std::remove(path.c_str());
  std::remove((path + ".yaml").c_str());
}

TEST(TopoTool, InsistsOnTheFormatOfFrom) {
  const std::string path = ::testing::TempDir() + "hips_from.conf";
  std::ofstream(path) << "SwitchName=s0 Nodes=n[0-3]\n";
  for (const char* command : {"topo --spec", "plan --bytes 64K", "compare -b 64K", "check", "info select"}) {
    EXPECT_EQ(run(fmt::format("{} -t {} --from slurm >/dev/null", command, path)).exit_code, 0) << command;
    // The reader of the format says what is wrong, although another one would accept the file.
    const Outcome other = run(fmt::format("{} -t {} --from ns3 2>&1", command, path));
    EXPECT_EQ(other.exit_code, 2) << command;
    EXPECT_THAT(other.out, HasSubstr(path + ":1: ")) << command;
    EXPECT_THAT(other.out, HasSubstr("is not NODES SWITCHES LINKS")) << command;
    const Outcome unknown = run(fmt::format("{} -t {} --from slrum 2>&1", command, path));
    EXPECT_EQ(unknown.exit_code, 2) << command;
    EXPECT_EQ(unknown.out,
              "hips: --from: unknown format \"slrum\"; expected one of hips, slurm, ibnetdiscover, lldp, "
              "containerlab, dot, ns3, simgrid, table\n");
  }
  EXPECT_THAT(run(fmt::format("topo {} --from hips 2>&1", path)).out, HasSubstr(path));
  EXPECT_EQ(run(fmt::format("topo {} --from hips 2>/dev/null", path)).exit_code, 2);
  // Also where some of the cables are picked, of HIPS_TOPO, and of a folder.
  EXPECT_THAT(run(fmt::format("topo {} --from dot --hosts n 2>&1", path)).out, HasSubstr("hips: " + path));
  EXPECT_EQ(run("topo --spec --from slurm", "HIPS_TOPO=" + path).out, "switch:4\n");
  const Outcome folder = run(fmt::format("topo {} --from slurm 2>&1", ::testing::TempDir()));
  EXPECT_EQ(folder.exit_code, 2);
  EXPECT_THAT(run("topo bcube:3,1 --from slurm 2>&1").out,
              HasSubstr("--from slurm: \"bcube:3,1\" is no file; leave --from out"));
}

TEST(TopoTool, TakesTheRatesThatAFileDoesNotTell) {
  const std::string folder = ::testing::TempDir(), csv = folder + "hips_rates.csv",
                    conf = folder + "hips_rates.conf";
  std::string rows = "side_a_device,side_a_name,side_b_device,side_b_name,rate\n";
  for (int leaf = 0; leaf < 3; ++leaf) {
    for (int server = 0; server < 4; ++server)
      rows += fmt::format("n{},eth0,leaf{},{},\n", 4 * leaf + server, leaf, server);
    for (int spine = 0; spine < 2; ++spine)
      rows += fmt::format("leaf{},u{},spine{},{},\n", leaf, spine, spine, leaf);
  }
  std::ofstream(csv) << rows;
  std::ofstream(conf) << "SwitchName=a Nodes=n[0-3]\nSwitchName=b Nodes=n[4-7]\nSwitchName=t Switches=a,b\n";

  const auto json = [](const std::string& arguments) {
    return nlohmann::json::parse(run("topo --json " + arguments).out);
  };
  const auto of_list = json(csv + " --rate leaf=25Gb --rate spine=100Gb");
  EXPECT_EQ(of_list["levels"][0]["bandwidth_bytes_per_s"], 25e9 / 8);
  EXPECT_EQ(of_list["levels"][1]["bandwidth_bytes_per_s"], 100e9 / 8);
  for (const auto& note : of_list["notes"])
    EXPECT_THAT(note.get<std::string>(), Not(HasSubstr("is not known")));
  EXPECT_EQ(json("--rate leaf=25Gb --rate spine=100Gb " + csv), of_list);
  // The other tier is assumed, and said.
  const auto half = json(csv + " --rate leaf=25Gb");
  EXPECT_EQ(half["levels"][1]["bandwidth_bytes_per_s"], 100e9 / 8);
  EXPECT_THAT(half["notes"].dump(),
              HasSubstr("the rate of 6 cables between switches is not known; assuming 100Gb"));

  const auto of_slurm = json(conf + " --rate leaf=50Gb --rate spine=200Gb");
  EXPECT_EQ(of_slurm["levels"][0]["bandwidth_bytes_per_s"], 50e9 / 8);
  EXPECT_EQ(of_slurm["levels"][1]["bandwidth_bytes_per_s"], 200e9 / 8);
  EXPECT_EQ(run("topo " + conf + " --rate leaf=25Gb --rate spine=25Gb --spec").out, "leafspine:2,4@25Gb\n");
  EXPECT_EQ(run("topo " + conf + "/8 --rate leaf=25Gb --rate spine=25Gb --spec").out,
            "leafspine:2,4@25Gb/8\n");
  // What is written is read as it is.
  const std::string yaml = folder + "hips_rates.yaml";
  EXPECT_EQ(run("topo --slurm " + conf + " --rate spine=400Gb --format yaml > " + yaml).exit_code, 0);
  EXPECT_EQ(json(yaml)["levels"][1]["bandwidth_bytes_per_s"], 400e9 / 8);
  EXPECT_THAT(run("check -t " + yaml + " 2>&1").out, HasSubstr("proved: "));

  for (const auto& [arguments, text] : std::vector<std::pair<std::string, std::string>>{
           {csv + " --rate core=400Gb",
            "--rate core: the file tells the rates of all these cables, or has none; leave it out"},
           {conf + " --rate core=400Gb", "--rate core: Leaf-Spine(2,4,4) has no such cables"},
           {csv + " --rate rail=25Gb", "--rate \"rail=25Gb\": expected a tier of cables and its rate"},
           {csv + " --rate leaf=fast", "--rate \"leaf=fast\": expected a tier of cables and its rate"},
           {conf + " --rate leaf=25Gb --rate leaf=50Gb", "--rate: leaf is given twice"},
           {conf + " --rate leaf=25Gb --spec",
            "--spec: no spec tells these rates; write a topology file with --format yaml"},
           {"bcube:3,1 --rate leaf=25Gb", "--rate leaf=25Gb: \"bcube:3,1\" is no file; leave --rate out"}}) {
    const auto result = run("topo " + arguments + " 2>&1");
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_THAT(result.out, HasSubstr(text)) << arguments;
    EXPECT_EQ(std::ranges::count(result.out, '\n'), 1) << result.out;
  }
  for (const std::string& path : {csv, conf, yaml}) std::remove(path.c_str());
}

/// Two leaves of two servers below a spine in one network, and a switch for management.
const char* const kTwoNetworks = R"(graph {
  "gpu0":"eth0" -- "leaf0":"1"; "gpu1":"eth0" -- "leaf0":"2"; "gpu2":"eth0" -- "leaf1":"1"; "gpu3":"eth0" -- "leaf1":"2"
  "leaf0":"9" -- "spine":"1"; "leaf0":"10" -- "spine":"2"; "leaf1":"9" -- "spine":"3"; "leaf1":"10" -- "spine":"4"
  "gpu0":"bmc" -- "mgmt":"1"; "gpu1":"bmc" -- "mgmt":"2"; "gpu2":"bmc" -- "mgmt":"3"; "store":"eth0" -- "mgmt":"4"
})";

TEST(TopoTool, EveryCommandReadsAFileAsItsOptionsTell) {
  const std::string path = ::testing::TempDir() + "hips_two_networks.dot";
  std::ofstream(path) << kTwoNetworks;
  const std::string options =
      "--hosts '^gpu' --exclude 'mgmt|store' --rate leaf=25Gb --rate spine=25Gb --from dot";
  for (const char* command : {"topo", "plan -b 64K", "compare -b 64K -a hips", "check", "info select"}) {
    const Outcome outcome = run(fmt::format("{} -t {} {} 2>/dev/null", command, path, options));
    EXPECT_EQ(outcome.exit_code, 0) << command;
    EXPECT_THAT(outcome.out, ::testing::AnyOf(HasSubstr("Leaf-Spine(2,2"), HasSubstr("leafspine:2,2")))
        << command;
    // HIPS_TOPO and -t are read alike.
    EXPECT_EQ(run(fmt::format("{} {} 2>/dev/null", command, options), "HIPS_TOPO=" + path).exit_code, 0)
        << command;
    const Outcome family = run(fmt::format("{} -t bcube:3,1 --hosts n 2>&1", command));
    EXPECT_EQ(family.exit_code, 2) << command;
    EXPECT_THAT(family.out, HasSubstr("--hosts n: \"bcube:3,1\" is no file; leave --hosts out")) << command;
  }
  EXPECT_EQ(run(fmt::format("topo diff {0} {0} {1}", path, options)).exit_code, 0);
  const Outcome of_table = run(fmt::format("plan -t {} --from dot --columns a,b,c,d 2>&1", path));
  EXPECT_THAT(of_table.out, HasSubstr("--columns is for tables; leave out --from dot"));
  const std::string conf = ::testing::TempDir() + "hips_mixed_options.conf";
  std::ofstream(conf) << "SwitchName=s0 Nodes=n[0-3]\n";
  for (const auto& [given, words] : {
           std::pair("--columns a,,b,", "--columns is for tables; leave out "),
           std::pair("--hosts n", "--hosts is for lists of cables; leave out "),
           std::pair("--switches s", "--switches is for lists of cables; leave out "),
       }) {
    for (const auto& [command, other] :
         {std::pair("topo --slurm {}", "--slurm\n"), std::pair("plan -t {} --from slurm", "--from slurm\n"),
          std::pair("check -t {} --slurm-topology b", "--slurm-topology b\n"),
          std::pair("topo {} --from slurm --slurm-topology b", "--slurm-topology b\n")})
      EXPECT_EQ(run(fmt::format(fmt::runtime(command), conf) + fmt::format(" {} 2>&1", given)).out,
                fmt::format("hips: {}{}", words, other));
  }
  std::remove(conf.c_str());
  // The rate of closed forms is another one.
  EXPECT_EQ(run("compare --theory --rate 25Gb").exit_code, 0);
  EXPECT_THAT(run("compare -b 1M -t switch:4 --rate 25Gb 2>&1").out, HasSubstr("--rate 25Gb: "));
  std::remove(path.c_str());
}

TEST(TopoTool, EveryCommandChoosesATopologyOfSlurm) {
  const std::string path = ::testing::TempDir() + "hips_several.yaml";
  std::ofstream(path) << "- topology: a\n  tree:\n    switches:\n      - {switch: s, nodes: 'n[1-4]'}\n"
                         "- topology: b\n  tree:\n    switches:\n      - {switch: s, nodes: 'n[1-3]'}\n";
  for (const char* command : {"topo", "plan -b 64K", "compare -b 64K -a hips", "check", "info select"}) {
    const Outcome none = run(fmt::format("{} -t {} 2>&1", command, path));
    EXPECT_EQ(none.exit_code, 2) << command;
    EXPECT_THAT(none.out, HasSubstr("choose one of \"a\", \"b\" by --slurm-topology NAME")) << command;
    const Outcome one = run(fmt::format("{} -t {} --slurm-topology b 2>/dev/null", command, path));
    EXPECT_EQ(one.exit_code, 0) << command;
    EXPECT_THAT(one.out, ::testing::AnyOf(HasSubstr("Switch(3)"), HasSubstr("switch:3"))) << command;
  }
  EXPECT_EQ(run("topo --spec --slurm " + path + " --slurm-topology a").out, "switch:4\n");
  const std::string dot = path + ".dot";
  std::ofstream(dot) << kTwoNetworks;
  EXPECT_THAT(run("topo --slurm-topology a " + dot + " 2>&1").out,
              HasSubstr("is no file of Slurm; leave the option out"));
  for (const std::string& file : {path, dot}) std::remove(file.c_str());
}

TEST(TopoTool, ReadsTheLldpFilesOfHosts) {
  const std::string folder = ::testing::TempDir() + "hips_lldp_";
  std::string several, repeated;
  for (int host = 0; host < 3; ++host) {
    const std::string path = fmt::format("{}n{}.keyvalue", folder, host);
    std::ofstream(path)
        << "lldp.eth0.via=LLDP\nlldp.eth0.chassis.name=leaf\nlldp.eth0.chassis.Bridge.enabled=on\n"
        << "lldp.eth0.port.ifname=swp" << host << "\n";
    several += " " + path;
    repeated += " -t " + path;
  }
  EXPECT_EQ(run("topo --spec" + several + " 2>/dev/null").out, "switch:3\n");
  EXPECT_EQ(run("topo --spec" + repeated + " 2>/dev/null").out, "switch:3\n");
  EXPECT_EQ(run("topo --spec --hosts 'n[01]'" + several + " 2>/dev/null").out, "switch:2\n");
  for (const char* command : {"plan -b 64K", "check", "info select"})
    EXPECT_EQ(run(command + repeated + " 2>/dev/null").exit_code, 0) << command;
  // A loop over hosts leaves an empty file of one that did not answer.
  const std::string empty = folder + "n9.keyvalue", together = folder + "together";
  std::ofstream(empty).close();
  std::filesystem::create_directory(together);
  for (const auto& entry : std::filesystem::directory_iterator(::testing::TempDir()))
    if (entry.path().string().starts_with(folder) && entry.path().extension() == ".keyvalue")
      std::filesystem::copy_file(entry.path(), std::filesystem::path(together) / entry.path().filename(),
                                 std::filesystem::copy_options::overwrite_existing);
  for (const std::string& arguments : {several + " " + empty, " " + empty + several, " " + together}) {
    const Outcome with_empty = run("topo" + arguments + " 2>&1");
    EXPECT_THAT(with_empty.out, HasSubstr("n9.keyvalue: the file is empty; ignored\n")) << arguments;
    EXPECT_THAT(with_empty.out, HasSubstr("Switch(3)")) << arguments;
  }
  EXPECT_THAT(run("topo " + empty + " " + empty + " 2>&1").out,
              HasSubstr("all files are empty; check the command"));
  const std::string conf = folder + "topology.conf";
  std::ofstream(conf) << "SwitchName=s0 Nodes=n[0-3]\n";
  for (const std::string& arguments : {several + " " + conf, " " + conf + several, " " + conf + " " + conf}) {
    const Outcome other = run("topo" + arguments + " 2>&1");
    EXPECT_EQ(other.exit_code, 2);
    EXPECT_THAT(other.out,
                HasSubstr(conf + " is not what lldpctl prints; give one file, or several or a folder"));
    EXPECT_EQ(std::ranges::count(other.out, '\n'), 1) << other.out;
  }
  EXPECT_THAT(run("topo switch:3 switch:4 2>&1").out,
              HasSubstr("2 topologies are given, and \"switch:3\" is no file; give one topology"));
}

TEST(TopoTool, SaysOfLeavesOfMixedSizesWhatMostHave) {
  const std::string path = ::testing::TempDir() + "hips_mixed.dot";
  std::string text = "graph {\n";
  const std::vector<int> sizes{2, 2, 4, 5};
  for (std::size_t leaf = 0; leaf < sizes.size(); ++leaf) {
    for (int server = 0; server < sizes[leaf]; ++server)
      text += fmt::format("n{0}x{1} -- leaf{0};\n", leaf, server);
    text += fmt::format("leaf{} -- spine;\n", leaf);
  }
  std::ofstream(path) << text << "}\n";
  const std::string out = run("topo " + path + " --hosts '^n' 2>/dev/null").out;
  EXPECT_THAT(out, HasSubstr("leaf2 has 4 servers, most often 2"));
  EXPECT_THAT(out, HasSubstr("leaf3 has 5 servers, most often 2"));
  EXPECT_THAT(out, Not(HasSubstr("the others")));
  std::remove(path.c_str());
}

TEST(TopoTool, NamesTheFormatsWhereAFileIsOfNone) {
  const std::string path = ::testing::TempDir() + "hips_no_format.txt";
  std::ofstream(path) << "\n \nthese are some words\nand others\n";
  const auto result = run("topo " + path + " 2>&1");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(
      result.out,
      "hips: " + path +
          ": line 3: \"these are some words\" begins no format that HiPS knows: slurm, ibnetdiscover, lldp, "
          "containerlab, dot, ns3, simgrid, table, or a topology file with the line \"hips-topology: 1\"; hips topo --from FORMAT tells "
          "what is wrong with it as one of them\n");
  std::remove(path.c_str());
}

TEST(TopoTool, ColumnsAreForTables) {
  const std::string path = ::testing::TempDir() + "hips_no_table.txt";
  for (const auto& [format, text] : std::vector<std::pair<std::string, std::string>>{
           {"slurm", "SwitchName=s0 Nodes=n[0-3]\n"},
           {"hips", "hips-topology: 1\nshape: switch:4\n"},
           {"dot", "graph { n0 -- s0; n1 -- s0 }\n"},
           {"ns3", "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n"},
           {"lldp", R"({"lldp": {"interface": []}})"},
       }) {
    std::ofstream(path) << text;
    const Outcome outcome = run("topo " + path + " --columns 1,2,3,4 2>&1");
    EXPECT_EQ(outcome.exit_code, 2) << format;
    EXPECT_EQ(outcome.out, fmt::format("hips: --columns is for tables, and {} is of the format {}; leave "
                                       "--columns out\n",
                                       path, format));
  }
  EXPECT_THAT(run(fmt::format("topo {0} {0} --columns 1,2,3,4 2>&1", path)).out,
              HasSubstr("hips: --columns is for tables, and " + path + " is one of 2 texts of hosts; leave"));
  std::ofstream(path) << "0\t1\t100Gbps\n1\t2\t100Gbps\n";
  EXPECT_EQ(run("topo " + path + " --columns 1,,2,,3 2>&1").exit_code, 0);
  std::remove(path.c_str());
}

TEST(TopoTool, NamesFilesThatAreNoTextAndSaysWhatToDo) {
  const std::string path = ::testing::TempDir() + "hips_no_text.csv";
  const auto error_of = [&](std::string_view bytes, const std::string& options = "") {
    std::ofstream(path, std::ios::binary) << bytes;
    const Outcome outcome = run("topo " + path + options + " 2>&1");
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.out;
  };
  const std::string excel = "hips: topology file \"" + path +
                            "\" is a zip archive, as Excel files are, and no text; save the table as CSV\n";
  EXPECT_EQ(error_of("PK\x03\x04\x14"), excel);
  EXPECT_EQ(error_of("PK\x03\x04\x14", " --from slurm"), excel);
  EXPECT_THAT(error_of("PK\x03\x04\x14", " --columns 1,2,3,4"), HasSubstr("save the table as CSV\n"));
  EXPECT_THAT(error_of("\xd0\xcf\x11\xe0"), HasSubstr("is an old Excel file and no text; save"));
  for (const std::string_view bytes : {"\xff\xfe"
                                       "n",
                                       "\xfe\xff"
                                       "n"})
    EXPECT_EQ(error_of(bytes),
              "hips: topology file \"" + path +
                  "\" is text in UTF-16; convert it to UTF-8, by iconv -f UTF-16 -t UTF-8 FILE > NEW\n");
  std::remove(path.c_str());
}

TEST(TopoTool, JudgesOnlyTheHostsOfAJobWhereTheWholeFileIsRefused) {
  const std::string path = ::testing::TempDir() + "hips_broken_elsewhere.conf";
  std::ofstream(path)
      << "SwitchName=l0 Nodes=n[0-3]\nSwitchName=l1 Nodes=n[4-7]\nSwitchName=top Switches=l[0-1]\n"
         "SwitchName=x Switches=y\nSwitchName=y Switches=x\n";
  EXPECT_EQ(run("topo " + path + " 2>&1").out,
            "hips: " + path + ": line 4: the switches form a cycle: x > y > x; one must be on top\n");
  EXPECT_EQ(run("topo --spec " + path + " --nodelist n[1-2,5-6]").out, "leafspine:2,2\n");
  EXPECT_EQ(run("topo " + path + " --nodelist n[1-2],z[3-4] 2>&1").out,
            "hips: " + path +
                ": host \"z3\" of the job (and 1 more) is not in the file; check its name, or add it\n");
  EXPECT_THAT(run("plan -t " + path + " --nodelist n[1-2,5-6] --rank 0").out,
              HasSubstr("Leaf-Spine(2,2,2), 4 ranks"));
  EXPECT_THAT(run("compare -t " + path + " --nodelist n[1-2,5-6]").out, HasSubstr("Leaf-Spine(2,2,2)"));
  // Two clusters in one list of cables.
  std::ofstream(path)
      << "graph { {a1 a2 a3} -- s1; {b1 b2} -- s2; a1 [role=server]; a2 [role=server]; a3 [role=server];\n"
         "b1 [role=server]; b2 [role=server]; s1 [role=switch]; s2 [role=switch] }\n";
  EXPECT_THAT(run("topo " + path + " 2>&1").out, HasSubstr("no cables join"));
  EXPECT_EQ(run("topo --spec " + path + " --nodelist b[1-2]").out, "switch:2\n");
  EXPECT_EQ(run("topo " + path + " --nodelist b[1-3] 2>&1").out,
            "hips: " + path + ": host \"b3\" of the job is not in the file; check its name, or add it\n");
  EXPECT_EQ(run("topo " + path + " --nodelist b1,s2 2>&1").out,
            "hips: " + path + ": host \"s2\" of the job is no server with a cable there; list its cables\n");
  std::ofstream(path)
      << "side_a_device,side_a_name,side_b_device,side_b_name\nn1,e,leaf1,1\nn2,e,leaf1,2\nn3,e,leaf2,1\n"
         "n4,e,leaf2,2\nx9,e,y9,e\n";
  EXPECT_EQ(run("topo --spec " + path + " --nodelist n[1-2]").out, "switch:2\n");
  EXPECT_THAT(run("topo " + path + " --nodelist n[1-2] 2>&1").out,
              HasSubstr("; read for the hosts of the job only\n"));
  // A server of a ring relays for the job; another cluster is not joined with it.
  std::string dot = "graph { n0 -- n1 -- n2 -- n3 -- n0; x8 -- x9;";
  for (const char* server : {"n0", "n1", "n2", "n3", "x8", "x9"})
    dot += fmt::format(" {} [role=server];", server);
  std::ofstream(path) << dot << " }\n";
  const Outcome ring = run("topo " + path + " --nodelist n0,n2 2>&1");
  EXPECT_THAT(ring.out, HasSubstr("; read for what cables join with the hosts of the job\n"));
  EXPECT_THAT(ring.out, HasSubstr("n1 has to relay"));
  EXPECT_THAT(run("check -t " + path + " --nodelist n0,n2").out, HasSubstr("proved"));
  std::remove(path.c_str());
}

TEST(TopoTool, PlansOfAJobBesideASlowCableAreProvedAndCompared) {
  const std::string path = ::testing::TempDir() + "hips_slow_job.yaml";
  std::ofstream(path) << "hips-topology: 1\nshape: leafspine:3,4\nservers: {names: 'n[1-12]'}\n"
                         "links: [{server: n6, nic: 0, rate: 16Gb}]\n";
  const std::string job = " -t " + path + " --nodelist n[2-12]";
  EXPECT_THAT(run("check" + job).out, HasSubstr("proved: "));
  EXPECT_THAT(run("compare --baseline" + job).out,
              ::testing::AllOf(HasSubstr("11 ranks"), HasSubstr("hips_slow_job.yaml, hosts of the job)")));
  EXPECT_THAT(run("plan -b 16M --rank 0" + job).out,
              ::testing::AllOf(HasSubstr("selected    hips"), HasSubstr("ratio       1.0")));
  const Outcome alone = run("check --nodelist n1 --plan x.json 2>&1", "env -u HIPS_TOPO");
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.out, HasSubstr("select servers of a topology; add -t"));
  std::remove(path.c_str());
}

TEST(TopoTool, PredictsWhatSharedUplinksTake) {
  const std::string path = ::testing::TempDir() + "hips_uplinks.conf";
  std::ofstream(path)
      << "SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n[2-3]\nSwitchName=top Switches=a,b\n";
  // Each leaf has to send 16 MiB to the other, over two uplinks of 10 Gb/s.
  const std::string rates = " --rate leaf=100Gb --rate spine=";
  EXPECT_THAT(run("topo " + path + rates + "10Gb").out, HasSubstr("16 MiB    predicted allreduce: 6.72 ms"));
  EXPECT_THAT(run("topo " + path + rates + "400Gb").out, HasSubstr("16 MiB    predicted allreduce: 2.02 ms"));
  std::remove(path.c_str());
}

TEST(TopoTool, MarksRatesThatAFileDoesNotTell) {
  const std::string path = ::testing::TempDir() + "hips_assumed.conf";
  std::ofstream(path)
      << "SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n[2-3]\nSwitchName=top Switches=a,b\n";
  EXPECT_THAT(run("topo " + path).out,
              ::testing::AllOf(HasSubstr("  leaf   radix 2  NIC 0  100 Gb/s assumed, 1 us  "),
                               HasSubstr("  spine  radix 2  NIC 0  100 Gb/s assumed, 1 us  ")));
  EXPECT_THAT(
      run("topo " + path + " --rate leaf=25Gb").out,
      ::testing::AllOf(HasSubstr("  NIC 0  25 Gb/s, 1 us  "), HasSubstr("  100 Gb/s assumed, 1 us  ")));
  std::remove(path.c_str());
}

TEST(TopoTool, DiffComparesRatesOfLevelsWithoutNamedSwitches) {
  const std::string path = ::testing::TempDir() + "hips_rates.conf";
  std::ofstream(path)
      << "SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n[2-3]\nSwitchName=top Switches=a,b\n";
  for (const char* rate : {"400", "1"})
    ASSERT_EQ(run(fmt::format("topo {0} --rate leaf=100Gb --rate spine={1}Gb --format yaml > {0}.{1}.yaml",
                              path, rate))
                  .exit_code,
              0);
  const Outcome outcome = run(fmt::format("topo diff {0}.400.yaml {0}.1.yaml", path));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("~ rate of level spine: 400 Gb/s -> 1 Gb/s\n"));
  EXPECT_EQ(run(fmt::format("topo diff {0}.400.yaml {0}.400.yaml", path)).exit_code, 0);
  EXPECT_EQ(run(fmt::format("topo diff {0} {0}.400.yaml", path)).exit_code,
            0);  // there the rates are assumed
  std::remove(path.c_str());
}

TEST(TopoTool, RailsOfSlurmJoinEachNodeTwice) {
  const std::string path = ::testing::TempDir() + "hips_rails.conf";
  std::ofstream(path) << "SwitchName=a Nodes=n[0-3]\nSwitchName=b Nodes=n[0-3]\n";
  EXPECT_THAT(run("topo " + path).out, ::testing::AllOf(HasSubstr("Rail(4,2)"), Not(HasSubstr("single"))));
  std::remove(path.c_str());
}

TEST(TopoTool, ReadsTheRatesOfItsOwnDot) {
  const std::string path = ::testing::TempDir() + "hips_rates.dot";
  for (const char* spec : {"leafspine:3,4,2@25Gb", "bcube:3,1@10Gb", "torus:4x3@2.5Gb", "rail:4,2@400Gb"}) {
    ASSERT_EQ(run(fmt::format("topo -t {} --format dot > {}", spec, path)).exit_code, 0);
    EXPECT_EQ(run("topo --spec " + path).out, fmt::format("{}\n", spec));
  }
  std::remove(path.c_str());
}

TEST(TopoTool, LeavesThatAreCabledToEachOtherHaveTiers) {
  const std::string path = ::testing::TempDir() + "hips_two_leaves.dot";
  std::ofstream(path)
      << "graph { l1 -- {a1 a2 a3} [speed=100G]; l2 -- {b1 b2} [speed=100G]; l1 -- l2 [speed=400G] }\n";
  EXPECT_THAT(
      run("topo " + path).out,
      ::testing::AllOf(HasSubstr("5 servers, 2 leaves; 5 cables of servers, 1 cable between leaves\n"),
                       HasSubstr("over all 5 servers, "), HasSubstr(" over the 3 of l1\n")));
  std::remove(path.c_str());
}

TEST(TopoTool, NamesSlowCablesBetweenSwitchesAndTheBoundAsTheFileDoes) {
  std::string text = "src,sport,dst,dport,speed\n";
  for (int leaf = 1; leaf <= 3; ++leaf) {
    for (int n = 0; n < 2; ++n) text += fmt::format("n{},eth0,leaf{},{},100G\n", 2 * leaf - n, leaf, n);
    text += fmt::format("leaf{0},4,spine1,{0},{1}\n", leaf, leaf == 3 ? "10G" : "100G");
  }
  const std::string path = written("hips_named_links.csv", text),
                    columns = " --columns src,sport,dst,dport,speed ";
  EXPECT_THAT(run("topo " + path + columns).out, HasSubstr("  link      leaf3 to spine1: 10 Gb/s\n"));
  EXPECT_THAT(run("compare -t " + path + columns).out, HasSubstr("what servers n5, n6 and the others send"));
  // Jobs elsewhere do not see it.
  EXPECT_THAT(run("topo " + path + columns + "--nodelist 'n[1-2]'").out,
              HasSubstr("Switch(2)  (switch:2)\n"));
  const std::string part = run("topo " + path + columns + "--nodelist 'n[1-4]'").out;
  EXPECT_THAT(part, HasSubstr("Leaf-Spine(2,2,1)"));
  EXPECT_THAT(part, Not(HasSubstr("link ")));
  // Its own file may be compared with a table that needs options.
  const std::string kept =
      written("hips_named_links.yaml", run("topo " + path + columns + "--format yaml").out);
  const Outcome same = run("topo diff " + path + " " + kept + columns);
  EXPECT_EQ(same.exit_code, 0) << same.out;
  for (const std::string& one : {path, kept}) std::remove(one.c_str());
}

TEST(TopoTool, ErrorsOfPlansNameServersAndSayThatCablesAreDown) {
  const std::string path =
      written("hips_cut.yaml",
              "hips-topology: 1\nshape: bcube:2,1\nservers: {names: [a, b, c, d]}\nlinks:\n"
              "  - {server: a, nic: 0, state: down}\n  - {server: a, nic: 1, state: down}\n");
  for (const char* command : {"plan", "check"}) {
    const Outcome cut = run(std::string(command) + " -t " + path + " 2>&1");
    EXPECT_EQ(cut.exit_code, 2);
    EXPECT_THAT(
        cut.out,
        HasSubstr("not connected, as cables are down: 2 components, {a}, {b, c, d}. Write state: up"));
  }
  std::remove(path.c_str());
}

TEST(TopoTool, SaysHasOfOneServer) {
  const std::string path =
      written("hips_one_cable.csv",
              "src,sport,dst,dport,speed\nn1,e0,sw1,1,100G\nn1,e1,sw2,1,100G\nn2,e0,sw1,2,100G\n"
              "n2,e1,sw2,2,100G\nn3,e0,sw1,3,100G\n");
  EXPECT_THAT(run("topo " + path + " --columns src,sport,dst,dport,speed").out,
              HasSubstr("1 of 3 servers has one cable"));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace hips
