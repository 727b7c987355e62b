// The real ibnetdiscover, on a fabric of ibsim.

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/topology/cabling/same_cabling.hpp"
#include "topology/cabling/ib_rate.hpp"
#include "topology/cabling/ibnetdiscover.hpp"

namespace hips::topology {
namespace {

/// Two leaves with two cables to each of two spines, all 4xQDR but one, which has come up at half of it. n4 has two ports.
constexpr const char* kNet = R"(Switch 8 "leaf1"
[1] "n1"[1] # lid 1 4xQDR
[2] "n2"[1] # lid 1 4xQDR
[5] "spine1"[1] # lid 1 4xQDR
[6] "spine1"[2] # lid 1 4xDDR
[7] "spine2"[1] # lid 1 4xQDR
[8] "spine2"[2] # lid 1 4xQDR

Switch 8 "leaf2"
[1] "n3"[1] # lid 1 4xQDR
[2] "n4"[1] # lid 1 4xQDR
[3] "n4"[2] # lid 1 4xQDR
[5] "spine1"[3] # lid 1 4xQDR
[6] "spine1"[4] # lid 1 4xQDR
[7] "spine2"[3] # lid 1 4xQDR
[8] "spine2"[4] # lid 1 4xQDR

Switch 8 "spine1"
[1] "leaf1"[5] # lid 1 4xQDR
[2] "leaf1"[6] # lid 1 4xDDR
[3] "leaf2"[5] # lid 1 4xQDR
[4] "leaf2"[6] # lid 1 4xQDR

Switch 8 "spine2"
[1] "leaf1"[7] # lid 1 4xQDR
[2] "leaf1"[8] # lid 1 4xQDR
[3] "leaf2"[7] # lid 1 4xQDR
[4] "leaf2"[8] # lid 1 4xQDR

Hca 1 "n1"
[1] "leaf1"[1] # lid 1 4xQDR

Hca 1 "n2"
[1] "leaf1"[2] # lid 1 4xQDR

Hca 1 "n3"
[1] "leaf2"[1] # lid 1 4xQDR

Hca 2 "n4"
[1] "leaf2"[2] # lid 1 4xQDR
[2] "leaf2"[3] # lid 1 4xQDR
)";

/// Runs ibsim with an open input, and ibnetdiscover as if on n1.
constexpr const char* kScript = R"(
cd "$FOLDER" || exit 1
mkfifo input
timeout 30 ibsim -s net <input >log 2>&1 &
simulator=$!
exec 3>input
export SIM_HOST=n1
for i in 1 2 3 4 5 6 7 8 9 10; do
  LD_PRELOAD=$LIBRARY timeout 5 ibnetdiscover >blocks 2>errors 3>&- && [ -s blocks ] && break
  sleep 0.5
done
LD_PRELOAD=$LIBRARY timeout 5 ibnetdiscover -p >report 2>>errors 3>&-
exec 3>&-
kill $simulator
wait
exit 0
)";

std::string first_line_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string line;
  for (int c = std::fgetc(pipe); c != EOF && c != '\n'; c = std::fgetc(pipe)) line += static_cast<char>(c);
  pclose(pipe);
  return line;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Ibsim, TheRealIbnetdiscoverIsReadToTheSameCabling) {
  const std::string library = first_line_of("ls /usr/lib/*/umad2sim/libumad2sim.so 2>/dev/null");
  if (library.empty() ||
      first_line_of("PATH=$PATH:/usr/sbin; command -v ibsim >/dev/null && command -v ibnetdiscover").empty())
    FAIL() << "ibsim or ibnetdiscover is missing; install ibsim-utils and infiniband-diags";
  std::string folder = (std::filesystem::temp_directory_path() / "hips-ibsim-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::filesystem::path path(folder);
  std::ofstream(path / "net") << kNet;
  std::ofstream(path / "script") << kScript;
  // The simulator's sockets are named, so that several runs do not meet.
  const std::string name = path.filename().string();
  const std::string command = "PATH=$PATH:/usr/sbin FOLDER=" + folder + " LIBRARY=" + library +
                              " IBSIM_SOCKNAME=" + name + " sh " + folder + "/script";
  ASSERT_EQ(std::system(command.c_str()), 0) << text_of(path / "log");

  const Cabling net = value_or_throw(read_ibnetdiscover("net", kNet));
  EXPECT_EQ(net.nodes.size(), 8U);
  EXPECT_EQ(net.cables.size(), 13U);
  for (const char* file : {"blocks", "report"}) {
    const std::string text = text_of(path / file);
    ASSERT_TRUE(is_ibnetdiscover(text)) << file << text << text_of(path / "errors") << text_of(path / "log");
    const Cabling cabling = value_or_throw(read_ibnetdiscover(file, text));
    EXPECT_EQ(test::lines_of(cabling), test::lines_of(net)) << text;
  }
  const auto num_slow = std::ranges::count(net.cables, ib_rate("4xDDR"), &Cable::bandwidth_bytes_per_s);
  EXPECT_EQ(num_slow, 1);
  std::filesystem::remove_all(path);
}

}  // namespace
}  // namespace hips::topology
