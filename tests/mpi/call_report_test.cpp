#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lib/mpi/process/call_report.hpp"
#include "lib/mpi/tuning/guard.hpp"

namespace hips::mpi {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr CallClass kShortCalls{ReduceOp::kSum, 10};
constexpr CallClass kLongCalls{ReduceOp::kSum, 24};

TEST(GuardReport, EachDecisionIsShownWithBothTimes) {
  Guard guard(true);
  guard.set(kShortCalls, {TuningChoice::kNative, 3000, 2000});
  guard.set(kLongCalls, {TuningChoice::kHips, 1000, 2500});
  guard.add_sample({ReduceOp::kMax, 4}, 7, 0);
  CallReport report;
  report.set_guard("on");
  report.add_classes("MPI_COMM_WORLD", 4, {}, &guard);
  const std::string text = report.text("Open MPI v4.1.4", 0, 4);
  EXPECT_THAT(text, HasSubstr("hips report: guard on\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "MPI_COMM_WORLD, 4 ranks, sum, 512 to 1023 bytes: HiPS 3.0 us, native MPI 2.0 us: native MPI"));
  EXPECT_THAT(text, HasSubstr("sum, 8388608 to 16777215 bytes: HiPS 1.0 us, native MPI 2.5 us: HiPS"));
  EXPECT_THAT(text, HasSubstr("max, 8 to 15 bytes: undecided after 1 of at most 26 trials"));
}

TEST(GuardReport, TheFirstLineSaysWhatHipsSavedByTheTrials) {
  CallReport report;
  report.set_run_time(10'000'000'000);
  report.add_native_time(500'000'000);
  const ClassTimes before{{kShortCalls, {.by_native = 100, .native_ns = 100'000'000}}};
  report.add_classes("MPI_COMM_WORLD", 4, before, nullptr);
  EXPECT_THAT(
      report.text("Open MPI v4.1.4", 0, 4),
      StartsWith(
          "hips report: collectives took 0.600 s of 10.000 s (6.0 %); native MPI executed all of them\n"));

  report.add_taken("MPI_COMM_WORLD", 4, "plan", {.calls = 1000, .bytes = 8000, .time_ns = 400'000'000});
  EXPECT_THAT(
      report.text("Open MPI v4.1.4", 0, 4),
      HasSubstr("(10.0 %); this run tried no call with native MPI, so what HiPS saved is not known\n"));

  Guard guard(true);
  guard.set(kShortCalls, {TuningChoice::kHips, 400'000, 700'000});
  report.add_classes("MPI_COMM_WORLD", 4, {{kShortCalls, {.by_hips = 1000, .hips_ns = 400'000'000}}}, &guard);
  const std::string text = report.text("Open MPI v4.1.4", 0, 4);
  EXPECT_THAT(
      text, StartsWith("hips report: collectives took 1.000 s of 10.000 s (10.0 %); natively they would have "
                       "taken 1.300 s, by the trials: HiPS saved 0.300 s, set-up included\n"));
  EXPECT_THAT(
      text, HasSubstr("512 to 1023 bytes: HiPS 400.0 us, native MPI 700.0 us: HiPS; 1000 calls by HiPS, 100 "
                      "natively, 0.500000 s\n"));
  const auto json = nlohmann::json::parse(report.json("Open MPI v4.1.4", 0, 4));
  EXPECT_NEAR(json["saved_seconds"].get<double>(), 0.3, 1e-9);
  EXPECT_EQ(json["classes"][0]["native_calls"], 100);
  EXPECT_EQ(json["classes"][0]["trials"]["winner"], "HiPS");
}

TEST(GuardReport, ADecisionSaysNothingOfTheCallsBeforeTheLastOneAndSetUpIsNoSaving) {
  Guard guard(true);
  ClassTime time{.by_hips = 7, .hips_ns = 35'000};
  time.note_decision({TuningChoice::kHips, 5000, 10'000});
  time.by_hips = 100'007;
  time.hips_ns = 400'000'000;  // less for each call than the slowest rank
  // A review, after which native MPI executes the calls.
  const TuningDecision last{TuningChoice::kNative, 5000, 4000};
  time.note_decision(last);
  guard.set(kShortCalls, last);
  time.by_hips += 10;
  time.hips_ns += 50'000;
  CallReport report;
  report.add_taken("MPI_COMM_WORLD", 4, "plan", {.calls = 100'017, .bytes = 8, .time_ns = 500'000'000});
  report.add_classes("MPI_COMM_WORLD", 4, {{kShortCalls, time}}, &guard);
  report.add_set_up(100'000'000);
  const auto json = nlohmann::json::parse(report.json("Open MPI v4.1.4", 0, 4));
  EXPECT_NEAR(json["saved_seconds"].get<double>(), 0.4 - 10e-6 - 0.1, 1e-9);
  EXPECT_THAT(report.text("Open MPI v4.1.4", 0, 4), HasSubstr("HiPS saved 0.300 s, set-up included\n"));
}

TEST(GuardReport, TheFirstLineCountsWhatTrialsTakeBesideTheCallsAndWhatIsNotTimed) {
  CallReport report;
  report.set_run_time(10'000'000'000);
  report.add_taken("MPI_COMM_WORLD", 4, "plan", {.calls = 10, .bytes = 8, .time_ns = 1'000'000'000});
  Guard guard(true);
  guard.set(kShortCalls, {TuningChoice::kHips, 400'000, 800'000});
  report.add_classes("MPI_COMM_WORLD", 4, {{kShortCalls, {.by_hips = 10, .hips_ns = 1'000'000'000}}}, &guard);
  report.add_trial_time(300'000'000, 200'000'000);
  report.add_untimed();
  EXPECT_THAT(
      report.text("Open MPI v4.1.4", 0, 4),
      StartsWith(
          "hips report: collectives took 1.500 s of 10.000 s (15.0 %) without 1 non-blocking call of native "
          "MPI; natively they would have taken 2.300 s, by the trials: HiPS saved 0.800 s, set-up included\n"));
}

TEST(GuardReport, AReportOfThousandsOfCommunicatorsIsShort) {
  CallReport report;
  for (int i = 0; i < 5000; ++i) {
    Guard guard(true);
    guard.set(kShortCalls, {TuningChoice::kNative, 3000 + i, 2000});
    report.add_classes("unnamed communicator", 4, {}, &guard);
    if (i < 100) report.add_classes("comm " + std::to_string(i), 4, {}, &guard);
  }
  const std::string text = report.text("Open MPI v4.1.4", 0, 4);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 100);
  EXPECT_THAT(text, HasSubstr("and 81 other operations and sizes"));
}

}  // namespace
}  // namespace hips::mpi
