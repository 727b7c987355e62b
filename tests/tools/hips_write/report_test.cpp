#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/hips-write/options.hpp"
#include "tools/hips-write/report.hpp"

namespace hips::write {
namespace {

/// The output of perftest 4.5 on soft-RoCE, without its relaxed ordering, which HiPS never requests.
std::string recorded(const std::string& name) {
  std::ifstream file(std::string(HIPS_RECORDED) + "/" + name);
  EXPECT_TRUE(file) << name;
  std::stringstream text;
  text << file.rdbuf();
  std::string whole = text.str();
  for (const std::string before : {"relax order: ON", "relax_order: ON"}) {
    if (const auto at = whole.find(before); at != whole.npos) whole.replace(at + before.size() - 2, 2, "OFF");
  }
  return whole;
}

/// Removes the one line that perftest does not have.
std::string shared(std::string text) {
  for (const std::string line : {" Requests        : ", "Requests: "}) {
    const auto at = text.find(line);
    if (at != text.npos) text.erase(at, text.find('\n', at) - at + 1);
  }
  return text;
}

WriteOptions options_of(WriteProgram program, std::vector<const char*> args) {
  args.insert(args.begin(), "hips-write");
  const ParsedWriteOptions parsed = parse_options(program, static_cast<int>(args.size()), args.data());
  EXPECT_FALSE(parsed.stop) << parsed.message;
  return parsed.options;
}

const PortDescription kPort{.device = "rxe0", .mtu = 4096, .gid_index = 1};

EndDescription end(std::vector<EndDescription::Pair> pairs, std::uint32_t key,
                   std::vector<std::uint64_t> addresses) {
  EndDescription words{
      .lid = 0, .pairs = std::move(pairs), .key = key, .addresses = std::move(addresses), .gid = {}};
  words.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 100, 0, 1};
  return words;
}

std::string report(const WriteOptions& options, const EndDescription& local, const EndDescription& remote,
                   const std::string& rows) {
  return shared((options.is_server() ? waiting_text() : "") + banner_text(options, kPort) +
                address_text(options, "local", local) + address_text(options, "remote", remote) +
                rule_text() + header_text(options) + rows + rule_text());
}

const EndDescription kClient = end({{0x11, 0xa119f2}}, 0x232, {0x55f57083d000});
const EndDescription kServer = end({{0x12, 0xa52904}}, 0x32d, {0x55745a4b0000});
const Bandwidth kRow{
    .bytes = 65536, .count = 5000, .peak = 71.36, .average = 32.87, .million_per_s = 0.000526};

TEST(WriteReportTest, ABandwidthReportEqualsThatOfPerftest) {
  const WriteOptions client = options_of(WriteProgram::kBandwidth, {"10.100.0.1"});
  EXPECT_EQ(report(client, kClient, kServer, row_text(client, kRow)), recorded("bw.client.txt"));
  const WriteOptions server = options_of(WriteProgram::kBandwidth, {});
  EXPECT_EQ(report(server, kServer, kClient, row_text(server, kRow)), recorded("bw.server.txt"));
}

TEST(WriteReportTest, EachQueuePairHasAnAddressLine) {
  const WriteOptions options =
      options_of(WriteProgram::kBandwidth, {"--report_gbits", "-n", "500", "-x", "1", "-q", "2", "host"});
  const Bandwidth row{
      .bytes = 65536, .count = 1000, .peak = 0.54, .average = 0.48, .million_per_s = 0.000922};
  EXPECT_EQ(
      report(options, end({{0x21, 0x384bff}, {0x22, 0x9152b4}}, 0x10e5, {0x55a47b795000, 0x55a47b7a5000}),
             end({{0x1f, 0xa6a3ec}, {0x20, 0x7b09d}}, 0x115d, {0x55eeca9c6000, 0x55eeca9d6000}),
             row_text(options, row)),
      recorded("bwg.client.txt"));
}

TEST(WriteReportTest, TheReportOfBothDirectionsEqualsThatOfPerftest) {
  const WriteOptions options =
      options_of(WriteProgram::kBandwidth, {"-b", "--report-both", "-n", "200", "host"});
  const Bandwidth both{
      .bytes = 65536, .count = 200, .peak = 15.19, .average = 12.71, .million_per_s = 0.000203};
  const Bandwidth mine{
      .bytes = 65536, .count = 200, .peak = 5.88, .average = 5.87, .million_per_s = 0.000094};
  const Bandwidth theirs{
      .bytes = 65536, .count = 200, .peak = 9.31, .average = 6.84, .million_per_s = 0.000109};
  EXPECT_EQ(report(options, end({{0x27, 0xb98ad6}}, 0x1872, {0x560ecefb2000}),
                   end({{0x26, 0x9ca613}}, 0x17cb, {0x560b65574000}), row_text(options, both)) +
                directions_text(options, mine, theirs),
            recorded("bwboth.client.txt"));
}

TEST(WriteReportTest, ALatencyReportEqualsThatOfPerftest) {
  // The values are read from the recording; the test compares the layout.
  for (const std::string end_name : {"client", "server"}) {
    const std::string text = recorded("lat." + end_name + ".txt");
    const WriteOptions options = end_name == "client" ? options_of(WriteProgram::kLatency, {"host"})
                                                      : options_of(WriteProgram::kLatency, {});
    const auto at = text.find("percentile[usec] \n");
    ASSERT_NE(at, text.npos);
    std::istringstream figures(text.substr(text.rfind("percentile[usec] \n") + 18));
    Latency row;
    figures >> row.bytes >> row.count >> row.min >> row.max >> row.typical >> row.average >> row.deviation >>
        row.percentile_99 >> row.percentile_99_9;
    const std::string ours =
        shared((options.is_server() ? waiting_text() : "") + banner_text(options, kPort));
    EXPECT_EQ(text.substr(0, ours.size()), ours);
    const std::string tail = header_text(options) + row_text(options, row) + rule_text();
    EXPECT_EQ(text.substr(text.size() - tail.size()), tail);
  }
  const WriteOptions timed = options_of(WriteProgram::kLatency, {"-D", "2", "host"});
  const std::string text = recorded("latD.client.txt");
  std::istringstream figures(text.substr(text.find("tps average\n") + 12));
  LatencyOverTime row;
  figures >> row.bytes >> row.count >> row.average_us >> row.per_second;
  const std::string tail = header_text(timed) + row_text(timed, row) + rule_text();
  EXPECT_EQ(text.substr(text.size() - tail.size()), tail);
}

TEST(WriteReportTest, RdmaCmChangesTheBannerAndTheAddresses) {
  const WriteOptions options = options_of(WriteProgram::kLatency, {"-R", "host"});
  const std::string ours =
      shared(banner_text(options, kPort) + address_text(options, "local", end({{0x14, 0x6b109}}, 1, {1})) +
             address_text(options, "remote", end({{0x15, 0xa91a8b}}, 1, {1})) + rule_text());
  EXPECT_EQ(recorded("latR.client.txt").substr(0, ours.size()), ours);
}

TEST(WriteReportTest, AllRoundTripsAreNumbered) {
  const WriteOptions options = options_of(WriteProgram::kLatency, {"-H", "host"});
  const std::string text = recorded("latH.client.txt");
  const std::string ours = round_trips_text(options, {358.188, 364.497, 429.259});
  EXPECT_NE(text.find(ours), text.npos) << ours;
}

TEST(WriteReportTest, JsonHasTheDialectOfVersion45ByDefault) {
  const WriteOptions server = options_of(WriteProgram::kBandwidth, {"-n", "200"});
  EXPECT_EQ(shared(json_text(server, kPort, Bandwidth{65536, 200, 29.86, 22.93, 0.000367})),
            recorded("bw.server.json"));
  const WriteOptions all = options_of(WriteProgram::kBandwidth, {"-a", "-n", "10", "host"});
  EXPECT_EQ(shared(json_text(all, kPort, Bandwidth{4096, 10, 58.13, 12.72, 0.003256})),
            recorded("bwa.client.json"));
  const WriteOptions lat = options_of(WriteProgram::kLatency, {"-n", "200", "host"});
  const Latency row{2, 200, 9.52, 10015.51, 9.76, 224.25, 865.50, 5343.88, 10015.51};
  EXPECT_EQ(shared(json_text(lat, kPort, row)), recorded("lat.client.json"));

  const auto parsed = nlohmann::json::parse(
      json_text(options_of(WriteProgram::kLatency, {"--perftest-format=6", "host"}), kPort, row));
  EXPECT_EQ(parsed["test_info"]["Device"], "rxe0");
  EXPECT_EQ(parsed["test_info"]["TX_depth"], 1);
  EXPECT_EQ(parsed["results"]["percentile_99.9"], 10015.51);
}

TEST(WriteReportTest, TheNewerLayoutPrintsMebibytes) {
  const WriteOptions options = options_of(WriteProgram::kBandwidth, {"--perftest-format=6", "host"});
  EXPECT_EQ(header_text(options),
            " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n");
  EXPECT_EQ(row_text(options, kRow),
            " 65536      5000             71.36              32.87  \t\t     0.000526\n");
}

TEST(WriteReportTest, OutputPrintsOneFigure) {
  EXPECT_EQ(row_text(options_of(WriteProgram::kBandwidth, {"--output=bandwidth", "h"}), kRow), "32.870000\n");
  EXPECT_EQ(row_text(options_of(WriteProgram::kBandwidth, {"--output=message_rate", "h"}), kRow),
            "0.000526\n");
}

TEST(WriteReportTest, TheOverheadIsTheExtraTimeOfAMessage) {
  const WriteOptions bw = options_of(WriteProgram::kBandwidth, {"--price", "h"});
  // 1 MiB at 100 and 80 MB/sec: 10 ms and 12.5 ms.
  EXPECT_THAT(overhead_row_text(bw, 1 << 20, 500, 100, 80), ::testing::HasSubstr("2500.00    +25.0"));
  const WriteOptions lat = options_of(WriteProgram::kLatency, {"--price", "h"});
  EXPECT_THAT(overhead_row_text(lat, 2, 1000, 10, 9), ::testing::HasSubstr("-1.00      -10.0"));
}

}  // namespace
}  // namespace hips::write
