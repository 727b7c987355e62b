// `hips check` as a user types it. HIPS_TOOL names the program.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lib/plan/builder.hpp"
#include "lib/plan/formats/plan_json.hpp"
#include "tests/processor_time.hpp"

namespace hips::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Ran {
  int exit_code = -1;
  std::string output;  ///< both streams, or stdout alone where the arguments send stderr elsewhere
};

Ran hips_check(const std::string& arguments) {
  const char* program = std::getenv("HIPS_TOOL");
  if (program == nullptr) return {-1, "HIPS_TOOL is not set"};
  const bool redirected = arguments.find("2>") != std::string::npos;
  const std::string command = std::string(program) + " check " + arguments + (redirected ? "" : " 2>&1");
  Ran ran;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return ran;
  std::array<char, 4096> buffer{};
  while (const std::size_t bytes = fread(buffer.data(), 1, buffer.size(), pipe)) {
    ran.output.append(buffer.data(), bytes);
  }
  const int status = pclose(pipe);
  ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

/// A stored plan of bcube:3,1, broken by `spoil`.
class StoredPlan {
 public:
  template <typename Spoil>
  explicit StoredPlan(Spoil&& spoil) {
    Plan plan = plan::build_all(**plan::make_builder(parse_topology("bcube:3,1"), {}));
    spoil(plan);
    std::string name = (std::filesystem::temp_directory_path() / "hips_check_XXXXXX").string();
    const int fd = mkstemp(name.data());
    EXPECT_GE(fd, 0);
    close(fd);
    path_ = name;
    std::ofstream(path_) << plan::to_json(plan);
  }
  ~StoredPlan() { std::filesystem::remove(path_); }
  StoredPlan(const StoredPlan&) = delete;
  StoredPlan& operator=(const StoredPlan&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(CheckCliTest, PrintsOneLineOfProof) {
  const Ran ran = hips_check("-t bcube:3,1");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(
      ran.output,
      AllOf(StartsWith("proved: HiPS, 2 lanes, mesh on both levels, on BCube(3,1): 9 ranks, 18 blocks, "
                       "144 messages; every input reduced exactly once, no deadlock with 1 credit or "
                       "more, no overlapping access in place or out of place ("),
            HasSubstr("ratio to bound: the busiest link transfers 1.000 times")));
}

TEST(CheckCliTest, AcceptsAlgorithmPatternSizeCreditsAndSegments) {
  const Ran ran = hips_check("-t torus:2x3 --pattern mesh,ring --bytes 4K --credits 2 --segments 3");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("no deadlock with 2 credits or more and 3 segments"));
  EXPECT_EQ(hips_check("-t switch:6 --algorithm flat-ps --leaders 2").exit_code, 0);
}

TEST(CheckCliTest, ProvesAStoredPlan) {
  const StoredPlan stored([](Plan&) {});
  EXPECT_EQ(hips_check("--plan " + stored.path()).exit_code, 0);
  EXPECT_THAT(hips_check("-t bcube:3,1 --plan " + stored.path()).output, HasSubstr("on BCube(3,1): 9 ranks"));
}

TEST(CheckCliTest, ReportsTheErrorsOfAStoredPlanAndExitsWithOne) {
  const StoredPlan stored([](Plan& plan) {
    for (Step& step : plan.programs[4].steps) {
      if (step.op == StepOp::kSend && step.phase == Phase::kGather) {
        step.round = 1;
        break;
      }
    }
  });
  const Ran ran = hips_check("-t bcube:3,1 --plan " + stored.path());
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.output,
              AllOf(HasSubstr("wrong: HiPS"), HasSubstr("error: unmatched transfer: receive without send"),
                    HasSubstr("server <11>"),
                    HasSubstr("hips: check: HiPS, 2 lanes, mesh on both levels, on BCube(3,1): 2 errors")));
}

TEST(CheckCliTest, PrintsJson) {
  const StoredPlan stored([](Plan& plan) { plan.programs[0].owned.clear(); });
  const Ran ran = hips_check("--json --plan " + stored.path() + " 2>/dev/null");
  EXPECT_EQ(ran.exit_code, 1);
  const nlohmann::json json = nlohmann::json::parse(ran.output);
  EXPECT_EQ(json.at("proved"), false);
  EXPECT_EQ(json.at("ranks"), 9);
  EXPECT_EQ(json.at("findings").at(0).at("kind"), "owner mismatch");
  EXPECT_EQ(json.at("findings").at(0).at("severity"), "error");
  EXPECT_EQ(json.at("findings").at(0).at("rank"), 0);
}

TEST(CheckCliTest, RejectsBadInputWithOneSentenceAndExitsWithTwo) {
  const StoredPlan stored([](Plan&) {});
  const std::array<std::pair<std::string, const char*>, 9> cases = {{
      {"", "no topology and no plan; give -t SPEC"},
      {"-t bcube:3", "bcube:3"},
      {"-t bcube:3,1 --algorithm nonsense", "unknown algorithm \"nonsense\""},
      {"-t bcube:3,1 --pattern nonsense", "nonsense"},
      {"-t bcube:3,1 --bytes 7", "7 is not a multiple of 4"},
      {"-t bcube:3,1 --bytes many", "invalid size \"many\""},
      {"-t bcube:3,1 --credits 0", "--credits"},
      {"--plan /nowhere/plan.json", "plan file \"/nowhere/plan.json\" cannot be read: No such file"},
      {"-t bcube:2,1 --plan " + stored.path(), "is a plan for 9 ranks, but bcube:2,1 has 4"},
  }};
  for (const auto& [arguments, text] : cases) {
    const Ran ran = hips_check(arguments);
    EXPECT_EQ(ran.exit_code, 2) << arguments;
    EXPECT_THAT(ran.output, HasSubstr(text)) << arguments;
  }
  const std::string broken = stored.path() + ".txt";
  std::ofstream(broken) << "{\"format\":";
  EXPECT_EQ(hips_check("--plan " + broken).exit_code, 2);
  std::filesystem::remove(broken);
}

TEST(CheckCliTest, DoesNotReportATooLargePlanAsWrong) {
  const Ran ran = hips_check("-t bcube:3,1 --segments 2147483647");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(
      ran.output,
      AllOf(HasSubstr("not checked: HiPS, 2 lanes, mesh on both levels, on BCube(3,1): 9 ranks, 18 "
                      "blocks, 144 messages; too large ("),
            HasSubstr("too large to check: more than"), Not(HasSubstr("wrong")),
            HasSubstr("hips: check: HiPS, 2 lanes, mesh on both levels, on BCube(3,1): too large\n")));
  const nlohmann::json json =
      nlohmann::json::parse(hips_check("-t bcube:3,1 --segments 2147483647 --json 2>/dev/null").output);
  EXPECT_EQ(json.at("proved"), false);
  EXPECT_EQ(json.at("refuted"), false);
}

TEST(CheckCliTest, RejectsATooLargePlanBeforeItIsBuilt) {
  for (const char* spec : {"switch:20000", "fattree:1000", "switch:100000000"}) {
    const auto began = hips::test::processor_time();
    const Ran ran = hips_check(std::string("-t ") + spec);
    EXPECT_EQ(ran.exit_code, 2) << spec;
    EXPECT_THAT(ran.output, StartsWith("hips: ")) << spec;
    EXPECT_EQ(std::count(ran.output.begin(), ran.output.end(), '\n'), 1) << ran.output;
    EXPECT_LT(hips::test::processor_time() - began, std::chrono::seconds(10)) << spec;
  }
}

TEST(CheckCliTest, NamesAFileThatCannotBeRead) {
  const Ran folder = hips_check("--plan /tmp");
  EXPECT_EQ(folder.exit_code, 2);
  EXPECT_THAT(folder.output, StartsWith("hips: plan file \"/tmp\" cannot be read"));
}

TEST(CheckCliTest, OmitsTheNumberOfRanksOfAMalformedPlan) {
  const StoredPlan stored([](Plan& plan) { plan.programs[0].steps[0].peer = 99; });
  const Ran ran = hips_check("--plan " + stored.path());
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.output, AllOf(StartsWith("wrong: "), HasSubstr("1 error ("), Not(HasSubstr("0 ranks"))));
}

}  // namespace
}  // namespace hips::tests
