#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>

#include "tests/choices.hpp"
#include "tests/processor_time.hpp"
#include "tests/topology/samples.hpp"
#include "topology/formats/parse.hpp"
#include "topology/names.hpp"

namespace hips {
namespace {

using ::testing::HasSubstr;

TEST(ParseTopology, ReadsBCubeInTheNotationOfThePapers) {
  const Topology topology = parse_topology("bcube:3,1");
  EXPECT_EQ(topology.family, Family::kBCube);
  EXPECT_EQ(topology.name, "BCube(3,1)");
  EXPECT_EQ(topology.num_ranks(), 9);
  EXPECT_EQ(topology.num_rails, 2);
  EXPECT_TRUE(topology.servers_relay);
  ASSERT_EQ(topology.levels.size(), 2u);
  for (int l = 0; l < 2; ++l) {
    EXPECT_EQ(topology.levels[l].radix, 3);
    EXPECT_EQ(topology.levels[l].kind, LevelKind::kSwitch);
    EXPECT_EQ(topology.levels[l].rails, std::vector<Rail>{l});
  }
}

TEST(ParseTopology, ReadsMixedRadicesLevelZeroFirst) {
  const Topology topology = parse_topology("bcube:2x4x3");
  ASSERT_EQ(topology.levels.size(), 3u);
  EXPECT_EQ(topology.levels[0].radix, 2);
  EXPECT_EQ(topology.levels[1].radix, 4);
  EXPECT_EQ(topology.levels[2].radix, 3);
  EXPECT_EQ(topology.num_ranks(), 24);
}

TEST(ParseTopology, GivesATorusTwoNicsForEachDimension) {
  const Topology topology = parse_topology("torus:4x2x3");
  ASSERT_EQ(topology.levels.size(), 3u);
  EXPECT_EQ(topology.num_rails, 6);
  EXPECT_EQ(topology.levels[1].name, "y");
  EXPECT_EQ(topology.levels[1].kind, LevelKind::kRing);
  EXPECT_EQ(topology.levels[1].rails, (std::vector<Rail>{2, 3}));
}

TEST(ParseTopology, GivesAMeshLinesInsteadOfRings) {
  const Topology topology = parse_topology("mesh:4x2x3");
  ASSERT_EQ(topology.levels.size(), 3u);
  EXPECT_EQ(topology.num_rails, 6);
  EXPECT_EQ(topology.levels[2].kind, LevelKind::kLine);
  EXPECT_EQ(topology.levels[2].rails, (std::vector<Rail>{4, 5}));
  EXPECT_EQ(topology.num_links, 3 * 6 + 1 * 12 + 2 * 8);
  EXPECT_EQ(static_cast<std::int64_t>(topology.graph().links.size()), topology.num_links);
  EXPECT_EQ(parse_topology("mesh:1x4").spec, "mesh:4");
}

TEST(ParseTopology, GivesAFatTreeThreeTiersOverOneNic) {
  const Topology topology = parse_topology("fattree:4");
  EXPECT_EQ(topology.num_ranks(), 16);
  EXPECT_EQ(topology.num_rails, 1);
  EXPECT_FALSE(topology.servers_relay);
  ASSERT_EQ(topology.levels.size(), 3u);
  EXPECT_EQ(topology.levels[0].name, "edge");
  EXPECT_EQ(topology.levels[2].name, "core");
  EXPECT_EQ(topology.levels[2].radix, 4);
  for (const Level& level : topology.levels) EXPECT_EQ(level.kind, LevelKind::kTree);
}

TEST(ParseTopology, GivesALeafSpineTwoTiersAndByDefaultASpineForEachServerOfALeaf) {
  const Topology topology = parse_topology("leafspine:4,8");
  EXPECT_EQ(topology.num_ranks(), 32);
  ASSERT_EQ(topology.levels.size(), 2u);
  EXPECT_EQ(topology.levels[0].name, "leaf");
  EXPECT_EQ(topology.levels[0].radix, 8);
  EXPECT_EQ(topology.levels[1].name, "spine");
  EXPECT_EQ(topology.num_switches, 4 + 8);
  EXPECT_EQ(parse_topology("leafspine:4,8,8").spec, "leafspine:4,8");
  EXPECT_EQ(parse_topology("leafspine:12,4,1").num_switches, 13);
  EXPECT_THROW(parse_topology("leafspine:4"), Error);
  EXPECT_THROW(parse_topology("leafspine:1,8"), Error);
  EXPECT_THROW(parse_topology("leafspine:4,8,9"), Error);
}

TEST(ParseTopology, GivesARailRackOneLevelOverAllRails) {
  const Topology topology = parse_topology("rail:9,3");
  ASSERT_EQ(topology.levels.size(), 1u);
  EXPECT_EQ(topology.levels[0].rails, (std::vector<Rail>{0, 1, 2}));
  EXPECT_EQ(topology.num_switches, 3);
  EXPECT_EQ(parse_topology("switch:9").name, "Switch(9)");
}

TEST(ParseTopology, PutsRanksOfOneServerIntoTheInnermostLevel) {
  const Topology topology = parse_topology("bcube:3,1/4");
  ASSERT_EQ(topology.levels.size(), 3u);
  EXPECT_EQ(topology.levels[0].kind, LevelKind::kNode);
  EXPECT_EQ(topology.levels[0].radix, 4);
  EXPECT_TRUE(topology.levels[0].rails.empty());
  EXPECT_EQ(topology.num_ranks(), 36);
  EXPECT_EQ(topology.num_servers(), 9);
  EXPECT_EQ(topology.num_switches, 6);
  EXPECT_EQ(topology.num_links, 18);
}

TEST(ParseTopology, ReadsTheRateOfTheNicsInBitsPerSecond) {
  EXPECT_DOUBLE_EQ(parse_topology("bcube:3,1").levels[0].bandwidth_bytes_per_s, 12.5e9);
  EXPECT_DOUBLE_EQ(parse_topology("bcube:3,1@25Gb").levels[1].bandwidth_bytes_per_s, 3.125e9);
  EXPECT_DOUBLE_EQ(parse_topology("switch:3@2.5Gb/2").levels[1].bandwidth_bytes_per_s, 312.5e6);
  EXPECT_DOUBLE_EQ(parse_topology("torus:3@100Mb").levels[0].bandwidth_bytes_per_s, 12.5e6);
}

TEST(ParseTopology, LeavesOutLevelsOfRadixOne) {
  EXPECT_EQ(parse_topology("bcube:1x3x1x2").spec, "bcube:3x2");
  EXPECT_EQ(parse_topology("bcube:1x3x1x2").num_rails, 2);
  EXPECT_EQ(parse_topology("torus:1x4").spec, "torus:4");
  EXPECT_EQ(parse_topology("torus:1x4").num_rails, 2);
  EXPECT_EQ(parse_topology("fattree:2").levels.size(), 1u);
  EXPECT_TRUE(parse_topology("switch:1").levels.empty());
  EXPECT_EQ(parse_topology("switch:1").num_ranks(), 1);
}

TEST(ParseTopology, WritesOneCanonicalSpecForOneTopology) {
  EXPECT_EQ(parse_topology("bcube:3x3").spec, "bcube:3,1");
  EXPECT_EQ(parse_topology("bcube:03,01").spec, "bcube:3,1");
  EXPECT_EQ(parse_topology("bcube:3,1/1").spec, "bcube:3,1");
  EXPECT_EQ(parse_topology("bcube:3,1@100Gb").spec, "bcube:3,1");
  EXPECT_EQ(parse_topology("bcube:3,1@100000Mb/2").spec, "bcube:3,1/2");
  EXPECT_EQ(parse_topology("bcube:3,1@2500Mb").spec, "bcube:3,1@2.5Gb");
}

TEST(ParseTopology, ReadsItsOwnCanonicalSpec) {
  for (const std::string& spec : tests::sample_specs()) {
    const Topology a = parse_topology(spec);
    const Topology b = parse_topology(a.spec);
    EXPECT_EQ(a.spec, b.spec);
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.num_ranks(), b.num_ranks());
    EXPECT_EQ(a.num_rails, b.num_rails);
    ASSERT_EQ(a.levels.size(), b.levels.size()) << spec;
    for (std::size_t l = 0; l < a.levels.size(); ++l) {
      EXPECT_EQ(a.levels[l].radix, b.levels[l].radix);
      EXPECT_EQ(a.levels[l].rails, b.levels[l].rails);
      EXPECT_EQ(a.levels[l].bandwidth_bytes_per_s, b.levels[l].bandwidth_bytes_per_s);
    }
  }
}

TEST(ParseTopology, CostsNoMoreForMillionsOfServers) {
  // A second for a thousand topologies of millions of servers is a thousand times what is needed.
  const auto begin = hips::test::processor_time();
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(parse_topology("bcube:10,5").num_ranks(), 1'000'000);
  EXPECT_LT(hips::test::processor_time() - begin, std::chrono::seconds(1));
  EXPECT_EQ(parse_topology("fattree:2046").num_ranks(), 2046LL * 2046 * 2046 / 4);
  EXPECT_EQ(parse_topology("switch:2147483647").num_ranks(), 2147483647);
}

struct Malformed {
  const char* spec;
  const char* says;  ///< the wrong value, or the missing part
};

// One sentence that names the spec, the part, the value seen and what would be right.
TEST(ParseTopology, RejectsEveryMalformedSpecInOneSentence) {
  const std::vector<Malformed> cases = {
      {"", "spec is empty"},
      {" ", "unknown family \" \""},
      {":", "unknown family \"\""},
      {"/", "unknown family \"/\", and no file of that name"},
      {"/tmp/node/99", "unknown family \"/tmp/node/99\", and no file of that name"},
      {"3,1", "unknown family \"3,1\", and no file of that name"},
      {"bcube", "a \":\" and numbers must follow bcube"},
      {"bcube:", "nothing follows \"bcube:\""},
      {"bcube:/2", "nothing follows \"bcube:\""},
      {"bcub:3,1", "unknown family \"bcub\";"},
      {"topology.conf", "unknown family \"topology.conf\", and no file of that name;"},
      {"BCube:3,1", "unknown family \"BCube\""},
      {" bcube:3,1", "unknown family \" bcube\""},
      {"bcube :3,1", "unknown family \"bcube \""},
      {"bcube:3", "k is missing after \"3\""},
      {"bcube:3,", "k is missing"},
      {"bcube:,1", "n is missing"},
      {"bcube:,", "n is missing"},
      {"bcube:3,1,2", "3 numbers follow"},
      {"bcube:3,1x2", "mixes \",\" and \"x\""},
      {"bcube:0,1", "n is \"0\""},
      {"bcube:1,1", "n is \"1\""},
      {"bcube:-3,1", "n is \"-3\""},
      {"bcube:+3,1", "n is \"+3\""},
      {"bcube:3,-1", "k is \"-1\""},
      {"bcube:3.5,1", "n is \"3.5\""},
      {"bcube:3, 1", "k is \" 1\""},
      {"bcube:3,1 ", "k is \"1 \""},
      {"bcube:3,1:", "k is \"1:\""},
      {"bcube:n,k", "n is \"n\""},
      {"bcube:0x3,1", "mixes"},
      {"bcube:2,30", "k is \"30\""},
      {"bcube:2,29x", "mixes"},
      {"bcube:10,9", "too many servers (valid: up to 2147483647)"},
      {"bcube:99999999999999999999,1", "n is \"99999999999999999999\""},
      {"bcube:3,99999999999999999999", "k is \"99999999999999999999\""},
      {"bcube:2x", "the 2nd radix is missing"},
      {"bcube:x2", "the 1st radix is missing"},
      {"bcube:2xx3", "the 2nd radix is missing"},
      {"bcube:2x0x3", "the 2nd radix is \"0\""},
      {"bcube:2X3", "k is missing after \"2X3\""},
      {"bcube:1x1", "no radix is above 1"},
      {"bcube:65536x65536", "too many servers (valid: up to 2147483647)"},
      {"torus:", "nothing follows"},
      {"torus:4,4", "the 1st side is \"4,4\""},
      {"torus:4x", "the 2nd side is missing"},
      {"mesh:3x0", "the 2nd side is \"0\""},
      {"torus:4x4x0", "the 3rd side is \"0\""},
      {"torus:1x1x1", "no side is above 1"},
      {"torus:4*4", "the 1st side is \"4*4\""},
      {"torus:50000x50000", "too many servers (valid: up to 2147483647)"},
      {"fattree:5", "k is 5, which is odd"},
      {"fattree:0", "k is \"0\""},
      {"fattree:1", "k is \"1\""},
      {"fattree:4,2", "k is \"4,2\""},
      {"fattree:four", "k is \"four\""},
      {"fattree:2048", "too many servers (valid: up to 2147483647)"},
      {"fat-tree:4", "unknown family \"fat-tree\""},
      {"rail:9", "1 number follows"},
      {"rail:9,2,1", "3 numbers follow"},
      {"rail:9,0", "the number of rails is \"0\""},
      {"rail:9,65", "the number of rails is \"65\""},
      {"rail:0,2", "the number of servers is \"0\""},
      {"rail:,", "the number of servers is missing"},
      {"switch:0", "the number of servers is \"0\""},
      {"switch:2147483648", "the number of servers is \"2147483648\""},
      {"switch:1e3", "the number of servers is \"1e3\""},
      {"switch:3,2", "the number of servers is \"3,2\""},
      {"switch:3/", "the number of ranks on each server is missing"},
      {"switch:3/0", "ranks on each server is \"0\""},
      {"switch:3/x", "ranks on each server is \"x\""},
      {"switch:3/2/2", "ranks on each server is \"2/2\""},
      {"switch:65536/65536", "65536 ranks on each of 65536 servers"},
      {"switch:3@", "rate after \"@\" is missing"},
      {"switch:3@25", "the rate is \"25\""},
      {"switch:3@Gb", "the rate is \"Gb\""},
      {"switch:3@25GB", "the rate is \"25GB\""},
      {"switch:3@-25Gb", "the rate is \"-25Gb\""},
      {"switch:3@infGb", "the rate is \"infGb\""},
      {"switch:3@nanGb", "the rate is \"nanGb\""},
      {"switch:3@1e3Gb", "the rate is \"1e3Gb\""},
      {"switch:3@0Gb", "the rate is \"0Gb\"; it must be from 1Mb"},
      {"switch:3@100001Gb", "the rate is \"100001Gb\"; it must be from 1Mb"},
      {"switch:3@25Gb@25Gb", "the rate is \"25Gb@25Gb\""},
      {"switch:3/2@25Gb", "the rate is after the ranks"},
      {"switch:3\n", "the number of servers is \"3\\x0a\""},
      {"bcube:3,1\"", "k is \"1\\\"\""},
  };
  ASSERT_GE(cases.size(), 40u);
  for (const Malformed& bad : cases) {
    const auto parsed = topology::parse(bad.spec);
    ASSERT_FALSE(parsed) << bad.spec;
    const Status& status = parsed.error();
    EXPECT_EQ(status.code, Code::kInvalidArgument) << bad.spec;
    EXPECT_THAT(status.message, HasSubstr(bad.says)) << bad.spec;
    EXPECT_EQ(status.message.rfind("topology \"", 0), 0u) << status.message;
    // One sentence: one line, and no full stop before another sentence.
    EXPECT_EQ(status.message.find('\n'), std::string::npos) << status.message;
    EXPECT_EQ(status.message.find(". "), std::string::npos) << status.message;
    EXPECT_LT(status.message.size(), 500u) << status.message;
  }
}

TEST(ParseTopology, ThrowsTheErrorThatParseReturns) {
  try {
    (void)parse_topology("bcube:3");
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.status().code, Code::kInvalidArgument);
    EXPECT_STREQ(error.what(), topology::parse("bcube:3").error().message.c_str());
  }
}

TEST(ParseTopology, ShortensLongSpecsInMessages) {
  const auto parsed = topology::parse("bcube:" + std::string(1 << 20, '9') + ",1");
  ASSERT_FALSE(parsed);
  EXPECT_LT(parsed.error().message.size(), 500u);
  EXPECT_THAT(topology::parse(std::string("switch:3\0x", 10)).error().message, HasSubstr("\\x00"));
}

TEST(ParseTopology, NeverCrashesOnRandomBytes) {
  const char* given = std::getenv("HIPS_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "HIPS_SEED=" << seed << "\n";
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::string_view alphabet = "0123456789xX,:/@.GbM- \n";
  std::size_t accepted = 0;
  const std::size_t trials = test::runs_a_sample() ? 10'000 : 100'000;
  for (std::size_t i = 0; i < trials; ++i) {
    std::string spec;
    if (i % 4 == 0) {
      // Random bytes.
      for (std::size_t n = below(24); n > 0; --n) spec += static_cast<char>(random());
    } else {
      // A sample with a few bytes changed, dropped or added.
      spec = tests::sample_specs()[below(tests::sample_specs().size())];
      for (std::size_t edits = below(4); edits > 0; --edits) {
        const std::size_t at = below(spec.size() + 1);
        const char c = alphabet[below(alphabet.size())];
        switch (below(3)) {
          case 0:
            spec.insert(at, 1, c);
            break;
          case 1:
            if (at < spec.size()) spec.erase(at, 1);
            break;
          default:
            if (at < spec.size()) spec[at] = c;
            break;
        }
      }
    }
    const auto parsed = topology::parse(spec);
    if (!parsed) {
      ASSERT_EQ(parsed.error().code, Code::kInvalidArgument) << spec;
      ASSERT_FALSE(parsed.error().message.empty());
      continue;
    }
    ++accepted;
    ASSERT_GE(parsed->num_ranks(), 1) << spec;
    ASSERT_EQ(topology::parse(parsed->spec)->spec, parsed->spec) << spec;
  }
  // Unedited samples alone make about a fifth of them.
  EXPECT_GT(accepted, trials / 10);
}

TEST(Names, CoverAllFamiliesAndKinds) {
  for (const std::string& spec : tests::sample_specs()) {
    const Topology topology = parse_topology(spec);
    EXPECT_EQ(spec.substr(0, spec.find(':')), to_string(topology.family));
  }
  EXPECT_STREQ(to_string(LevelKind::kSwitch), "switch");
  EXPECT_STREQ(to_string(LevelKind::kRing), "ring");
  EXPECT_STREQ(to_string(LevelKind::kTree), "tree");
  EXPECT_STREQ(to_string(LevelKind::kNode), "node");
}

}  // namespace
}  // namespace hips
