#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/plan/builder.hpp"
#include "tools/hips/compare/entry.hpp"
#include "tools/hips/compare/report.hpp"
#include "tools/hips/compare/size_range.hpp"

namespace hips::compare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::uint64_t> sizes(std::string_view text, std::int64_t factor = 4) {
  return value_or_throw(parse_size_range(text, factor));
}

TEST(SizeRange, MultipliesTheSmallestSizeByTheFactorUpToTheLargest) {
  EXPECT_THAT(sizes("1K:64K"), ElementsAre(1024, 4096, 16384, 65536));
  EXPECT_THAT(sizes("1K:10K", 2), ElementsAre(1024, 2048, 4096, 8192));
  EXPECT_THAT(sizes("64M"), ElementsAre(64U << 20U));
  EXPECT_THAT(sizes("4:4"), ElementsAre(4));
  EXPECT_THAT(sizes("8,4,8,1k:4k", 2), ElementsAre(4, 8, 1024, 2048, 4096));
  EXPECT_EQ(sizes("1K:1G").size(), 11U);
  EXPECT_EQ(sizes("4:1024G", 2).size(), 39U);
}

TEST(SizeRange, RejectsInvalidTextAndNamesTheValidValues) {
  for (const auto& [text, factor, words] : std::vector<std::tuple<std::string, std::int64_t, std::string>>{
           {"", 4, "invalid size \"\""},
           {"64X", 4, "invalid size \"64X\"; write 4096"},
           {"1K:", 4, "invalid size \"\""},
           {":1K", 4, "invalid size \"\""},
           {"1K,,2K", 4, "invalid size \"\""},
           {"-4", 4, "invalid size \"-4\""},
           {"1K:1M:2", 4, "range \"1K:1M:2\" has 3 parts; write LEAST:MOST"},
           {"1M:1K", 4, "range \"1M:1K\" is descending; write 1K:1M"},
           {"0", 4, "invalid size \"0\"; write 4 or more"},
           {"6", 4, "invalid size \"6\"; write a multiple of 4"},
           {"4:6", 4, "invalid size \"6\"; write a multiple of 4"},
           {"1025G", 4, "invalid size \"1025G\"; the maximum is 1024G"},
           {"99999999999999999999G", 4, "invalid size"},
           {"1K:1M", 1, "--factor: 1 is out of range [2, 1024]"},
           {"1K:1M", 0, "--factor: 0"},
           {"1K:1M", -2, "--factor: -2"},
           {"1K:1M", 1025, "--factor: 1025"},
       }) {
    const auto read = parse_size_range(text, factor);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Code::kInvalidArgument);
    EXPECT_THAT(read.error().message, HasSubstr(words));
  }
}

TEST(SizeRange, ParsesTheTextOfEverySize) {
  for (const std::uint64_t bytes : {4ULL, 1000ULL, 1024ULL, 1536ULL, 65536ULL, 1ULL << 30U, 1ULL << 40U})
    EXPECT_THAT(sizes(size_text(bytes)), ElementsAre(bytes));
  EXPECT_EQ(size_text(1536), "1536");
  EXPECT_EQ(size_text(3U << 20U), "3M");
}

TEST(DurationText, HasThreeDigitsInTheNearestUnit) {
  for (const auto& [seconds, text] : std::vector<std::pair<double, std::string>>{{0, "0.00 us"},
                                                                                 {1.234e-6, "1.23 us"},
                                                                                 {9.996e-6, "10.0 us"},
                                                                                 {99.96e-6, "100 us"},
                                                                                 {999.4e-6, "999 us"},
                                                                                 {999.6e-6, "1.00 ms"},
                                                                                 {0.9996, "1.00 s"},
                                                                                 {12.34, "12.3 s"},
                                                                                 {85041, "85041 s"}})
    EXPECT_EQ(duration_text(seconds), text);
}

std::vector<std::string> names(std::string_view text, const char* spec) {
  std::vector<std::string> names;
  for (const Entry& entry : value_or_throw(parse_entries(text, parse_topology(spec)))) {
    EXPECT_EQ(entry.wiring, spec);
    EXPECT_FALSE(entry.baseline);
    names.push_back(entry.name);
  }
  return names;
}

TEST(Entries, AllIsEveryAlgorithmAndRingsIfMeshesCauseIncast) {
  EXPECT_EQ(names("all", "bcube:2,3").size(),
            plan::algorithms().size() - 2);  // bucket and swing are for a torus
  EXPECT_EQ(names("all", "torus:3x3").size(), plan::algorithms().size());
  EXPECT_THAT(names("all", "bcube:3,1"),
              ElementsAre("hips", "hips:ring", "flat-ps", "flat-mesh", "flat-ring", "recursive-doubling",
                          "recursive-multiplying", "halving-doubling", "binomial-tree", "double-tree", "bine",
                          "trees"));
  EXPECT_THAT(names("all", "bcube:3,1[0-4,8]"), ElementsAre("hips", "trees"));
  EXPECT_THAT(names("hips:ps:2,all", "bcube:3,1[0-4,8]"), ElementsAre("hips:ps:2", "hips", "trees"));
  EXPECT_THAT(names("all,hips", "bcube:3,1[0-4,8]"), ElementsAre("hips", "trees"));
}

TEST(Entries, ParametersFollowTheAlgorithm) {
  const auto entries = value_or_throw(
      parse_entries("hips:ps:2,hips:mesh/ring,flat-ps:4,flat-ring:1,flat-mesh", parse_topology("bcube:3,1")));
  ASSERT_EQ(entries.size(), 5U);
  EXPECT_EQ(entries[0].request.patterns[0].num_leaders, 2);
  EXPECT_EQ(entries[1].request.patterns[0].gather, Pattern::kRing);
  EXPECT_EQ(entries[2].request.num_leaders, 4);
  EXPECT_EQ(entries[3].request.num_rings, 1);
  EXPECT_EQ(entries[4].request.algorithm, "flat-mesh");
}

TEST(Entries, InvalidTextIsNamed) {
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"", "unknown algorithm \"\"; expected all or any of hips, flat-ps"},
           {"nccl", "unknown algorithm \"nccl\""},
           {"hips,", "unknown algorithm \"\""},
           {"hips,hips", "\"hips\" occurs twice"},
           {"hips:star", "\"hips:star\": unknown pattern \"star\""},
           {"flat-ps:0", "\"flat-ps:0\": invalid number \"0\" of leaders"},
           {"flat-ps:1x", "invalid number \"1x\" of leaders"},
           {"flat-ring:", "invalid number \"\" of rings"},
           {"flat-ring:99999999999", "invalid number \"99999999999\" of rings"},
           {"flat-mesh:2", "flat-mesh has no parameter"},
       }) {
    const auto read = parse_entries(text, parse_topology("bcube:3,1"));
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Code::kInvalidArgument);
    EXPECT_THAT(read.error().message, HasSubstr(words));
  }
}

TEST(Entries, BaselinesHaveTheRatesAndRanksOfTheTopologyWithOneNicAndWithAll) {
  const auto baselines = baseline_entries(parse_topology("bcube:3,1@25Gb/2"));
  ASSERT_EQ(baselines.size(), 6U);
  for (const Entry& entry : baselines) {
    EXPECT_TRUE(entry.baseline);
    const Topology own = parse_topology(entry.wiring);
    EXPECT_EQ(own.num_ranks(), 18);
    EXPECT_EQ(own.ranks_per_server, 2);
    EXPECT_EQ(own.num_rails, entry.name.ends_with("1 NIC") ? 1 : 2) << entry.name;
    EXPECT_EQ(own.levels.back().bandwidth_bytes_per_s, 25e9 / 8);
    EXPECT_TRUE(plan::make_builder(own, entry.request)) << entry.name;
  }
  EXPECT_EQ(baseline_entries(parse_topology("fattree:4")).size(), 3U);
}

}  // namespace
}  // namespace hips::compare
