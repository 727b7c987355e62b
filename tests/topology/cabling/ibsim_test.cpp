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
#include <vector>

#include "tests/topology/cabling/same_cabling.hpp"
#include "topology/cabling/ib_rate.hpp"
#include "topology/cabling/ibnetdiscover.hpp"
#include "topology/wiring/recognise.hpp"

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
export SIM_HOST=$HOST
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

std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  pclose(pipe);
  return text;
}

std::string first_line_of(const std::string& command) {
  const std::string text = output_of(command);
  return text.substr(0, text.find('\n'));
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The output of the real ibnetdiscover for a net, as if run on `host`.
class IbsimRun {
 public:
  IbsimRun(const std::string& net, const std::string& host) {
    const std::string library = first_line_of("ls /usr/lib/*/umad2sim/libumad2sim.so 2>/dev/null");
    std::string folder = (std::filesystem::temp_directory_path() / "hips-ibsim-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) return;
    path_ = folder;
    std::ofstream(path_ / "net") << net;
    std::ofstream(path_ / "script") << kScript;
    // The simulator's sockets are named, so that several runs do not meet.
    const std::string command = "PATH=$PATH:/usr/sbin FOLDER=" + folder + " LIBRARY=" + library +
                                " HOST=" + host + " IBSIM_SOCKNAME=" + path_.filename().string() + " sh " +
                                folder + "/script";
    EXPECT_EQ(std::system(command.c_str()), 0) << text_of(path_ / "log");
  }
  ~IbsimRun() { std::filesystem::remove_all(path_); }
  IbsimRun(const IbsimRun&) = delete;
  IbsimRun& operator=(const IbsimRun&) = delete;

  /// The cables of "blocks", as `ibnetdiscover` prints them, or of "report", as `ibnetdiscover -p` does.
  [[nodiscard]] Result<Cabling> read(const char* file) const {
    const std::string text = text_of(path_ / file);
    EXPECT_TRUE(is_ibnetdiscover(text))
        << file << text << text_of(path_ / "errors") << text_of(path_ / "log");
    return read_ibnetdiscover(file, text);
  }

 private:
  std::filesystem::path path_;
};

bool is_installed() {
  return !first_line_of("ls /usr/lib/*/umad2sim/libumad2sim.so 2>/dev/null").empty() &&
         !first_line_of("PATH=$PATH:/usr/sbin; command -v ibsim >/dev/null && command -v ibnetdiscover")
              .empty();
}

constexpr const char* kNotInstalled =
    "ibsim or ibnetdiscover is missing; install ibsim-utils and infiniband-diags";

TEST(Ibsim, TheRealIbnetdiscoverIsReadToTheSameCabling) {
  ASSERT_TRUE(is_installed()) << kNotInstalled;
  const IbsimRun run(kNet, "n1");
  const Cabling net = value_or_throw(read_ibnetdiscover("net", kNet));
  EXPECT_EQ(net.nodes.size(), 8U);
  EXPECT_EQ(net.cables.size(), 13U);
  for (const char* file : {"blocks", "report"})
    EXPECT_EQ(test::lines_of(value_or_throw(run.read(file))), test::lines_of(net)) << file;
  const auto num_slow = std::ranges::count(net.cables, ib_rate("4xDDR"), &Cable::bandwidth_bytes_per_s);
  EXPECT_EQ(num_slow, 1);
}

/// What a topology says but for rates, which the nets do not tell and the simulator makes up.
std::vector<std::string> shape_lines(Result<Cabling> cabling) {
  if (!cabling) return {cabling.error().message};
  for (Cable& cable : cabling->cables) cable.bandwidth_bytes_per_s = 0;
  std::vector<std::string> lines = test::lines_of(*cabling);
  const auto found = topology_of("net", *std::move(cabling));
  lines.push_back(found ? found->topology.name : found.error().message);
  if (found) lines.insert(lines.end(), found->nodes.begin(), found->nodes.end());
  return lines;
}

TEST(Ibsim, SampleNetsOfThePackageAreTheSameTopologyReadDirectlyAndByIbnetdiscover) {
  ASSERT_TRUE(is_installed()) << kNotInstalled;
  const std::filesystem::path folder = "/usr/share/doc/ibsim-utils/net-examples";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is missing: documents are not installed";
  std::size_t nets = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with("net")) continue;
    SCOPED_TRACE(file);
    ++nets;
    const std::string net =
        file.ends_with(".gz") ? output_of("gzip -dc '" + entry.path().string() + "'") : text_of(entry.path());
    ASSERT_TRUE(is_ibnetdiscover(net));
    const auto direct = shape_lines(read_ibnetdiscover("net", net));
    EXPECT_GT(direct.size(), 1U) << direct.front();
    const IbsimRun run(net, "Hca1");
    for (const char* output : {"blocks", "report"})
      EXPECT_EQ(shape_lines(run.read(output)), direct) << output;
  }
  EXPECT_GE(nets, 5U);
}

}  // namespace
}  // namespace hips::topology
