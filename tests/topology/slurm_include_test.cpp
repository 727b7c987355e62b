#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/choices.hpp"
#include "topology/clusters/slurm.hpp"
#include "topology/clusters/slurm_source.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Files in a folder of their own.
class SlurmInclude : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "slurm-include-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, std::string_view text) const {
    const auto path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }
  static Result<ClusterTopology> read(const std::string& path) {
    return read_slurm_file(path, value_or_throw(read_text_file(path, kMostSlurmBytes)));
  }
  [[nodiscard]] std::string error(const std::string& path) const {
    const auto got = read(path);
    return got ? "accepted" : got.error().message;
  }

  std::filesystem::path folder_;
};

TEST_F(SlurmInclude, TakesFilesRelativeToTheIncludingOne) {
  write("leaves/a.conf", "SwitchName=a Nodes=n[0-1]\nINCLUDE more/b.conf # the others\n");
  write("leaves/more/b.conf", "SwitchName=b Nodes=n[2-3]");
  const std::string path =
      write("topology.conf", "# ours\n  Include\tleaves/a.conf\nSwitchName=top Switches=a,b\n");
  const ClusterTopology slurm = value_or_throw(read(path));
  EXPECT_EQ(slurm.topology.spec, "leafspine:2,2");
  EXPECT_THAT(slurm.nodes, ElementsAre("n0", "n1", "n2", "n3"));
  // The same through the reader that finds out the format.
  EXPECT_TRUE(is_slurm("# ours\ninclude leaves/a.conf\n"));
  EXPECT_FALSE(is_slurm("spec: bcube:2,1\ninclude leaves/a.conf\n"));
}

TEST_F(SlurmInclude, SplitsOfARandomFileReadLikeTheWholeFile) {
  std::mt19937_64 random(test::seed());
  for (int round = 0; round < 100; ++round) {
    const int leaves = std::uniform_int_distribution<int>(2, 8)(random);
    std::vector<std::string> lines;
    for (int leaf = 0; leaf < leaves; ++leaf)
      lines.push_back(fmt::format("SwitchName=l{} \\\n  Nodes=n{}[0-{}]\n", leaf, leaf, random() % 4));
    lines.push_back(fmt::format("SwitchName=top Switches=l[0-{}]\n", leaves - 1));
    std::string whole, split;
    int files = 0;
    for (const std::string& line : lines) {
      whole += line;
      const int depth = static_cast<int>(random() % 4);
      std::string text = line;
      for (int i = 0; i < depth; ++i) {
        const std::string name = fmt::format("r{}-{}.conf", round, files++);
        write(name, text);
        text = fmt::format("Include {}\n", name);
      }
      split += text;
    }
    const ClusterTopology expected = value_or_throw(read_slurm_topology("f", whole));
    const ClusterTopology got = value_or_throw(read(write(fmt::format("r{}.conf", round), split)));
    EXPECT_EQ(got.topology, expected.topology) << split;
    EXPECT_EQ(got.nodes, expected.nodes) << split;
  }
}

TEST_F(SlurmInclude, ErrorsNameTheFileAndItsLine) {
  write("leaf.conf", "# leaf\nSwitchName=a Nodes=n0\nSwitchName=b\n");
  const std::string path =
      write("topology.conf", "SwitchName=top Switches=a,b\nInclude leaf.conf\nSwitchName=c\n");
  EXPECT_THAT(error(path),
              HasSubstr((folder_ / "leaf.conf").string() + ": line 3: SwitchName=\"b\" has neither"));
  write("leaf.conf", "SwitchName=a Nodes=n0\nSwitchName=b Nodes=n1\n");
  EXPECT_THAT(error(path), HasSubstr(path + ": line 3: SwitchName=\"c\" has neither"));
}

TEST_F(SlurmInclude, MissingFilesAndCyclesAreOneErrorWithTheLine) {
  const std::string path = write("topology.conf", "SwitchName=a Nodes=n0\nInclude none.conf\n");
  EXPECT_EQ(error(path),
            fmt::format("{}:2: Include none.conf: \"{}\" cannot be read: No such file or directory; "
                        "paths are relative to the folder of the including file",
                        path, (folder_ / "none.conf").string()));
  write("one.conf", "\nInclude sub/../two.conf\n");
  write("sub/keep", "");
  write("two.conf", "Include one.conf\n");
  EXPECT_EQ(
      error((folder_ / "one.conf").string()),
      fmt::format("{}/sub/../two.conf:1: Include one.conf forms a cycle, as \"{}/sub/../one.conf\" is being "
                  "read; remove one of the lines",
                  folder_.string(), folder_.string()));
  write("self.conf", "Include self.conf\n");
  EXPECT_THAT(error((folder_ / "self.conf").string()),
              HasSubstr("self.conf:1: Include self.conf forms a cycle"));
  EXPECT_THAT(error(write("no.conf", "Include # nothing\n")),
              HasSubstr("no.conf:1: no file follows Include"));
  EXPECT_THAT(error(write("two-names.conf", "Include a b\n")),
              HasSubstr("two-names.conf:1: \"b\" follows Include a; write one file in each line"));
}

TEST_F(SlurmInclude, ManyIncludesEndWithAnError) {
  // Each file includes the next one twice: 2^40 in all.
  for (int i = 0; i < 40; ++i)
    write(fmt::format("f{}.conf", i), fmt::format("Include f{}.conf\nInclude f{}.conf\n", i + 1, i + 1));
  write("f40.conf", "# nothing\n");
  EXPECT_THAT(error((folder_ / "f0.conf").string()),
              HasSubstr("this is Include number 1001 (valid: up to 1000)"));
}

}  // namespace
}  // namespace hips::topology
