#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "tools/hips-write/agreement.hpp"
#include "tools/hips-write/control.hpp"
#include "tools/hips-write/options.hpp"
#include "tools/hips-write/pattern.hpp"
#include "tools/hips-write/phases.hpp"
#include "tools/hips-write/samples.hpp"
#include "tools/hips-write/slots.hpp"

namespace hips::write {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Parsed parse(Program program, std::vector<const char*> args) {
  args.insert(args.begin(), "hips-write");
  return parse_options(program, static_cast<int>(args.size()), args.data());
}
Options bandwidth(std::vector<const char*> args) {
  const Parsed parsed = parse(Program::kBandwidth, std::move(args));
  EXPECT_FALSE(parsed.stop) << parsed.message;
  return parsed.options;
}
Options latency(std::vector<const char*> args) {
  const Parsed parsed = parse(Program::kLatency, std::move(args));
  EXPECT_FALSE(parsed.stop) << parsed.message;
  return parsed.options;
}

TEST(WriteOptionsTest, DefaultsAreThoseOfPerftest) {
  const Options bw = bandwidth({});
  EXPECT_TRUE(bw.is_server());
  EXPECT_THAT(bw.sizes(), ElementsAre(65536));
  EXPECT_EQ(bw.iterations, 5000u);
  EXPECT_EQ(bw.tx_depth, 128u);
  EXPECT_EQ(bw.cq_moderation, 1u);  // above 8 KiB
  EXPECT_EQ(bw.port, 18515);
  EXPECT_EQ(bw.timeout, 14u);
  EXPECT_EQ(bw.json_file, "perftest_out.json");
  EXPECT_EQ(bandwidth({"-s", "64"}).cq_moderation, 100u);
  const Options lat = latency({"node1"});
  EXPECT_EQ(lat.host, "node1");
  EXPECT_THAT(lat.sizes(), ElementsAre(2));
  EXPECT_EQ(lat.iterations, 1000u);
  EXPECT_EQ(lat.tx_depth, 1u);
}

TEST(WriteOptionsTest, CommandLinesForPerftestAreTaken) {
  const Options bw = bandwidth({"-d",         "rxe0",
                                "-i",         "1",
                                "-x",         "3",
                                "-p",         "2000",
                                "-q",         "2",
                                "-t",         "64",
                                "-Q",         "10",
                                "-m",         "1024",
                                "-F",         "-b",
                                "-S",         "3",
                                "-T",         "96",
                                "-I",         "0",
                                "-u",         "15",
                                "-N",         "--report_gbits",
                                "--out_json", "--out_json_file=x.json",
                                "-R",         "-c",
                                "RC",         "node1"});
  EXPECT_EQ(bw.device, "rxe0");
  EXPECT_EQ(bw.gid_index, 3);
  EXPECT_EQ(bw.port, 2000);
  EXPECT_EQ(bw.cq_moderation, 10u);
  EXPECT_EQ(bw.traffic_class, 96u);
  EXPECT_EQ(bw.inline_bytes, 0);
  EXPECT_TRUE(bw.rdma_cm && bw.bidirectional && bw.report_gbits && bw.json);
  EXPECT_EQ(bw.host, "node1");
  EXPECT_FALSE(bw.wants_peak());
  EXPECT_EQ(bandwidth({"-a"}).sizes().back(), 8388608u);
  EXPECT_EQ(bandwidth({"-a"}).sizes().size(), 23u);
  EXPECT_TRUE(latency({"-H"}).histogram);
  EXPECT_EQ(bandwidth({"-D", "9"}).margin_s, 2);
  EXPECT_FALSE(bandwidth({"-D", "9"}).wants_peak());
}

TEST(WriteOptionsTest, DepthsFollowTheNumberOfMessagesAndTheList) {
  EXPECT_EQ(bandwidth({"-n", "50", "-s", "8"}).tx_depth, 50u);
  EXPECT_EQ(bandwidth({"-n", "50", "-s", "8"}).cq_moderation, 50u);
  const Options list = bandwidth({"-l", "8", "-n", "50"});
  EXPECT_EQ(list.iterations, 56u);
  EXPECT_EQ(list.cq_moderation, 8u);
}

TEST(WriteOptionsTest, EachMistakeIsOneLineThatSaysWhatWouldBeRight) {
  const struct {
    std::vector<const char*> args;
    const char* seen;
  } cases[] = {
      {{"-s", "0"}, "write 64, 64K or 8M"},
      {{"-n", "2"}, "2"},
      {{"-m", "1000"}, "1024"},
      {{"-c", "UD"}, "only RC is"},
      {{"--odp"}, "--odp is not offered here; see --help"},
      {{"-q", "9"}, "at most 8"},
      {{"--raw", "--price"}, "leave one out"},
      {{"--raw", "-R"}, "leave out -R or --raw"},
      {{"--report-both"}, "-b"},
      {{"--price", "-b"}, "leave out -b"},
      {{"--output=latency"}, "write bandwidth or message_rate"},
      {{"-D", "4", "-f", "2"}, "give a longer -D"},
      {{"-l", "8", "-Q", "5"}, "give -Q as -l"},
      {{"--perftest-format=5"}, "--perftest-format"},
      {{"node1", "node2"}, "node2 is not offered here"},
  };
  for (const auto& [args, seen] : cases) {
    const Parsed parsed = parse(Program::kBandwidth, args);
    EXPECT_TRUE(parsed.stop) << args.front();
    EXPECT_EQ(parsed.exit_status, 2) << args.front();
    EXPECT_THAT(parsed.message, HasSubstr(seen));
    EXPECT_EQ(parsed.message.find('\n'), parsed.message.size() - 1) << parsed.message;
    EXPECT_TRUE(parsed.message.starts_with("hips-write-bw: ")) << parsed.message;
  }
}

TEST(WriteOptionsTest, HelpListsEachProgramsOwnFlags) {
  const Parsed bw = parse(Program::kBandwidth, {"--help"});
  EXPECT_EQ(bw.exit_status, 0);
  EXPECT_THAT(bw.message,
              AllOf(HasSubstr("--report_gbits"), HasSubstr("--price"), Not(HasSubstr("--report-histogram"))));
  EXPECT_THAT(parse(Program::kLatency, {"--help"}).message,
              AllOf(HasSubstr("--report-histogram"), Not(HasSubstr("--report_gbits"))));
}

TEST(WriteAgreementTest, FlagsThatOnlyOneEndCaresForMayDiffer) {
  const Options server = bandwidth({"-t", "16", "-d", "a", "-Q", "4"});
  const Options client = bandwidth({"-t", "64", "-d", "b", "--report_gbits", "host"});
  EXPECT_TRUE(check_agreement(server, agreement_text(client)).ok());
}

TEST(WriteAgreementTest, EachFlagThatDiffersIsNamedWithBothValues) {
  const Status status =
      check_agreement(bandwidth({"-s", "64", "-b"}), agreement_text(bandwidth({"-s", "128", "--raw", "h"})));
  EXPECT_EQ(status.code, Code::kMismatch);
  EXPECT_THAT(status.message,
              AllOf(HasSubstr("-s 128 there but 64 here"), HasSubstr("-b off there but on here"),
                    HasSubstr("--raw on there but off here"), Not(HasSubstr("-n "))));
  EXPECT_THAT(check_agreement(bandwidth({}), agreement_text(latency({}))).message,
              HasSubstr("program hips-write-lat there but hips-write-bw here"));
  EXPECT_THAT(
      check_agreement(bandwidth({"-D", "5"}), agreement_text(bandwidth({}))).message,
      AllOf(HasSubstr("-D not given there but 5 here"), HasSubstr("-n 5000 there but not given here")));
}

TEST(WritePatternTest, OneWrongByteIsCounted) {
  std::array<std::byte, 256> memory{};
  fill_pattern(memory, 7);
  EXPECT_EQ(count_wrong(memory, 0, 256, 7), 0u);
  memory[100] ^= std::byte{1};
  EXPECT_EQ(count_wrong(memory, 0, 256, 7), 1u);
  EXPECT_EQ(count_wrong(memory, 101, 100, 7), 0u);
  // Memory that nothing came to, or what another run sent, is wrong nearly everywhere.
  spoil_pattern(memory, 7);
  EXPECT_EQ(count_wrong(memory, 0, 256, 7), 256u);
  fill_pattern(memory, 8);
  EXPECT_GT(count_wrong(memory, 0, 256, 7), 200u);
}

TEST(WriteSlotsTest, SmallMessagesGoRoundInAPage) {
  const Slots small(65);
  EXPECT_EQ(small.count(), 32u);
  EXPECT_EQ(small.offset(33), 128u);
  EXPECT_EQ(Slots(4096).count(), 1u);
  EXPECT_EQ(Slots(4096).offset(5), 0u);
  EXPECT_EQ(Slots::buffer_bytes(4097), 8192u);
}

TEST(WriteSamplesTest, BandwidthIsOfAllMessagesAndThePeakOfTheBestStretch) {
  // 1 MiB each at a tick per us: done after 1 s, and the second half in half the time.
  Samples samples{.posted = {0, 500'000},
                  .completions = {{1, 700'000}, {2, 750'000}},
                  .begin = 0,
                  .end = 1'000'000,
                  .count = 2};
  const Bandwidth row = bandwidth_of(samples, 1 << 20, 1, false);
  EXPECT_DOUBLE_EQ(row.average, 2);
  EXPECT_DOUBLE_EQ(row.million_per_s, 2e-6);
  EXPECT_DOUBLE_EQ(row.peak, 4);  // the second, done 250 ms after it was posted
  EXPECT_NEAR(bandwidth_of(samples, 1 << 20, 1, true).average, 2 * 1.048576 * 8e-3, 1e-9);
}

TEST(WriteSamplesTest, LatencyIsHalfARoundTripWithoutTheTwoSlowest) {
  Samples samples;
  for (const std::uint64_t tick : {0, 20, 40, 80, 1000, 5000, 5020}) samples.posted.push_back(tick);
  const std::vector<double> trips = half_trips(samples, 1);
  EXPECT_THAT(trips, ElementsAre(10, 10, 20, 460, 2000, 10));
  const Latency row = latency_of(trips, 2, 7);
  EXPECT_EQ(row.min, 10);
  EXPECT_EQ(row.typical, 10);
  EXPECT_DOUBLE_EQ(row.average, 12.5);
  EXPECT_THAT(row.deviation, DoubleNear(4.33, 0.01));
  EXPECT_EQ(row.max, 460);
}

TEST(WritePhasesTest, MarginsDoNotCount) {
  Samples samples;
  Phases phases(1000, 100);
  phases.start(0, samples);
  phases.add(1, 50, samples);
  phases.add(2, 500, samples);
  phases.add(4, 950, samples);
  EXPECT_EQ(samples.count, 2u);
  EXPECT_EQ(samples.end - samples.begin, 800u);
  EXPECT_FALSE(phases.over(999));
  EXPECT_TRUE(phases.over(1000));
}

TEST(WriteControlTest, BothEndsHearEachOtherAndNoticeTheEnd) {
  constexpr int kPort = 18917;
  std::thread server([] {
    auto control = Control::serve(kPort, [] {});
    ASSERT_TRUE(control) << control.error().message;
    EXPECT_EQ(control->exchange("from the server", 10'000).value_or(""), "from the client");
  });
  Result<Control> control = fail(Code::kPeerLost, "");
  for (int tries = 0; !control && tries < 200; ++tries) {
    control = Control::connect("localhost", kPort, 1000);
    if (!control) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ASSERT_TRUE(control) << control.error().message;
  EXPECT_EQ(control->exchange("from the client", 10'000).value_or(""), "from the server");
  server.join();
  const auto after = control->exchange("anybody?", 10'000);
  ASSERT_FALSE(after);
  EXPECT_THAT(after.error().message, HasSubstr("has ended"));
  EXPECT_FALSE(control->check().ok());
}

TEST(WriteControlTest, AServerThatIsNotThereIsNamedWithWhatToDo) {
  const auto refused = Control::connect("localhost", 18918, 1000);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("localhost port 18918"), HasSubstr("start the same command")));
  const auto unknown = Control::connect("no.such.host.invalid", 18918, 1000);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("no host \"no.such.host.invalid\""));
}

}  // namespace
}  // namespace hips::write
