#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <future>
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

ParsedWriteOptions parse(WriteProgram program, std::vector<const char*> args) {
  args.insert(args.begin(), "hips-write");
  return parse_options(program, static_cast<int>(args.size()), args.data());
}
WriteOptions bandwidth(std::vector<const char*> args) {
  const ParsedWriteOptions parsed = parse(WriteProgram::kBandwidth, std::move(args));
  EXPECT_FALSE(parsed.stop) << parsed.message;
  return parsed.options;
}
WriteOptions latency(std::vector<const char*> args) {
  const ParsedWriteOptions parsed = parse(WriteProgram::kLatency, std::move(args));
  EXPECT_FALSE(parsed.stop) << parsed.message;
  return parsed.options;
}

TEST(WriteOptionsTest, DefaultsEqualThoseOfPerftest) {
  const WriteOptions bw = bandwidth({});
  EXPECT_TRUE(bw.is_server());
  EXPECT_THAT(bw.sizes(), ElementsAre(65536));
  EXPECT_EQ(bw.iterations, 5000u);
  EXPECT_EQ(bw.tx_depth, 128u);
  EXPECT_EQ(bw.cq_moderation, 1u);  // above 8 KiB
  EXPECT_EQ(bw.port, 18515);
  EXPECT_EQ(bw.timeout, 14u);
  EXPECT_EQ(bw.json_file, "perftest_out.json");
  EXPECT_EQ(bandwidth({"-s", "64"}).cq_moderation, 100u);
  const WriteOptions lat = latency({"node1"});
  EXPECT_EQ(lat.host, "node1");
  EXPECT_THAT(lat.sizes(), ElementsAre(2));
  EXPECT_EQ(lat.iterations, 1000u);
  EXPECT_EQ(lat.tx_depth, 1u);
}

TEST(WriteOptionsTest, CommandLinesOfPerftestAreParsed) {
  const WriteOptions bw = bandwidth({"-d",         "rxe0",
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

TEST(WriteOptionsTest, DepthsDependOnTheNumberOfMessagesAndTheList) {
  EXPECT_EQ(bandwidth({"-n", "50", "-s", "8"}).tx_depth, 50u);
  EXPECT_EQ(bandwidth({"-n", "50", "-s", "8"}).cq_moderation, 50u);
  const WriteOptions list = bandwidth({"-l", "8", "-n", "50"});
  EXPECT_EQ(list.iterations, 56u);
  EXPECT_EQ(list.cq_moderation, 8u);
}

TEST(WriteOptionsTest, EachErrorIsOneLineThatNamesValidValues) {
  const struct {
    std::vector<const char*> args;
    const char* seen;
  } cases[] = {
      {{"-s", "0"}, "invalid size \"0\" (valid: 1 to 1G"},
      {{"-n", "2"}, "2"},
      {{"-m", "1000"}, "1024"},
      {{"-c", "UD"}, "unsupported connection type \"UD\" (valid: RC)"},
      {{"--odp"}, "unknown option \"--odp\" (--help lists"},
      {{"-q", "9"}, "at most 8"},
      {{"--raw", "--price"}, "--price: includes --raw; remove one of them"},
      {{"--raw", "-R"}, "remove -R, or --raw"},
      {{"--report-both"}, "--report-both: needs -b"},
      {{"--price", "-b"}, "remove -b"},
      {{"--price", "--out_json"}, "remove --out_json"},
      {{"--output=latency"}, "invalid figure \"latency\" (valid: bandwidth, message_rate)"},
      {{"-D", "4", "-f", "2"}, "give a longer -D"},
      {{"-l", "8", "-Q", "5"}, "-Q: must equal -l"},
      {{"--perftest-format=5"}, "--perftest-format"},
      {{"node1", "node2"}, "unexpected argument \"node2\""},
  };
  for (const auto& [args, seen] : cases) {
    const ParsedWriteOptions parsed = parse(WriteProgram::kBandwidth, args);
    EXPECT_TRUE(parsed.stop) << args.front();
    EXPECT_EQ(parsed.exit_status, 2) << args.front();
    EXPECT_THAT(parsed.message, HasSubstr(seen));
    EXPECT_EQ(parsed.message.find('\n'), parsed.message.size() - 1) << parsed.message;
    EXPECT_TRUE(parsed.message.starts_with("hips-write-bw: ")) << parsed.message;
  }
}

TEST(WriteOptionsTest, HelpListsTheFlagsOfEachProgram) {
  const ParsedWriteOptions bw = parse(WriteProgram::kBandwidth, {"--help"});
  EXPECT_EQ(bw.exit_status, 0);
  EXPECT_THAT(bw.message,
              AllOf(HasSubstr("--report_gbits"), HasSubstr("--price"), Not(HasSubstr("--report-histogram"))));
  EXPECT_THAT(parse(WriteProgram::kLatency, {"--help"}).message,
              AllOf(HasSubstr("--report-histogram"), Not(HasSubstr("--report_gbits"))));
}

TEST(WriteAgreementTest, FlagsOfOneEndMayDiffer) {
  const WriteOptions server = bandwidth({"-t", "16", "-d", "a", "-Q", "4"});
  const WriteOptions client = bandwidth({"-t", "64", "-d", "b", "--report_gbits", "host"});
  EXPECT_TRUE(check_agreement(server, agreement_text(client)).ok());
}

TEST(WriteAgreementTest, DifferentFlagsAreListedWithBothValues) {
  const Status status =
      check_agreement(bandwidth({"-s", "64", "-b"}), agreement_text(bandwidth({"-s", "128", "--raw", "h"})));
  EXPECT_EQ(status.code, Code::kMismatch);
  EXPECT_THAT(status.message,
              AllOf(HasSubstr("-s is 64 here and 128 there"), HasSubstr("-b is on here and off there"),
                    HasSubstr("--raw is off here and on there"), Not(HasSubstr("-n "))));
  EXPECT_THAT(check_agreement(bandwidth({}), agreement_text(latency({}))).message,
              HasSubstr("program is hips-write-bw here and hips-write-lat there"));
  EXPECT_THAT(
      check_agreement(bandwidth({"-D", "5"}), agreement_text(bandwidth({}))).message,
      AllOf(HasSubstr("-D is 5 here and not given there"), HasSubstr("-n is not given here and 5000 there")));
}

TEST(WritePatternTest, OneWrongByteIsCounted) {
  std::array<std::byte, 256> memory{};
  fill_pattern(memory, 7);
  EXPECT_EQ(count_wrong_bytes(memory, 0, 256, 7), 0u);
  memory[100] ^= std::byte{1};
  EXPECT_EQ(count_wrong_bytes(memory, 0, 256, 7), 1u);
  EXPECT_EQ(count_wrong_bytes(memory, 101, 100, 7), 0u);
  // Memory without arrived data is all wrong, the data of another run nearly all.
  invert_pattern(memory, 7);
  EXPECT_EQ(count_wrong_bytes(memory, 0, 256, 7), 256u);
  fill_pattern(memory, 8);
  EXPECT_GT(count_wrong_bytes(memory, 0, 256, 7), 200u);
}

TEST(WriteSlotsTest, SmallMessagesCycleThroughAPage) {
  const Slots small(65);
  EXPECT_EQ(small.count(), 32u);
  EXPECT_EQ(small.offset(33), 128u);
  EXPECT_EQ(Slots(4096).count(), 1u);
  EXPECT_EQ(Slots(4096).offset(5), 0u);
  EXPECT_EQ(Slots::buffer_bytes(4097), 8192u);
}

TEST(WriteSamplesTest, TheAverageBandwidthCountsAllMessagesAndThePeakTheBestInterval) {
  // Two messages of 1 MiB, a tick per us: 1 s in all, and 250 ms for the second one.
  Samples samples{.posted = {0, 500'000},
                  .completions = {{1, 700'000}, {2, 750'000}},
                  .begin = 0,
                  .end = 1'000'000,
                  .count = 2};
  const Bandwidth row = bandwidth_of(samples, 1 << 20, 1, false);
  EXPECT_DOUBLE_EQ(row.average, 2);
  EXPECT_DOUBLE_EQ(row.million_per_s, 2e-6);
  EXPECT_DOUBLE_EQ(row.peak, 4);  // the second, complete 250 ms after it was posted
  EXPECT_NEAR(bandwidth_of(samples, 1 << 20, 1, true).average, 2 * 1.048576 * 8e-3, 1e-9);
}

TEST(WriteSamplesTest, LatencyStatisticsIgnoreTheTwoSlowestRoundTrips) {
  Samples samples;
  for (const std::uint64_t tick : {0, 20, 40, 80, 1000, 5000, 5020}) samples.posted.push_back(tick);
  const std::vector<double> trips = half_round_trips(samples, 1);
  EXPECT_THAT(trips, ElementsAre(10, 10, 20, 460, 2000, 10));
  const Latency row = latency_of(trips, 2, 7);
  EXPECT_EQ(row.min, 10);
  EXPECT_EQ(row.typical, 10);
  EXPECT_DOUBLE_EQ(row.average, 12.5);
  EXPECT_THAT(row.deviation, DoubleNear(4.33, 0.01));
  EXPECT_EQ(row.max, 460);
}

TEST(WritePhasesTest, MessagesInTheMarginsDoNotCount) {
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

/// A server of one client on a free port, in a thread.
class OneServer {
 public:
  /// Calls `use` with the server's end of the connection.
  explicit OneServer(std::function<void(ControlConnection&)> use)
      : thread_([this, use = std::move(use)] {
          auto control = ControlConnection::serve(0, [this](std::int32_t port) { port_.set_value(port); });
          ASSERT_TRUE(control) << control.error().message;
          use(*control);
        }) {}
  ~OneServer() { join(); }
  OneServer(const OneServer&) = delete;
  OneServer& operator=(const OneServer&) = delete;

  std::int32_t port() { return port_.get_future().get(); }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::promise<std::int32_t> port_;
  std::thread thread_;
};

TEST(WriteControlTest, BothEndsExchangeMessagesAndDetectTheExitOfTheOther) {
  OneServer server([](ControlConnection& control) {
    EXPECT_EQ(control.exchange("from the server", 10'000).value_or(""), "from the client");
  });
  auto control = ControlConnection::connect("localhost", server.port(), 10'000);
  ASSERT_TRUE(control) << control.error().message;
  EXPECT_TRUE(control->check().ok());
  EXPECT_EQ(control->exchange("from the client", 10'000).value_or(""), "from the server");
  server.join();
  const auto after = control->exchange("anybody?", 10'000);
  ASSERT_FALSE(after);
  EXPECT_THAT(after.error().message, HasSubstr("has exited"));
  EXPECT_FALSE(control->check().ok());
}

TEST(WriteControlTest, AMissingServerIsReportedWithTheCommandToStart) {
  OneServer server([](ControlConnection&) {});
  const std::int32_t port = server.port();
  ASSERT_TRUE(ControlConnection::connect("localhost", port, 10'000));
  server.join();  // now nothing listens on the port
  const auto refused = ControlConnection::connect("localhost", port, 10'000);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("localhost port " + std::to_string(port)),
                                             HasSubstr("first start the same command")));
}

TEST(WriteControlTest, AnUnknownHostIsNamed) {
  const auto unknown = ControlConnection::connect("no.such.host.invalid", 18515, 1000);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("unknown host \"no.such.host.invalid\""));
}

}  // namespace
}  // namespace hips::write
