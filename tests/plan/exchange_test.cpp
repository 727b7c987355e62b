#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/plan/formats/goal/write_goal.hpp"
#include "lib/plan/formats/plan_file.hpp"
#include "lib/plan/formats/plan_json.hpp"
#include "tests/plan/support.hpp"

namespace hips {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

const std::vector<std::string>& wirings() {
  static const std::vector<std::string> kWirings = {"bcube:3,1", "torus:4x2",     "rail:4,2/2",
                                                    "switch:5",  "leafspine:2,3", "bcube:2x4"};
  return kWirings;
}

/// A temporary file.
class PlanFile {
 public:
  explicit PlanFile(const std::string& text) { std::ofstream(path_) << text; }
  ~PlanFile() { std::remove(path_.c_str()); }
  PlanFile(const PlanFile&) = delete;
  PlanFile& operator=(const PlanFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ = ::testing::TempDir() + "hips_exchange_test.json";
};

TEST(PlanFileTest, AStoredPlanIsReadAndProvedWithItsTopology) {
  for (const std::string& spec : wirings()) {
    const Plan plan = tests::plan_of(spec);
    std::ostringstream out;
    plan::PlanJsonWriter writer(out, plan.shape, Json{{"topology", spec}});
    for (const Program& program : plan.programs) writer.add(program);
    writer.finish();
    const PlanFile file(out.str());
    const auto stored = plan::read_plan_file(file.path());
    ASSERT_TRUE(stored) << stored.error().message;
    EXPECT_EQ(stored->plan, plan);
    EXPECT_EQ(stored->topology, spec);
    EXPECT_EQ(stored->digest.size(), 16U);
    EXPECT_TRUE(plan::prove_stored(file.path(), stored->plan, parse_topology(spec)).ok());
  }
}

TEST(PlanFileTest, AWrongEditIsRejectedWithTheCounterExample) {
  const Topology topology = parse_topology("bcube:3,1");
  const Json good = Json::parse(plan::to_json(tests::plan_of("bcube:3,1")));
  const auto error_of = [&](const Json& json) {
    const PlanFile file(json.dump());
    const auto stored = plan::read_plan_file(file.path());
    if (!stored) return stored.error().message;
    return plan::prove_stored(file.path(), stored->plan, topology).message;
  };
  EXPECT_EQ(error_of(good), "");
  // Rank 4 sends other blocks than rank 3 waits for.
  Json lost = good;
  auto& steps = lost["programs"][4]["steps"];
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i]["op"] == "send") {
      steps[i]["dst"][1] = 0;
      steps[i]["srcs"][0][1] = 0;
      break;
    }
  }
  EXPECT_THAT(error_of(lost),
              HasSubstr("unmatched transfer: the two ends of a message name different blocks: "
                        "server <11> sends blocks 0-2 in step 0"));
  EXPECT_THAT(error_of(lost), HasSubstr("hips check --plan"));
  // A reduction omits the rank's own input.
  Json forgotten = good;
  for (auto& step : forgotten["programs"][0]["steps"]) {
    if (step["op"] == "reduce") {
      step["srcs"].erase(0);
      break;
    }
  }
  EXPECT_THAT(error_of(forgotten), HasSubstr("holds the input of servers <01>, <02>, <10>"));
  // A NIC that the servers do not have.
  Json nic = good;
  for (auto& step : nic["programs"][0]["steps"])
    if (step["op"] == "send") step["rail"] = 7;
  EXPECT_THAT(error_of(nic), HasSubstr("7"));
  // The file itself is missing or malformed.
  EXPECT_THAT(plan::read_plan_file("/no/such/plan").error().message, HasSubstr("cannot be read"));
  const PlanFile garbage("{\"format\": \"hips-plan\", \"version\": 1, \"num_ranks\": ");
  EXPECT_THAT(plan::read_plan_file(garbage.path()).error().message, HasSubstr("invalid JSON near byte"));
  const Status other = plan::prove_stored("f", tests::plan_of("switch:4"), topology);
  EXPECT_EQ(other.code, Code::kUnsupported);
  EXPECT_THAT(other.message, HasSubstr("f is a plan for 4 ranks, but bcube:3,1 has 9"));
}

TEST(PlanFileTest, TheSchemaHasAllKeysOfAWrittenPlan) {
  std::ifstream in(std::string(HIPS_SOURCE_ROOT) + "/docs/plan.schema.json");
  const Json schema = Json::parse(in);
  const Json plan = Json::parse(plan::to_json(tests::plan_of("bcube:2,1")));
  const auto keys = [](const Json& object) {
    std::set<std::string> all;
    for (const auto& [key, value] : object.items()) all.insert(key);
    return all;
  };
  const auto& top = schema["properties"];
  std::set<std::string> known = keys(top);
  known.erase("notes");
  EXPECT_EQ(keys(plan), known);
  EXPECT_EQ(keys(plan["blocks"]), keys(top["blocks"]["properties"]));
  EXPECT_EQ(keys(plan["blocks"]["parts"][0]),
            keys(top["blocks"]["properties"]["parts"]["items"]["properties"]));
  EXPECT_EQ(keys(plan["lanes"][0]), keys(top["lanes"]["items"]["properties"]));
  EXPECT_EQ(keys(plan["lanes"][0]["stages"][0]),
            keys(top["lanes"]["items"]["properties"]["stages"]["items"]["properties"]));
  EXPECT_EQ(keys(plan["programs"][0]), keys(top["programs"]["items"]["properties"]));
  for (const auto& step : plan["programs"][0]["steps"]) {
    std::set<std::string> of_step = keys(schema["$defs"]["step"]["properties"]);
    if (step["op"] != "send") {
      of_step.erase("peer");
      of_step.erase("rail");
    }
    EXPECT_EQ(keys(step), of_step);
  }
}

// A GOAL schedule as a simulator reads it: the operations of each rank and what they require.
struct Goal {
  struct Line {
    std::string op;
    std::int64_t bytes = 0, peer = -1, tag = 0, nic = -1;
    std::vector<std::size_t> requires_lines;
  };
  std::vector<std::vector<Line>> ranks;
};

Goal read_goal(const std::string& text) {
  Goal goal;
  std::istringstream in(text);
  std::string line;
  EXPECT_TRUE(std::getline(in, line));
  long long count = 0;
  EXPECT_EQ(std::sscanf(line.c_str(), "num_ranks %lld", &count), 1);
  goal.ranks.resize(static_cast<std::size_t>(count));
  std::vector<Goal::Line>* rank = nullptr;
  while (std::getline(in, line)) {
    long long a = 0, b = 0, c = 0, d = 0, nic = -1;
    char op[8] = {}, direction[8] = {};
    if (std::sscanf(line.c_str(), "rank %lld {", &a) == 1) {
      rank = &goal.ranks.at(static_cast<std::size_t>(a));
    } else if (std::sscanf(line.c_str(), "l%lld requires l%lld", &a, &b) == 2) {
      rank->at(static_cast<std::size_t>(a)).requires_lines.push_back(static_cast<std::size_t>(b));
    } else if (std::sscanf(line.c_str(), "l%lld: %4s %lldb %4s %lld tag %lld cpu 0 nic %lld", &a, op, &b,
                           direction, &c, &d, &nic) >= 6) {
      EXPECT_EQ(static_cast<std::size_t>(a), rank->size());
      rank->push_back({op, b, c, d, nic, {}});
    } else if (std::sscanf(line.c_str(), "l%lld: calc %lld", &a, &b) == 2) {
      EXPECT_EQ(static_cast<std::size_t>(a), rank->size());
      rank->push_back({"calc", b, -1, 0, -1, {}});
    } else {
      EXPECT_EQ(line, "}");
    }
  }
  return goal;
}

TEST(Goal, EverySendHasItsReceiveAndTheScheduleEnds) {
  for (const std::string& spec : wirings()) {
    for (const std::int64_t count : {0, 1, 7, 1000}) {
      const Topology topology = parse_topology(spec);
      const Plan plan = tests::plan_of(spec);
      std::ostringstream out;
      plan::GoalWriter writer(out, plan.shape, {.count = count});
      for (const Program& program : plan.programs) writer.add(program);
      const Goal goal = read_goal(out.str());
      ASSERT_EQ(goal.ranks.size(), plan.programs.size());
      // Run it: a line is done after the lines that it requires, a receive also after its send.
      std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::int64_t> wire;
      std::vector<std::vector<char>> done;
      std::size_t left = 0;
      std::int64_t sent = 0;
      for (const auto& rank : goal.ranks) {
        done.emplace_back(rank.size(), 0);
        left += rank.size();
      }
      for (bool progress = true; progress && left > 0;) {
        progress = false;
        for (std::size_t r = 0; r < goal.ranks.size(); ++r) {
          const auto self = static_cast<std::int64_t>(r);
          for (std::size_t i = 0; i < goal.ranks[r].size(); ++i) {
            const Goal::Line& line = goal.ranks[r][i];
            if (done[r][i] != 0) continue;
            bool ready = true;
            for (const std::size_t earlier : line.requires_lines) ready = ready && done[r].at(earlier) != 0;
            if (!ready) continue;
            if (line.op == "send") {
              EXPECT_TRUE(wire.emplace(std::tuple(self, line.peer, line.tag), line.bytes).second) << spec;
              sent += line.bytes;
            } else if (line.op == "recv") {
              const auto message = wire.find({line.peer, self, line.tag});
              if (message == wire.end()) continue;
              EXPECT_EQ(message->second, line.bytes);
              wire.erase(message);
            }
            done[r][i] = 1;
            --left;
            progress = true;
          }
        }
      }
      EXPECT_EQ(left, 0U) << spec;
      EXPECT_TRUE(wire.empty()) << spec;
      // The bytes that the plan sends.
      std::int64_t planned = 0;
      for (const Program& program : plan.programs) {
        for (const Step& step : program.steps) {
          if (step.op == StepOp::kSend) planned += plan.shape.blocks.elements(step.dst.blocks, count) * 4;
        }
      }
      EXPECT_EQ(sent, planned) << spec;
    }
  }
}

}  // namespace
}  // namespace hips
