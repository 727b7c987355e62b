#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lib/plan/formats/plan_json.hpp"
#include "tests/plan/support.hpp"

namespace hips::tests {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

TEST(PlanJson, RestoresThePlanOfEveryBuilderExactly) {
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    for (const char* spec : {"bcube:3,1", "bcube:2x4", "torus:4x3", "torus:4x2", "fattree:4", "rail:6,2/2",
                             "switch:1", "switch:7"}) {
      PlanRequest request;
      request.algorithm = algorithm.name;
      if (!plan::make_builder(parse_topology(spec), request)) continue;
      const Plan plan = plan_of(spec, request);
      const Result<Plan> back = plan::from_json(plan::to_json(plan));
      ASSERT_TRUE(back) << back.error().message;
      EXPECT_EQ(*back, plan) << algorithm.name << " on " << spec;
      EXPECT_EQ(plan::to_json(*back), plan::to_json(plan));
    }
  }
}

/// The error for a plan of BCube(2,1) whose JSON `change` has modified.
template <typename Change>
std::string error_after(Change&& change) {
  Json json = Json::parse(plan::to_json(plan_of("bcube:2,1")));
  change(json);
  const Result<Plan> plan = plan::from_json(json.dump());
  return plan ? "" : plan.error().message;
}

TEST(PlanJson, AnErrorNamesThePlaceTheValueAndTheValidValues) {
  EXPECT_EQ(error_after([](Json&) {}), "");
  EXPECT_EQ(error_after([](Json& json) { json["programs"][3]["steps"][0]["peer"] = -7; }),
            "plan file: programs[3].steps[0].peer is -7; it must be a whole number from 0 to 2147483647");
  EXPECT_EQ(error_after([](Json& json) { json["programs"][0]["steps"][0]["op"] = "push"; }),
            "plan file: programs[0].steps[0].op is \"push\"; it must be one of send, reduce, copy");
  EXPECT_EQ(error_after([](Json& json) {
              json["lanes"][1]["blocks"] = {1, 2, 3};
            }),
            "plan file: lanes[1].blocks is an array of 3 values; it must be [first block, number of blocks]");
  EXPECT_EQ(error_after([](Json& json) { json["programs"][0]["steps"][0].erase("after"); }),
            "plan file: programs[0].steps[0] misses the key \"after\"");
  EXPECT_EQ(error_after([](Json& json) { json["blocks"]["size"] = 1; }),
            "plan file: blocks has the unknown key \"size\"; expected num_blocks, num_scratch_blocks, parts");
  EXPECT_EQ(error_after([](Json& json) { json["programs"].erase(1); }),
            "plan file: it has the programs of 3 of 4 ranks; hips plan --all writes all of them");
  EXPECT_EQ(error_after([](Json& json) { std::swap(json["programs"][0], json["programs"][1]); }),
            "plan file: programs[0].rank is 1; it must be 0: programs must be in rank order");
  EXPECT_EQ(error_after([](Json& json) { json["version"] = 2; }),
            "plan file: version 2; this build reads version 1");
  EXPECT_EQ(error_after([](Json& json) {
              json["blocks"]["parts"][0]["end"] = {3, 2};
            }),
            "plan file: blocks.parts[0].end is an array of 2 values; it must be a fraction from 0 to 1");
  EXPECT_EQ(error_after([](Json& json) { json["blocks"]["num_blocks"] = 18446744073709551615u; }),
            "plan file: blocks.num_blocks is 18446744073709551615; it must be a whole number from 0 to "
            "1099511627776");
}

TEST(PlanJson, RejectsATextThatIsNotAPlanWithOneSentence) {
  for (const char* text : {"", "{", "[]", "null", "\"hips-plan\"", "{\"format\": 7}", "\xff\xfe",
                           "{\"format\": \"hips-plan\"}"}) {
    const Result<Plan> plan = plan::from_json(text);
    ASSERT_FALSE(plan) << text;
    EXPECT_THAT(plan.error().message, HasSubstr("plan file: ")) << text;
    EXPECT_EQ(plan.error().message.find('\n'), std::string::npos) << text;
  }
  EXPECT_FALSE(plan::from_json(std::string(100'000, '[')));
  EXPECT_FALSE(plan::from_json(std::string(100'000, '[') + std::string(100'000, ']')));
}

TEST(PlanJson, SurvivesRandomDamageToAFile) {
  std::mt19937_64 random(seed_of_run());
  const std::string good = plan::to_json(plan_of("bcube:2,1"));
  int rejected = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text = good;
    for (std::uint64_t hits = 1 + random() % 3; hits > 0; --hits) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 20);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 20));
          break;
        default:
          text[at] = "0123456789-[]{},\"e."[random() % 19];
          break;
      }
    }
    // Either it is rejected with one sentence, or it can be written and read again.
    const Result<Plan> plan = plan::from_json(text);
    if (plan) {
      EXPECT_EQ(plan::to_json(value_or_throw(plan::from_json(plan::to_json(*plan)))), plan::to_json(*plan));
    } else {
      EXPECT_THAT(plan.error().message, HasSubstr("plan file: "));
      ++rejected;
    }
  }
  EXPECT_GT(rejected, 500);
}

}  // namespace
}  // namespace hips::tests
