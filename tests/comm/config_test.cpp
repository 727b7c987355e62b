#include "lib/base/config/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "lib/base/config/config_file.hpp"

namespace config_test {
namespace {

using hips::load_config;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Config, AnEmptyEnvironmentGivesTheDefaultValues) {
  const auto loaded = load_config({{"PATH", "/bin"}});
  EXPECT_TRUE(loaded.status.ok());
  EXPECT_THAT(loaded.warnings, IsEmpty());
  EXPECT_FALSE(loaded.config.topology.has_value());
  EXPECT_EQ(loaded.config.credits, std::nullopt);
  EXPECT_FALSE(loaded.config.mpi_report);
}

TEST(Config, TheTableListsTheDefaultsOfTheStruct) {
  for (const hips::ConfigVariable& variable : hips::config_variables()) {
    SCOPED_TRACE(variable.name);
    EXPECT_FALSE(variable.doc.empty());
    EXPECT_FALSE(variable.values.empty());
    if (variable.set == nullptr || variable.default_value.empty()) continue;
    hips::Config given;
    if (variable.name == "HIPS_STAGING_BYTES" || variable.name == "HIPS_LOG" ||
        variable.name == "HIPS_MPI_REPORT" || variable.name == "HIPS_TRANSPORT" ||
        variable.name == "HIPS_REPRODUCIBLE" || variable.name == "HIPS_NODE_DIRECT" ||
        variable.name.starts_with("HIPS_VERBS_") ||
        (variable.name.starts_with("HIPS_IB_") && variable.name != "HIPS_IB_HCA")) {
      EXPECT_EQ(variable.set(given, variable.default_value), "");
    }
    const hips::Config fresh;
    EXPECT_EQ(given.credits, fresh.credits);
    EXPECT_EQ(given.segment_bytes, fresh.segment_bytes);
    EXPECT_EQ(given.staging_bytes, fresh.staging_bytes);
    EXPECT_EQ(given.log, fresh.log);
    EXPECT_EQ(given.mpi_report, fresh.mpi_report);
    EXPECT_EQ(given.node_direct, fresh.node_direct);
    EXPECT_EQ(given.transport, fresh.transport);
    EXPECT_EQ(given.rdma, fresh.rdma);
  }
}

TEST(Config, TheEnvironmentSetsEveryKindOfValue) {
  const auto loaded = load_config({{"HIPS_TOPO", "bcube:3,1"},
                                   {"HIPS_RANK", "2"},
                                   {"HIPS_SIZE", "9"},
                                   {"HIPS_ROOT", "node1:4711"},
                                   {"HIPS_TIMEOUT", "1500ms"},
                                   {"HIPS_MPI_REPORT", "report.json"},
                                   {"HIPS_GUARD", "off"},
                                   {"HIPS_GUARD_TABLE", "guard.txt"},
                                   {"HIPS_REPRODUCIBLE", "run"},
                                   {"HIPS_SEGMENT_BYTES", "64K"},
                                   {"HIPS_STAGING_BYTES", "1M"},
                                   {"HIPS_NODE_DIRECT", "off"},
                                   {"HIPS_CREDITS", "1"}});
  ASSERT_TRUE(loaded.status.ok()) << loaded.status.message;
  EXPECT_EQ(loaded.config.topology, "bcube:3,1");
  EXPECT_EQ(loaded.config.rank, 2);
  EXPECT_EQ(loaded.config.size, 9);
  EXPECT_EQ(loaded.config.root, "node1:4711");
  EXPECT_EQ(loaded.config.timeout_ns, 1'500'000'000);
  EXPECT_TRUE(loaded.config.mpi_report);
  EXPECT_EQ(loaded.config.guard, false);
  EXPECT_EQ(loaded.config.guard_table, "guard.txt");
  EXPECT_EQ(loaded.config.reproducible, hips::Reproducible::kRun);
  EXPECT_EQ(loaded.config.segment_bytes, 65536u);
  EXPECT_EQ(loaded.config.staging_bytes, 1u << 20);
  EXPECT_FALSE(loaded.config.node_direct);
  EXPECT_EQ(loaded.config.credits, 1);
}

TEST(Config, ATopologySpecOverridesATopologyFile) {
  EXPECT_EQ(load_config({{"HIPS_TOPO_FILE", "/etc/wiring"}}).config.topology, "file:/etc/wiring");
  EXPECT_EQ(load_config({{"HIPS_TOPO_FILE", "a.yaml"}, {"HIPS_TOPO", "switch:2"}}).config.topology,
            "switch:2");
  EXPECT_EQ(load_config({{"HIPS_TOPO_DUMP", "b.yaml"}}).config.topology_dump, "b.yaml");
  EXPECT_FALSE(load_config({{"HIPS_TOPO_DUMP", "b.yaml"}}).config.topology);
}

TEST(Config, TheErrorNamesTheVariableTheValueAndTheValidValues) {
  const auto message = [](const char* name, const char* value) {
    const auto loaded = load_config({{name, value}});
    EXPECT_EQ(loaded.status.code, hips::Code::kInvalidArgument) << name << "=" << value;
    return loaded.status.message;
  };
  EXPECT_THAT(message("HIPS_MPI_REPORT", "yes"),
              AllOf(HasSubstr("HIPS_MPI_REPORT"), HasSubstr("\"yes\""), HasSubstr("on, off, 1 or 0")));
  EXPECT_THAT(message("HIPS_MPI_REPORT", "true"), HasSubstr("on, off, 1 or 0"));
  EXPECT_THAT(message("HIPS_GUARD", "auto"), HasSubstr("on, off, 1 or 0"));
  EXPECT_THAT(message("HIPS_GUARD_TABLE", ""), HasSubstr("HIPS_GUARD_TABLE"));
  EXPECT_THAT(message("HIPS_REPRODUCIBLE", "on"), HasSubstr("give off, run or any"));
  EXPECT_THAT(message("HIPS_CREDITS", "0"), HasSubstr("from 1 to"));
  EXPECT_THAT(message("HIPS_SEGMENT_BYTES", "128 K"), HasSubstr("\"128 K\""));
  EXPECT_THAT(message("HIPS_SEGMENT_BYTES", "-1"), HasSubstr("size"));
  EXPECT_THAT(message("HIPS_TIMEOUT", "0"), HasSubstr("above zero"));
  EXPECT_THAT(message("HIPS_TIMEOUT", "soon"), HasSubstr("\"soon\""));
  EXPECT_THAT(message("HIPS_RANK", "one"), HasSubstr("HIPS_RANK"));
  EXPECT_THAT(message("HIPS_TOPO", ""), HasSubstr("HIPS_TOPO"));
  EXPECT_THAT(message("HIPS_LOG", "loud"),
              AllOf(HasSubstr("HIPS_LOG"), HasSubstr("loud"), HasSubstr("info")));
}

TEST(Config, AnInvalidVariableDoesNotAffectTheOthers) {
  // A rank with an invalid HIPS_CREDITS must still connect to its peers and report the error to them.
  const auto loaded = load_config({{"HIPS_CREDITS", "many"}, {"HIPS_RANK", "1"}, {"HIPS_SIZE", "2"}});
  EXPECT_FALSE(loaded.status.ok());
  EXPECT_EQ(loaded.config.rank, 1);
  EXPECT_EQ(loaded.config.size, 2);
}

TEST(Config, TheWarningForAnUnknownNameSuggestsTheNearestOne) {
  EXPECT_THAT(load_config({{"HIPS_TOPOLOGY", "x"}, {"HIPS_TIMEOUTS", "1"}}).warnings,
              ElementsAre(AllOf(HasSubstr("HIPS_TOPOLOGY"), HasSubstr("HIPS_TOPO?")),
                          AllOf(HasSubstr("HIPS_TIMEOUTS"), HasSubstr("HIPS_TIMEOUT?"))));
  // The names of variables that only tests read are known, too.
  EXPECT_THAT(load_config({{"HIPS_SEED", "1"}}).warnings, IsEmpty());
}

TEST(Config, SizesAcceptBinarySuffixesAndRejectOverflow) {
  EXPECT_EQ(hips::parse_bytes("0"), 0u);
  EXPECT_EQ(hips::parse_bytes("4k"), 4096u);
  EXPECT_EQ(hips::parse_bytes("3G"), 3ull << 30);
  EXPECT_FALSE(hips::parse_bytes(""));
  EXPECT_FALSE(hips::parse_bytes("K"));
  EXPECT_FALSE(hips::parse_bytes("1T"));
  EXPECT_FALSE(hips::parse_bytes("1.5M"));
  EXPECT_FALSE(hips::parse_bytes("18446744073709551615K"));
}

TEST(Config, BooleansAcceptOnlyOnOffOneAndZero) {
  EXPECT_EQ(hips::parse_bool("on"), true);
  EXPECT_EQ(hips::parse_bool("0"), false);
  for (const char* wrong : {"", "ON", "true", "no", "2", " on"})
    EXPECT_FALSE(hips::parse_bool(wrong)) << wrong;
}

TEST(Config, TimesAcceptUnitsAndDefaultToSeconds) {
  EXPECT_EQ(hips::parse_duration_ns("2"), 2'000'000'000);
  EXPECT_EQ(hips::parse_duration_ns("0.5s"), 500'000'000);
  EXPECT_EQ(hips::parse_duration_ns("250ms"), 250'000'000);
  EXPECT_EQ(hips::parse_duration_ns("2m"), 120'000'000'000);
  for (const char* wrong : {"", "-1", "0", "1h", "nan", "inf", "1e300", "ms"})
    EXPECT_FALSE(hips::parse_duration_ns(wrong)) << wrong;
}

/// Writes a file for a test and returns its path.
std::string file_with(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/hips_" + std::to_string(getpid()) + "_" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(ConfigFile, ALineHasANameAValueAndOptionallyAComment) {
  const auto read = hips::parse_config_file(
      "hips.conf", "# ours\n\n  HIPS_LOG = info,plan:debug  # while we look\r\nHIPS_TIMEOUT=2m");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(*read, ElementsAre(hips::Setting{"HIPS_LOG", "info,plan:debug", "hips.conf:3"},
                                 hips::Setting{"HIPS_TIMEOUT", "2m", "hips.conf:4"}));
  for (const auto& [text, what] : {std::pair("HIPS_LOG info\n", "line 1: \"HIPS_LOG info\" has no"),
                                   std::pair("\nPATH=/bin\n", "line 2: \"PATH=/bin\" does not begin"),
                                   std::pair("HIPS_A=1\nHIPS_A=2\n", "line 2: \"HIPS_A=2\" names")}) {
    const auto wrong = hips::parse_config_file("hips.conf", text);
    ASSERT_FALSE(wrong) << text;
    EXPECT_THAT(wrong.error().message, HasSubstr(what));
  }
}

TEST(ConfigFile, TheEnvironmentOverridesFilesAndLaterFilesOverrideEarlierOnes) {
  const std::vector<std::string> files = {
      file_with("etc", "HIPS_LOG=info\nHIPS_CREDITS=3\nHIPS_RINGS=2\n"),
      file_with("home", "HIPS_CREDITS=5\nHIPS_RINGS=many\nHIPS_RINGZ=1\n"), "/nowhere/hips.conf"};
  const auto gathered = hips::gather_settings({{"HIPS_CREDITS", "7"}, {"PATH", "/bin"}}, files);
  EXPECT_TRUE(gathered.status.ok()) << gathered.status.message;
  EXPECT_THAT(gathered.settings, ElementsAre(hips::Setting{"HIPS_CREDITS", "7", "environment"},
                                             hips::Setting{"HIPS_LOG", "info", files[0] + ":1"},
                                             hips::Setting{"HIPS_RINGS", "many", files[1] + ":2"},
                                             hips::Setting{"HIPS_RINGZ", "1", files[1] + ":3"}));
  // The error of a value from a file names the file and the line.
  const auto loaded = load_config(gathered.settings);
  EXPECT_EQ(loaded.config.credits, 7);
  EXPECT_THAT(loaded.status.message, HasSubstr("HIPS_RINGS=\"many\" (" + files[1] + ":2) is wrong"));
  EXPECT_THAT(loaded.warnings, ElementsAre(HasSubstr("did you mean HIPS_RINGS?")));
}

TEST(ConfigFile, AnInvalidFileIsAnErrorAndTheOtherFilesApply) {
  const std::vector<std::string> files = {file_with("bad", "nonsense\n"),
                                          file_with("good", "HIPS_CREDITS=5\n")};
  const auto gathered = hips::gather_settings({}, files);
  EXPECT_THAT(gathered.status.message, HasSubstr("line 1: \"nonsense\""));
  EXPECT_THAT(gathered.settings, testing::SizeIs(1));
  EXPECT_THAT(hips::config_files({{"HOME", "/home/ada"}}),
              ElementsAre("/etc/hips.conf", "/home/ada/.hips.conf"));
}

}  // namespace
}  // namespace config_test
