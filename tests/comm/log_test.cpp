#include "lib/base/log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace log_test {
namespace {

namespace log = hips::log;
using log::LogLevel;
using log::Subsystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Log : public testing::Test {
 protected:
  Log() {
    log::redirect([this](LogLevel, std::string_view line) { lines_.emplace_back(line); });
  }
  ~Log() override {
    log::redirect({});
    log::configure({}, -1);
  }
  std::vector<std::string> lines_;
};

TEST_F(Log, TheDefaultFilterPassesWarningsAndErrors) {
  log::configure({}, 3);
  log::error(Subsystem::kComm, "one {}", 1);
  log::warn(Subsystem::kPlan, "two");
  log::info(Subsystem::kComm, "three");
  EXPECT_THAT(lines_, ElementsAre("hips[3] error comm: one 1", "hips[3] warn plan: two"));
}

TEST_F(Log, AFilterSetsADefaultLevelAndLevelsOfSubsystems) {
  const auto filter = log::parse_filter("info,plan:debug,comm:error");
  ASSERT_TRUE(filter) << filter.error().message;
  log::configure(*filter, -1);
  log::info(Subsystem::kExec, "a");
  log::debug(Subsystem::kExec, "b");
  log::debug(Subsystem::kPlan, "c");
  log::trace(Subsystem::kPlan, "d");
  log::warn(Subsystem::kComm, "e");
  EXPECT_THAT(lines_, ElementsAre("hips info exec: a", "hips debug plan: c"));
}

TEST_F(Log, ALaterEntryOverridesAnEarlierOne) {
  const auto filter = log::parse_filter("plan:trace, warn");
  ASSERT_TRUE(filter);
  EXPECT_FALSE(filter->passes(Subsystem::kPlan, LogLevel::kInfo));
}

TEST_F(Log, TheErrorForAnInvalidEntryListsTheValidWords) {
  for (const char* text : {"loud", "plan:loud", "planet:info", "", "info,", ":", "info:plan"}) {
    const auto filter = log::parse_filter(text);
    ASSERT_FALSE(filter) << text;
    EXPECT_THAT(filter.error().message,
                AllOf(HasSubstr("warn"), HasSubstr("plan"), HasSubstr("info,plan:debug")));
  }
}

}  // namespace
}  // namespace log_test
