#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "lib/base/chrome_trace.hpp"
#include "tools/hips/trace/trace_file.hpp"
#include "tools/hips/trace/trace_summary.hpp"

namespace hips::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "hips-trace-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }

  std::string read(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  std::unique_ptr<TraceSink> sink(Rank rank, Rank num_ranks, std::size_t max_buffered_events = 1000) const {
    return value_or_throw(make_chrome_trace({.directory = directory_,
                                             .rank = rank,
                                             .num_ranks = num_ranks,
                                             .max_buffered_events = max_buffered_events,
                                             .wall_offset_ns = 0}));
  }

  std::string error_of(const std::string& text) const {
    write("trace-0.json", text);
    const auto trace = read_trace_file(path("trace-0.json"));
    EXPECT_FALSE(trace) << text;
    return trace ? "" : trace.error().message;
  }

  std::string directory_;
};

TraceEvent operation(std::uint64_t sequence, std::int64_t begin_us, std::int64_t end_us) {
  return {.kind = TraceEvent::Kind::kOperation,
          .begin_ns = begin_us * 1000,
          .end_ns = end_us * 1000,
          .communicator = 7,
          .sequence = sequence};
}

TraceEvent wire(Rank peer, Rail rail, std::int64_t bytes, std::int64_t begin_us, std::int64_t end_us) {
  return {.kind = TraceEvent::Kind::kWire,
          .begin_ns = begin_us * 1000,
          .end_ns = end_us * 1000,
          .communicator = 7,
          .lane = 0,
          .stage = 1,
          .rail = rail,
          .peer = peer,
          .bytes = bytes};
}

TraceEvent span(TraceEvent::Kind kind, std::int64_t begin_us, std::int64_t end_us) {
  return {.kind = kind,
          .begin_ns = begin_us * 1000,
          .end_ns = end_us * 1000,
          .communicator = 7,
          .lane = 0,
          .peer = 1};
}

constexpr const char* kHead =
    R"([{"name":"process_name","ph":"M","pid":0,"tid":0,"args":{"name":"rank 0","num_ranks":1}})";

TEST_F(TraceTest, AClosedFileIsValidJsonWithTheFieldsThatViewersNeed) {
  {
    auto trace = sink(3, 9);
    trace->record(wire(1, 0, 4096, 10, 20));
    trace->record(span(TraceEvent::Kind::kReduce, 12, 13));
    trace->record(operation(5, 1, 30));
  }
  const auto events = nlohmann::json::parse(read("trace-3.json"));
  ASSERT_TRUE(events.is_array());
  int complete_events = 0;
  std::set<int> named_rows, used_rows;
  for (const auto& event : events) {
    EXPECT_TRUE(event.at("name").is_string());
    EXPECT_EQ(event.at("pid"), 3);
    ASSERT_TRUE(event.at("tid").is_number_integer());
    const std::string phase = event.at("ph");
    if (phase == "M") {
      EXPECT_TRUE(event.at("args").is_object());
      if (event.at("name") == "thread_name") named_rows.insert(event.at("tid").get<int>());
      continue;
    }
    EXPECT_EQ(phase, "X");
    EXPECT_TRUE(event.at("ts").is_number());
    EXPECT_GE(event.at("dur").get<double>(), 0);
    used_rows.insert(event.at("tid").get<int>());
    ++complete_events;
  }
  EXPECT_EQ(complete_events, 3);
  EXPECT_EQ(used_rows.size(), 3u);
  EXPECT_EQ(named_rows, used_rows);
}

TEST_F(TraceTest, TheReaderReturnsTheRecordedEventsToTheNanosecond) {
  TraceEvent event = wire(4, 1, std::int64_t{1} << 40, 0, 0);
  event.begin_ns = 1234567890123456;  // two weeks after boot
  event.end_ns = event.begin_ns + 1;
  event.communicator = 0xFFFFFFFFFFFFFFFF;
  event.sequence = 99;
  event.round = 2;
  event.level = 1;
  event.segment = 17;
  {
    auto trace = sink(3, 9);
    trace->record(event);
  }
  const RankTrace read = value_or_throw(read_trace_file(path("trace-3.json")));
  EXPECT_EQ(read.rank, 3);
  EXPECT_EQ(read.num_ranks, 9);
  EXPECT_FALSE(read.host.empty());
  EXPECT_FALSE(read.truncated);
  ASSERT_EQ(read.events.size(), 1u);
  const TraceEvent& got = read.events[0];
  EXPECT_EQ(got.kind, event.kind);
  EXPECT_EQ(got.begin_ns, event.begin_ns);
  EXPECT_EQ(got.end_ns, event.end_ns);
  EXPECT_EQ(got.communicator, event.communicator);
  EXPECT_EQ(got.sequence, event.sequence);
  EXPECT_EQ(std::tie(got.lane, got.stage, got.round, got.level, got.rail, got.peer, got.segment, got.bytes),
            std::tie(event.lane, event.stage, event.round, event.level, event.rail, event.peer, event.segment,
                     event.bytes));
}

TEST_F(TraceTest, OverlappingSpansGetSeparateRows) {
  {
    auto trace = sink(0, 2);
    trace->record(wire(1, 0, 1, 0, 10));
    trace->record(wire(1, 0, 1, 5, 15));
    trace->record(wire(1, 0, 1, 10, 20));
  }
  std::vector<int> rows;
  for (const auto& event : nlohmann::json::parse(read("trace-0.json"))) {
    if (event.at("ph") == "X") rows.push_back(event.at("tid").get<int>());
  }
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_NE(rows[0], rows[1]);
  EXPECT_EQ(rows[0], rows[2]);
}

TEST_F(TraceTest, AFullBufferIsWrittenAtOnce) {
  auto trace = sink(0, 1, 4);
  for (int i = 0; i < 3; ++i) trace->record(operation(static_cast<std::uint64_t>(i), i, i + 1));
  EXPECT_THAT(read("trace-0.json"), ::testing::Not(HasSubstr("\"X\"")));
  trace->record(operation(3, 3, 4));
  EXPECT_EQ(value_or_throw(read_trace_file(path("trace-0.json"))).events.size(), 4u);
}

TEST_F(TraceTest, AnEventASecondLaterWritesTheBuffer) {
  auto trace = sink(0, 1);
  trace->record(operation(0, 0, 1));
  trace->record(operation(1, 900'000, 999'999));
  EXPECT_TRUE(value_or_throw(read_trace_file(path("trace-0.json"))).events.empty());
  trace->record(operation(2, 1'000'000, 1'000'001));
  EXPECT_EQ(value_or_throw(read_trace_file(path("trace-0.json"))).events.size(), 3u);
}

TEST_F(TraceTest, TheFileOfAKilledProcessIsReadUpToItsLastCompleteEvent) {
  // A child writes two buffers and exits without closing the file. Then the file is truncated at every byte.
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto trace = sink(0, 1, 2);
    for (int i = 0; i < 5; ++i) trace->record(operation(static_cast<std::uint64_t>(i), i, i + 1));
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const std::string text = read("trace-0.json");
  const RankTrace whole = value_or_throw(read_trace_file(path("trace-0.json")));
  EXPECT_TRUE(whole.truncated);
  EXPECT_EQ(whole.events.size(), 4u);

  const std::size_t head = text.find("},\n");
  ASSERT_NE(head, std::string::npos);
  std::size_t num_events = 0;
  for (std::size_t cut = head + 1; cut < text.size(); ++cut) {
    write("cut.json", text.substr(0, cut));
    const RankTrace trace = value_or_throw(read_trace_file(path("cut.json")));
    EXPECT_TRUE(trace.truncated) << cut;
    EXPECT_GE(trace.events.size(), num_events) << cut;
    num_events = trace.events.size();
  }
  EXPECT_EQ(num_events, 3u);  // the last event needs its last byte
}

TEST_F(TraceTest, AForkedChildThatDestroysTheSinkDoesNotWriteTheFileOfItsParent) {
  auto trace = sink(0, 1);
  trace->record(operation(0, 0, 1));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    trace.reset();
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  trace->record(operation(1, 2, 3));
  trace.reset();
  const RankTrace got = value_or_throw(read_trace_file(path("trace-0.json")));
  EXPECT_FALSE(got.truncated);
  EXPECT_EQ(got.events.size(), 2u);
}

TEST_F(TraceTest, ADirectoryThatCannotBeCreatedIsNamed) {
  write("file", "");
  const auto trace = make_chrome_trace({.directory = path("file")});
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().code, Code::kSystem);
  EXPECT_THAT(trace.error().message, HasSubstr(path("file")));
}

TEST_F(TraceTest, TheReaderAcceptsTheObjectFormat) {
  write("trace-0.json", R"({"displayTimeUnit":"ns","otherData":{"x":{"y":1}},"traceEvents":)" +
                            std::string(kHead) +
                            R"(,{"ph":"X","cat":"operation","pid":0,"tid":1,"ts":1,"dur":2.5,
                                "args":{"communicator":"0x1","sequence":2,"bytes":3}},
                               {"ph":"X","cat":"somebody else's","pid":0,"tid":1,"ts":1,"dur":1}]})");
  const RankTrace trace = value_or_throw(read_trace_file(path("trace-0.json")));
  ASSERT_EQ(trace.events.size(), 1u);
  EXPECT_EQ(trace.events[0].end_ns, 3500);
}

TEST_F(TraceTest, TheErrorForAMalformedFileNamesFileFieldAndValue) {
  const std::string head = kHead;
  EXPECT_THAT(error_of("[{]"), HasSubstr("trace-0.json: malformed JSON at byte 3 of 3"));
  EXPECT_THAT(error_of("[]"), HasSubstr("has no rank"));
  EXPECT_THAT(error_of("42"), HasSubstr("expected an array of events"));
  EXPECT_THAT(error_of(R"({"a":1})"), HasSubstr("expected an array of events"));
  EXPECT_THAT(error_of(R"([{"name":"x"}])"), HasSubstr("has no \"ph\""));
  EXPECT_THAT(error_of(head + R"(,{"ph":"X","cat":"wire","pid":0}])"), HasSubstr("has no \"args\""));
  EXPECT_THAT(error_of(head + R"(,{"ph":"X","cat":"wire","ts":"now","dur":1,"args":{}}])"),
              HasSubstr("\"ts\" is \"now\""));
  EXPECT_THAT(error_of(head + R"(,{"ph":"X","cat":"wire","ts":1,"dur":-1,"args":{}}])"),
              HasSubstr("\"dur\" is -1"));
  EXPECT_THAT(error_of(head + R"(,{"ph":"X","cat":"wire","ts":1,"dur":1e300,"args":{}}])"),
              HasSubstr("\"dur\" is 1e+300"));
  const std::string event =
      head + R"(,{"ph":"X","cat":"wire","ts":1,"dur":1,"args":{"communicator":"0x1","sequence":2,"bytes":)";
  EXPECT_THAT(error_of(head + R"(,{"ph":"X","cat":"wire","ts":1,"dur":1,"args":{"communicator":7}}])"),
              HasSubstr("\"communicator\" is 7"));
  EXPECT_THAT(error_of(event + "4}}]"), HasSubstr("has no \"peer\""));
  EXPECT_THAT(error_of(event + R"("4","peer":1}}])"), HasSubstr("\"bytes\" is \"4\""));
  EXPECT_THAT(error_of(event + R"(4,"peer":4294967296}}])"), HasSubstr("\"peer\" is 4294967296"));
  EXPECT_THAT(error_of(event + R"(4,"peer":1,"rail":1.5}}])"), HasSubstr("\"rail\" is 1.5"));
  EXPECT_THAT(error_of(std::string(100'000, '[')), HasSubstr("is nested more than"));
}

TEST_F(TraceTest, TheErrorForADirectoryWithoutTracesTellsHowToMakeThem) {
  auto traces = read_traces({directory_});
  ASSERT_FALSE(traces);
  EXPECT_THAT(traces.error().message, HasSubstr("HIPS_TRACE=" + directory_));
  traces = read_traces({path("none")});
  ASSERT_FALSE(traces);
  EXPECT_THAT(traces.error().message, HasSubstr(path("none")));
}

TEST_F(TraceTest, TwoFilesOfOneRankAreAnError) {
  write("trace-0.json", std::string(kHead) + "]");
  write("trace-1.json", std::string(kHead) + "]");
  const auto traces = read_traces({directory_});
  ASSERT_FALSE(traces);
  EXPECT_THAT(traces.error().message, HasSubstr("both of rank 0"));
}

TEST_F(TraceTest, FilesOfTwoJobsAreAnError) {
  (void)sink(0, 2);
  (void)sink(3, 4);
  const auto traces = read_traces({directory_});
  ASSERT_FALSE(traces);
  EXPECT_THAT(traces.error().message, HasSubstr("trace-0.json is of a job of 2 ranks, and "));
  EXPECT_THAT(traces.error().message, HasSubstr("trace-3.json of one of 4; give the files of one job"));
}

TEST_F(TraceTest, AFileThatEndsBeforeItSaysWhoseItIsIsNoted) {
  (void)sink(0, 3);
  write("trace-1.json", "");
  write("trace-2.json", "[\n");
  const auto traces = read_traces({directory_});
  ASSERT_TRUE(traces) << traces.error().message;
  EXPECT_THAT(summarize(*traces).notes, ElementsAre(HasSubstr("rank 1 did not close its trace"),
                                                    HasSubstr("rank 2 did not close its trace")));
}

TEST_F(TraceTest, WhatIsFlushedIsInTheFile) {
  const auto trace = sink(0, 1);
  trace->record(operation(7, 1, 2));
  trace->flush();
  EXPECT_THAT(read("trace-0.json"), HasSubstr("operation 7"));
}

TEST_F(TraceTest, TheSummaryNamesTheSlowestLinkAndTheLatestRank) {
  {
    // Rank 0 is on time and fast. Its one small message to rank 2 has a low rate, which must be ignored.
    auto trace = sink(0, 3);
    for (int i = 0; i < 4; ++i) {
      const std::int64_t at = 1000 * i;
      trace->record(wire(1, 0, 1000, at + 10, at + 20));
      trace->record(operation(static_cast<std::uint64_t>(i), at, at + 100));
    }
    trace->record(wire(2, 0, 1, 50, 60));
  }
  {
    // Rank 1 enters 30 us late three times out of four, and its NIC 1 is four times slower.
    auto trace = sink(1, 3);
    for (int i = 0; i < 4; ++i) {
      const std::int64_t at = 1000 * i;
      trace->record(wire(2, 1, 1000, at + 40, at + 80));
      trace->record(operation(static_cast<std::uint64_t>(i), at + (i == 0 ? 0 : 30), at + 100));
    }
  }
  {
    auto trace = sink(2, 3);
    for (int i = 0; i < 4; ++i) {
      const std::int64_t at = 1000 * i;
      trace->record(wire(0, 0, 1000, at + 10, at + 20));
      trace->record(operation(static_cast<std::uint64_t>(i), at + 5, at + 100));
    }
  }
  const auto traces = value_or_throw(read_traces({directory_}));
  const Summary summary = summarize(traces);
  ASSERT_TRUE(summary.slowest_link);
  const LinkUse& slowest = summary.links[*summary.slowest_link];
  EXPECT_EQ(std::tuple(slowest.sender, slowest.receiver, slowest.rail), std::tuple(1, 2, 1));
  EXPECT_EQ(slowest.bytes, 4000);
  EXPECT_EQ(slowest.busy_ns, 160'000);
  EXPECT_EQ(summary.links.back().bytes, 1);
  ASSERT_TRUE(summary.latest_rank);
  const RankUse& latest = summary.ranks[*summary.latest_rank];
  EXPECT_EQ(latest.rank, 1);
  EXPECT_EQ(latest.median_late_ns, 30'000);
  EXPECT_EQ(latest.times_last, 3);
  EXPECT_EQ(summary.num_compared_operations, 4);
  EXPECT_THAT(summary.notes, ElementsAre());
  EXPECT_THAT(to_text(summary), HasSubstr("slowest link: rank 1 -> rank 2, rail 1: 0.025 GB/s"));
  EXPECT_THAT(to_text(summary),
              HasSubstr("latest rank: 1: median delay of 30.0 us after the first rank, last in 3 of 4"));
  const auto json = to_json(summary);
  EXPECT_EQ(json.at("slowest_link").at("receiver"), 2);
  EXPECT_EQ(json.at("latest_rank").at("rank"), 1);
}

TEST_F(TraceTest, OverlappingSpansCountOnceInShares) {
  {
    auto trace = sink(0, 1);
    trace->record(operation(0, 0, 100));
    trace->record(span(TraceEvent::Kind::kWait, 0, 40));
    trace->record(span(TraceEvent::Kind::kWait, 20, 50));
    trace->record(span(TraceEvent::Kind::kReduce, 50, 60));
    trace->record(span(TraceEvent::Kind::kReduce, 60, 75));
  }
  const auto traces = value_or_throw(read_traces({directory_}));
  const Summary summary = summarize(traces);
  ASSERT_EQ(summary.ranks.size(), 1u);
  EXPECT_EQ(summary.ranks[0].operation_ns, 100'000);
  EXPECT_EQ(summary.ranks[0].wait_ns, 50'000);
  EXPECT_EQ(summary.ranks[0].reduce_ns, 25'000);
  EXPECT_EQ(summary.ranks[0].wire_ns, 0);
  EXPECT_FALSE(summary.latest_rank);
  EXPECT_FALSE(summary.slowest_link);
}

TraceEvent update(Rank rank, std::uint64_t group, std::int32_t members, std::int64_t delay,
                  std::int64_t end_us) {
  return {.kind = TraceEvent::Kind::kUpdate,
          .begin_ns = 1000,
          .end_ns = end_us * 1000,
          .communicator = 9,
          .sequence = group,
          .peer = rank,
          .bytes = 4096,
          .shard = 1,
          .members = members,
          .version = 4,
          .delay = delay};
}

TEST_F(TraceTest, UpdatesAndValuesOfModelsAreReadAndSummarised) {
  {
    auto trace = sink(0, 1);
    trace->record(update(2, 1, 2, 0, 101));
    trace->record(update(3, 1, 2, 3, 101));
    trace->record(update(4, 2, 1, 1, 301));
    trace->record(update(5, 0, 0, 9, 11));
    trace->record({.kind = TraceEvent::Kind::kValues,
                   .begin_ns = 5000,
                   .end_ns = 6000,
                   .communicator = 9,
                   .sequence = 1,
                   .bytes = 4096,
                   .shard = 1,
                   .members = 3});
  }
  const std::string text = read("trace-0.json");
  EXPECT_THAT(text, HasSubstr(R"("name":"shard 1 updates")"));
  EXPECT_THAT(text, HasSubstr(R"("name":"shard 1 values")"));
  EXPECT_THAT(text, HasSubstr("update of rank 3, group 1"));
  EXPECT_THAT(text, HasSubstr("update of rank 5: handed back"));
  EXPECT_THAT(text, HasSubstr("values to 3 nodes"));
  EXPECT_THAT(text, HasSubstr(R"("shard":1,"members":2,"version":4,"delay":3)"));
  const Summary summary = summarize(value_or_throw(read_traces({directory_})));
  ASSERT_EQ(summary.shards.size(), 1U);
  const ShardUse& shard = summary.shards[0];
  EXPECT_EQ(shard.model, 9U);
  EXPECT_EQ(shard.shard, 1);
  EXPECT_EQ(shard.num_applied, 3);
  EXPECT_EQ(shard.num_groups, 2);
  EXPECT_EQ(shard.num_handed_back, 1);
  EXPECT_EQ(shard.median_ns, 100'000);
  EXPECT_EQ(shard.longest_delay, 3);
  EXPECT_EQ(shard.num_chains, 1);
  EXPECT_EQ(shard.num_nodes, 3);
  EXPECT_THAT(to_text(summary), testing::ContainsRegex("1 +3 +2 +1 +0.100 +3 +1 +3"));
  EXPECT_EQ(to_json(summary)["shards"][0]["num_applied"], 3);
  // An update without its shard is not one of HiPS.
  EXPECT_THAT(
      error_of(
          std::string(kHead) +
          R"(,{"ph":"X","cat":"update","ts":1,"dur":1,"args":{"communicator":"0x9","sequence":1,"bytes":1}}])"),
      HasSubstr("has no \"shard\""));
}

TEST_F(TraceTest, AMissingRankAndATruncatedFileAreNoted) {
  write("trace-0.json",
        R"([{"name":"process_name","ph":"M","pid":0,"tid":0,"args":{"name":"rank 0","num_ranks":3}},)");
  write("trace-2.json",
        R"([{"name":"process_name","ph":"M","pid":2,"tid":0,"args":{"name":"rank 2","num_ranks":3}}])");
  const auto traces = value_or_throw(read_traces({directory_}));
  EXPECT_THAT(summarize(traces).notes,
              ElementsAre(HasSubstr("rank 0 did not close"), "missing traces: rank 1 of 3"));
}

TEST_F(TraceTest, ManyMissingRanksAreCounted) {
  write(
      "trace-1.json",
      R"([{"name":"process_name","ph":"M","pid":1,"tid":0,"args":{"name":"rank 1","num_ranks":2000000000}}])");
  const auto traces = value_or_throw(read_traces({directory_}));
  EXPECT_THAT(
      summarize(traces).notes,
      ElementsAre("missing traces: rank 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 and 1999999983 "
                  "more of 2000000000"));
}

TEST_F(TraceTest, ADeeplyNestedFileIsRejected) {
  for (const std::size_t depth : {100u, 300000u}) {
    const std::string text = R"([{"a":)" + std::string(depth, '[') + std::string(depth, ']') + "}]";
    EXPECT_THAT(error_of(text), HasSubstr("is nested more than 64 levels deep"));
  }
}

TEST_F(TraceTest, TimesWhoseSumOverflowsAreRejected) {
  EXPECT_THAT(error_of(R"([{"ph":"X","cat":"wire","ts":8.9e15,"dur":8.9e15,"args":{}}])"),
              HasSubstr("expected microseconds, 0 or more"));
}

TEST_F(TraceTest, RanksOfSeveralNodesAreComparedInWallClockTime) {
  const auto rank_on = [](Rank rank, const char* host, std::int64_t wall_offset_ns, std::int64_t begin_us) {
    RankTrace trace;
    trace.rank = rank;
    trace.host = host;
    trace.wall_offset_ns = wall_offset_ns;
    trace.events.push_back(operation(1, begin_us, begin_us + 100));
    return trace;
  };
  // By their own clocks rank 0 would be an hour late; by the wall clock rank 1 is, by 2 us.
  const std::vector<RankTrace> traces = {
      rank_on(0, "a", 1'000'000, 3'600'000'000),
      rank_on(1, "b", 1'000'000 + 3'600'000'000'000 + 2'000, 0),
  };
  const Summary summary = summarize(traces);
  ASSERT_TRUE(summary.latest_rank);
  EXPECT_EQ(summary.ranks[*summary.latest_rank].rank, 1);
  EXPECT_EQ(summary.ranks[1].median_late_ns, 2'000);
  EXPECT_THAT(summary.notes, ElementsAre(HasSubstr("2 nodes")));
}

}  // namespace
}  // namespace hips::trace
