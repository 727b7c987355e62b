// What `scontrol show topology` prints, as it is copied from a terminal: with prompts, and with long lines folded at its width.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/choices.hpp"
#include "topology/clusters/slurm.hpp"
#include "topology/clusters/slurm_lines.hpp"

namespace hips::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// "n[1,3-5,...],m7" of some hosts that no other list has.
std::string random_list(std::mt19937_64& random, int& next, int count) {
  std::string list;
  for (bool is_first = true; count > 0; is_first = false) {
    if (!is_first) list += ",";
    if (random() % 3 == 0) {
      list += fmt::format("m{}", next += 2);
      --count;
      continue;
    }
    list += "n[";
    for (std::size_t ranges = 1 + random() % 20; ranges > 0 && count > 0; --ranges) {
      if (!list.ends_with('[')) list += ",";
      const int length = 1 + static_cast<int>(random() % 4);
      next += 2;
      list += length == 1 ? fmt::format("{}", next) : fmt::format("{}-{}", next, next + length - 1);
      next += length;
      count -= length;
    }
    list += "]";
  }
  return list;
}

/// As scontrol prints it, with a blank at the end of each line.
std::vector<std::string> random_lines(std::mt19937_64& random) {
  std::vector<std::string> lines;
  std::string all, leaves;
  int next = 1000;
  for (std::size_t leaf = 0; leaf < 2 + random() % 4; ++leaf) {
    const std::string list = random_list(random, next, 20 + static_cast<int>(random() % 60));
    lines.push_back(fmt::format("SwitchName=leaf{} Level=0 LinkSpeed=1 Nodes={} ", leaf, list));
    all += (all.empty() ? "" : ",") + list;
    leaves += fmt::format("{}leaf{}", leaves.empty() ? "" : ",", leaf);
  }
  lines.push_back(fmt::format("SwitchName=spine Level=1 LinkSpeed=1 Nodes={} Switches={} ", all, leaves));
  return lines;
}

/// At the width of a terminal; blanks at the ends of its lines are lost or not.
std::string folded(const std::string& line, std::size_t width, bool keeps_blanks) {
  std::string text;
  for (std::size_t at = 0; at < line.size(); at += width) {
    std::string piece = line.substr(at, width);
    if (!keeps_blanks) piece.erase(piece.find_last_not_of(' ') + 1);
    if (!piece.empty()) text += piece + "\n";
  }
  return text;
}

TEST(SlurmLines, LinesFoldedByATerminalAreJoined) {
  const std::uint64_t num_seeds = test::runs_a_sample() ? 100 : 1000;
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    std::mt19937_64 random(test::seed() + seed);
    const auto lines = random_lines(random);
    const std::size_t width = 80 + random() % 60;
    std::string whole, pasted = random() % 2 == 0 ? "[user@login ~]$ scontrol show topology\n" : "";
    for (const std::string& line : lines) {
      whole += line + "\n";
      pasted += folded(line, width, seed % 2 == 0);
    }
    if (random() % 2 == 0) pasted += "[user@login ~]$ ";
    ASSERT_TRUE(is_slurm(pasted)) << pasted;
    const auto expected = read_slurm("t.conf", whole), read = read_slurm("t.conf", pasted);
    ASSERT_TRUE(expected) << expected.error().message;
    ASSERT_TRUE(read) << read.error().message << "\n" << pasted;
    EXPECT_EQ(read->topology.spec, expected->topology.spec) << pasted;
    ASSERT_EQ(read->nodes, expected->nodes) << pasted;
  }
}

TEST(SlurmLines, PromptsAreLeftOut) {
  const std::string line = "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0-3] \n";
  for (const std::string prompt :
       {"$ scontrol show topology", "% scontrol show topo", "[root@head slurm]# scontrol show topology",
        "user@login:~$ /opt/slurm/bin/scontrol show topology | tee t.conf", "> scontrol show topology",
        "user@login:~$"}) {
    const std::string text = prompt + "\n" + line + prompt + "\n";
    EXPECT_TRUE(is_slurm(text)) << text;
    EXPECT_EQ(value_or_throw(read_slurm("t.conf", text)).topology.spec, "switch:4") << text;
  }
}

TEST(SlurmLines, CommentsThatLookLikePromptsAreNone) {
  const auto three =
      read_slurm("t.conf",
                 "SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n[2-3] # see scontrol show topology\n"
                 "SwitchName=c Nodes=n[4-5]\nSwitchName=t Switches=a,b,c\n");
  ASSERT_TRUE(three) << three.error().message;
  EXPECT_EQ(three->nodes.size(), 6U);
  for (const std::string rest :
       {"n[2-3] # rack 2 #", "n[2-3] # of /usr/bin/scontrol show nodes", "n[2-3] # 5 %"}) {
    const auto read = read_slurm("t.conf", "SwitchName=a Nodes=n[0-1],\\\n" + rest + "\n");
    ASSERT_TRUE(read) << rest << ": " << read.error().message;
    EXPECT_THAT(read->nodes, ElementsAre("n0", "n1", "n2", "n3")) << rest;
  }
}

TEST(SlurmLines, OnesThatScontrolHasCutAreNamed) {
  const auto read = read_slurm("t.conf", "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0001-0004,0006,00\n");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message,
              ::testing::EndsWith(
                  "; if scontrol has cut the line, run SLURM_TOPO_LEN=1000000 scontrol show topology"));
}

TEST(SlurmLines, ListsAreJoinedWhereTheyAreOpenWhateverTheWidth) {
  for (const std::string text :
       {"SwitchName=s Nodes=n[1-\n3,5],m\nSwitchName=t Switches=s\n", "SwitchName=s Nodes=n[1-3,5],\nm\n",
        "SwitchName=s Nodes=n[1-3,5]\n,m\n", "SwitchName=s Nodes=\nn[1-3,5],m\n"}) {
    const auto read = read_slurm("t.conf", text);
    ASSERT_TRUE(read) << text << read.error().message;
    EXPECT_THAT(read->nodes, ElementsAre("n1", "n2", "n3", "n5", "m")) << text;
  }
}

TEST(SlurmLines, OtherLinesAreNot) {
  // Nothing tells whether a comma is missing, or a line.
  for (const std::string text : {"SwitchName=s Nodes=n1\nn2\n", "SwitchName=s Nodes=n1 Swit\nches=t\n"}) {
    const auto read = read_slurm("t.conf", text);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().message, StartsWith("t.conf: line ")) << text;
    EXPECT_THAT(
        read.error().message,
        HasSubstr(
            " is not KEY=VALUE; write such as SwitchName=leaf0, and join lines that a terminal has folded"));
  }
  const std::string long_list = "SwitchName=s0 Nodes=" + std::string(90, 'n') + "\n";
  EXPECT_EQ(
      value_or_throw(read_slurm("t.conf", long_list + "SwitchName=s1 Nodes=m\nSwitchName=t Switches=s0,s1\n"))
          .topology.num_servers(),
      2);
  const auto no_switch = read_slurm("t.conf", long_list + "SwitchName=s1 Nodes=m1\nNodes=m2\n");
  ASSERT_FALSE(no_switch);
  EXPECT_THAT(no_switch.error().message, StartsWith("t.conf: line 3: Switches and Nodes belong to a switch"));
}

TEST(SlurmLines, AreReadInLinearTime) {
  std::string words, folds, keys;
  for (int i = 0; i < 300'000; ++i) words += fmt::format("k{}=1 ", i);
  for (int i = 0; i < 100'000; ++i) folds += "a[1-\n";
  for (int i = 0; i < 20'000; ++i) keys += std::string(79, 'k') + "=\n";
  for (const std::string& text : {words, folds, keys, keys + folds}) {
    SlurmLines lines(text);
    std::size_t count = 0;
    while (auto line = lines.next()) {
      std::string_view rest = line->text;
      while (true) {
        const auto pair = take_pair(rest);
        if (!pair || !*pair) break;
        ++count;
      }
    }
    EXPECT_GE(count, 0U);
  }
}

TEST(SlurmLines, NotesNameKeysAsTheyAreWritten) {
  const auto cluster = value_or_throw(
      read_slurm("t.conf", "SwitchName=s Nodes=n[0-1]\nNodeName=n[0-1] CPUs=8\nNodeName=n2\n"));
  EXPECT_THAT(cluster.notes,
              ElementsAre("t.conf: line 2: CPUs=\"8\" is unknown; ignored",
                          "t.conf: line 2: NodeName=\"n[0-1]\" is unknown (and 1 more); ignored"));
  EXPECT_THAT(value_or_throw(read_slurm("t.conf", "SwitchName=s Nodes=n[0-1]\n")).notes, IsEmpty());
}

}  // namespace
}  // namespace hips::topology
