#include "topology/clusters/hostlist.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/choices.hpp"

namespace hips::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names(std::string_view text) {
  const auto list = value_or_throw(Hostlist::parse(text));
  const auto names = value_or_throw(list.expand(1000));
  EXPECT_EQ(names.size(), list.size()) << text;
  return names;
}

TEST(Hostlist, SeparatesNamesByCommas) {
  EXPECT_THAT(names("a"), ElementsAre("a"));
  EXPECT_THAT(names("a,b-1.lan,c_2"), ElementsAre("a", "b-1.lan", "c_2"));
  EXPECT_THAT(names("7"), ElementsAre("7"));
}

TEST(Hostlist, TakesSeveralCommasForOneLikeSlurm) {
  for (const std::string text : {"a,", ",a", "a,,", ",,a,"})
    EXPECT_THAT(names(text), ElementsAre("a")) << text;
  EXPECT_THAT(names("n[1-2],,,b,"), ElementsAre("n1", "n2", "b"));
}

TEST(Hostlist, ExpandsNumbersAndRangesInBrackets) {
  EXPECT_THAT(names("tux[0-3,12,18-20]"),
              ElementsAre("tux0", "tux1", "tux2", "tux3", "tux12", "tux18", "tux19", "tux20"));
  EXPECT_THAT(names("n[5]"), ElementsAre("n5"));
  EXPECT_THAT(names("[1-2]"), ElementsAre("1", "2"));
  EXPECT_THAT(names("n[1-2],login,g[3]"), ElementsAre("n1", "n2", "login", "g3"));
  EXPECT_THAT(names("n[3,1,2]"), ElementsAre("n3", "n1", "n2"));
}

TEST(Hostlist, PadsNumbersLikeTheFirstOfTheirRange) {
  EXPECT_THAT(names("n[08-11]"), ElementsAre("n08", "n09", "n10", "n11"));
  EXPECT_THAT(names("n[8-11]"), ElementsAre("n8", "n9", "n10", "n11"));
  EXPECT_THAT(names("n[098-101,5,007]"), ElementsAre("n098", "n099", "n100", "n101", "n5", "n007"));
  EXPECT_THAT(names("n[99-101]"), ElementsAre("n99", "n100", "n101"));
  EXPECT_THAT(names("n[0-1]"), ElementsAre("n0", "n1"));
  EXPECT_THAT(names("n[00]"), ElementsAre("n00"));
}

TEST(Hostlist, VariesTheLastBracketFastest) {
  EXPECT_THAT(names("r[0-1]n[08-09]x"), ElementsAre("r0n08x", "r0n09x", "r1n08x", "r1n09x"));
  EXPECT_THAT(names("[0-1][0-1]"), ElementsAre("00", "01", "10", "11"));
}

TEST(Hostlist, StoresAMillionMillionNamesInTheSizeOfItsText) {
  const auto list = value_or_throw(Hostlist::parse("r[0-999999]n[0-999999]"));
  EXPECT_EQ(list.size(), 1'000'000'000'000U);
  const auto expanded = list.expand(1'000'000);
  ASSERT_FALSE(expanded);
  EXPECT_THAT(expanded.error().message, HasSubstr("has 1000000000000 names (valid: up to 1000000)"));
  EXPECT_EQ(value_or_throw(Hostlist::parse("n[0-999999999999999999]")).size(), 1'000'000'000'000'000'000U);
}

TEST(Hostlist, ExpandsManyRangesInTimeLinearInTheNames) {
  std::string text = "n[0";
  for (int i = 0; i < 300'000; ++i) text += ",7";
  const auto list = value_or_throw(Hostlist::parse(text + "]"));
  const auto names = value_or_throw(list.expand(1'000'000));
  EXPECT_EQ(names.size(), 300'001U);
  EXPECT_EQ(names.front(), "n0");
  EXPECT_EQ(names.back(), "n7");
}

TEST(Hostlist, RejectsInvalidTextsWithARemedy) {
  const std::string long_name(256, 'n');
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "is empty"},
      {",", "has no name"},
      {",,", "has no name"},
      {" ", "character 1 is \" \"; names have letters"},
      {" a", "character 1 is \" \""},
      {"a ", "character 2 is \" \""},
      {"a b", "character 2 is \" \""},
      {"a, b", "character 3 is \" \""},
      {"a\tb", "character 2 is \"\\x09\""},
      {"a\nb", "character 2 is \"\\x0a\""},
      {"a\"b", "names have letters"},
      {"a'b", "names have letters"},
      {"a\\b", "names have letters"},
      {"a|b", "names have letters"},
      {"a~1", "names have letters"},
      {"a;b", "names have letters"},
      {"a=b", "names have letters"},
      {"a#b", "names have letters"},
      {"a*", "names have letters"},
      {"a?", "names have letters"},
      {"a(1)", "names have letters"},
      {"a{1-2}", "names have letters"},
      {"a%b", "names have letters"},
      {"a\xc3\xa4", "\"\\xc3\""},
      {std::string("a\0b", 3), "\"\\x00\""},
      {"]", "there is no \"[\" before it"},
      {"a]", "character 2 is \"]\"; there is no \"[\" before it"},
      {"a[1]]", "character 5 is \"]\"; there is no \"[\" before it"},
      {"a]1[", "there is no \"[\" before it"},
      {"[", "character 2 is the end; expected a number"},
      {"a[", "character 3 is the end; expected a number"},
      {"a[]", "character 3 is \"]\"; expected a number"},
      {"a[1", "character 4 is the end; write \",\""},
      {"a[1,", "character 5 is the end; expected a number"},
      {"a[1-", "character 5 is the end; expected a number"},
      {"a[1-2", "character 6 is the end"},
      {"a[1-2,", "the end; expected a number"},
      {"a[,1]", "character 3 is \",\"; expected a number"},
      {"a[1,]", "character 5 is \"]\"; expected a number"},
      {"a[1,,2]", "character 5 is \",\"; expected a number"},
      {"a[-]", "character 3 is \"-\"; expected a number"},
      {"a[-1]", "character 3 is \"-\"; expected a number"},
      {"a[1-]", "character 5 is \"]\"; expected a number"},
      {"a[1--2]", "character 5 is \"-\"; expected a number"},
      {"a[1-2-3]", "character 6 is \"-\"; write \",\""},
      {"a[[1]]", "character 3 is \"[\"; expected a number"},
      {"a[1[2]]", "character 4 is \"[\"; write \",\""},
      {"a[1-[2]]", "expected a number"},
      {"a[x]", "character 3 is \"x\"; expected a number"},
      {"a[a-c]", "expected a number"},
      {"a[1x]", "character 4 is \"x\"; write \",\""},
      {"a[1-2x]", "write \",\""},
      {"a[0x1]", "write \",\""},
      {"a[1.5]", "write \",\""},
      {"a[+1]", "expected a number"},
      {"a[1 ]", "write \",\""},
      {"a[ 1]", "expected a number"},
      {"a[1:3]", "write \",\""},
      {"a[3-1]", "the range 3-1 descends; write 1-3"},
      {"a[10-9]", "descends"},
      {"a[01-8]", "the range 01-8 is padded at one end"},
      {"a[1-08]", "the range 1-08 is padded at one end"},
      {"a[001-02]", "is padded at one end"},
      {"a[01-002]", "is padded at one end"},
      {"a[1234567890123456789]", "a number has 19 digits (valid: up to 18)"},
      {"a[1-9999999999999999999]", "a number has 19 digits"},
      {"a[0-999999999999999999]b[0-99]", "too many names (valid: up to 2^63 - 1)"},
      {"a[0-999999999]b[0-999999999]c[0-999999999]", "too many names (valid: up to 2^63 - 1)"},
      {"a[0-999999999999999999,0-999999999999999999,0-999999999999999999,0-999999999999999999,0-"
       "999999999999999999,"
       "0-999999999999999999,0-999999999999999999,0-999999999999999999,0-999999999999999999,0-"
       "999999999999999999]",
       "too many names (valid: up to 2^63 - 1)"},
      {long_name, "has names of 256 characters (valid: up to 255)"},
      {long_name + "[1]", "has names of 257 characters"},
      {"a,m[1-2]," + long_name.substr(1) + "[7]x,b", "\"" + long_name.substr(0, 60)},
  };
  EXPECT_GE(cases.size(), 60U);
  for (const auto& [text, words] : cases) {
    const auto read = Hostlist::parse(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Code::kInvalidArgument);
    EXPECT_THAT(read.error().message, HasSubstr(words));
    EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
    EXPECT_LT(read.error().message.size(), 400U);
  }
}

TEST(Hostlist, LimitsTheLengthOfWholeNames) {
  const auto repeated = [](const std::string& piece, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += piece;
    return text;
  };
  // 64 KB of text would expand to 65536 names of 64 KB each.
  for (const auto& [text, length] : std::vector<std::pair<std::string, std::string>>{
           {repeated(std::string(255, 'a') + "[0]", 250) + "[0-65535]", "64005"},
           {repeated("[1]", 256), "256"},
           {std::string(251, 'a') + "[1-20000]", "256"},
           {std::string(251, 'a') + "[1,00002-00003,4]", "256"},
           {std::string(254, 'a') + "[1]b", "256"},
       }) {
    const auto read = Hostlist::parse("login," + text);
    ASSERT_FALSE(read) << text.substr(0, 300);
    EXPECT_EQ(read.error().code, Code::kInvalidArgument);
    EXPECT_THAT(read.error().message, HasSubstr("has names of " + length + " characters (valid: up to 255)"));
  }
  EXPECT_THAT(names(std::string(253, 'a') + "[9-10]"),
              ElementsAre(std::string(253, 'a') + "9", std::string(253, 'a') + "10"));
  EXPECT_EQ(names(repeated("[1]", 255)).front().size(), 255U);
}

TEST(Hostlist, SurvivesAnyText) {
  std::mt19937_64 random(test::seed());
  constexpr std::string_view kAlphabet = "ab019[]-,, x\xff";
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string text;
    for (std::size_t length = random() % 24; length > 0; --length)
      text += kAlphabet[random() % kAlphabet.size()];
    const auto read = Hostlist::parse(text);
    if (!read) continue;
    if (const auto expanded = read->expand(1000)) {
      EXPECT_EQ(expanded->size(), read->size()) << text;
    } else {
      EXPECT_GT(read->size(), 1000U) << text;
    }
  }
}

}  // namespace
}  // namespace hips::topology
