#include "lib/comm/calls/call_record.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

namespace call_record_test {
namespace {

using hips::DataType;
using hips::ReduceOp;
using hips::comm::CallEntry;
using hips::comm::CallRecord;

TEST(CallRecord, CountsExecutedAndDelegatedCallsTogether) {
  CallRecord record;
  EXPECT_EQ(record.last().kind, CallEntry::Kind::kNone);
  EXPECT_EQ(record.begin({.count = 4, .type = DataType::kFloat64, .op = ReduceOp::kMax}), 1u);
  EXPECT_FALSE(record.last().finished);
  record.end(1);
  record.add_delegated("MPI_Allreduce of a derived type");
  EXPECT_EQ(record.begin({.count = 1, .type = DataType::kInt32, .op = ReduceOp::kSum}), 3u);

  record.end(3);
  record.begin({.collective = hips::Collective::kBcast, .count = 2, .type = DataType::kInt32, .root = 2});
  EXPECT_EQ(to_string(record.last()), "bcast #4 (2 x int32, root 2)");

  EXPECT_EQ(to_string(record.at(1)), "allreduce #1 (4 x float64, max)");
  EXPECT_TRUE(record.at(1).finished);
  EXPECT_EQ(to_string(record.at(2)), "call #2 (MPI_Allreduce of a derived type, delegated to native MPI)");
  EXPECT_EQ(record.last().index, 4u);
  EXPECT_FALSE(record.last().finished);
  EXPECT_EQ(record.at(5).kind, CallEntry::Kind::kNone);
}

TEST(CallRecord, LetsOutstandingCallsCompleteInAnyOrder) {
  CallRecord record;
  for (int i = 0; i < 4; ++i) record.begin({.count = 1, .type = DataType::kInt32, .op = ReduceOp::kSum});
  EXPECT_EQ(record.current().index, 1u);
  record.end(3);
  record.end(2);
  EXPECT_EQ(record.current().index, 1u);
  EXPECT_FALSE(record.at(1).finished);
  record.end(1);
  EXPECT_EQ(record.current().index, 4u);
  EXPECT_TRUE(record.at(3).finished);
  EXPECT_FALSE(record.at(4).finished);
  record.end(4);
  EXPECT_EQ(record.current().index, 4u);
  EXPECT_TRUE(record.current().finished);
}

TEST(CallRecord, CountsAsPlainListsDoInAnyOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    CallRecord record;
    std::vector<std::uint64_t> outstanding;
    std::uint64_t last = 0;
    for (int step = 0; step < 40; ++step) {
      const auto what = random() % 4;
      if (what == 0) {
        outstanding.push_back(record.begin({.count = 1, .type = DataType::kInt32, .op = ReduceOp::kSum}));
        ++last;
      } else if (what == 1) {
        record.add_delegated("MPI_Bcast");
        ++last;
        if (random() % 2 == 0) {
          record.take_back_delegated();
          --last;
        }
      } else if (!outstanding.empty()) {
        const auto place = outstanding.begin() + static_cast<std::ptrdiff_t>(random() % outstanding.size());
        record.end(*place);
        outstanding.erase(place);
      }
      const std::uint64_t first =
          outstanding.empty() ? last : *std::min_element(outstanding.begin(), outstanding.end());
      ASSERT_EQ(record.last().index, last);
      if (last - first < CallRecord::kHistory) {
        ASSERT_EQ(record.current().index, first) << "round " << round << ", step " << step;
      }
    }
  }
}

TEST(CallRecord, AMillionCallsBehindAnOutstandingOneCostNoMoreThanWithout) {
  CallRecord record;
  record.begin({.count = 1, .type = DataType::kInt32, .op = ReduceOp::kSum});
  // Quadratic, this would take minutes.
  for (int call = 0; call < 1'000'000; ++call) record.add_delegated("MPI_Barrier");
  EXPECT_EQ(record.current().index, record.last().index) << "the first one is no longer in the history";
  record.end(1);
  EXPECT_TRUE(record.current().finished);
}

TEST(CallRecord, ForgetsOldCalls) {
  CallRecord record;
  for (std::uint64_t i = 0; i < CallRecord::kHistory + 2; ++i)
    record.begin({.count = i, .type = DataType::kInt32, .op = ReduceOp::kSum});
  EXPECT_EQ(record.at(2).kind, CallEntry::Kind::kNone);
  EXPECT_EQ(record.at(3).count, 2u);
}

TEST(CallRecord, ComparesKindAndSignatureOfCalls) {
  CallRecord a, b;
  a.begin({.count = 4, .type = DataType::kInt32, .op = ReduceOp::kSum});
  b.begin({.count = 4, .type = DataType::kInt32, .op = ReduceOp::kSum});
  EXPECT_TRUE(same_call(a.at(1), b.at(1)));
  a.begin({.count = 4, .type = DataType::kInt32, .op = ReduceOp::kSum});
  b.begin({.count = 5, .type = DataType::kInt32, .op = ReduceOp::kSum});
  EXPECT_FALSE(same_call(a.at(2), b.at(2)));
  a.begin({.count = 4, .type = DataType::kInt32, .op = ReduceOp::kSum});
  b.add_delegated("MPI_Allreduce");
  EXPECT_FALSE(same_call(a.at(3), b.at(3)));
  a.begin({.collective = hips::Collective::kBcast, .count = 4, .root = 1});
  b.begin({.collective = hips::Collective::kBcast, .count = 4, .root = 2});
  EXPECT_FALSE(same_call(a.at(4), b.at(4)));
  a.begin({.collective = hips::Collective::kReduce, .count = 4, .root = 1});
  b.begin({.collective = hips::Collective::kBcast, .count = 4, .root = 1});
  EXPECT_FALSE(same_call(a.at(5), b.at(5)));
}

TEST(CallRecord, SerializesAnEntry) {
  CallRecord record;
  record.add_delegated("MPI_Allreduce of a user op");
  hips::comm::ByteWriter writer;
  hips::comm::put_call(writer, record.last());
  hips::comm::ByteReader reader(writer.blob());
  EXPECT_EQ(hips::comm::get_call(reader), record.last());
  EXPECT_TRUE(reader.ok());
}

TEST(CallRecord, AReaderRejectsEnumeratorsThatDoNotExist) {
  const auto reads = [](const hips::comm::ByteWriter& writer, const auto& get) {
    hips::comm::ByteReader reader(writer.blob());
    get(reader);
    return reader.ok();
  };
  const auto get_call = [](hips::comm::ByteReader& reader) { (void)hips::comm::get_call(reader); };
  const auto get_status = [](hips::comm::ByteReader& reader) { (void)reader.get_status(); };
  const auto call = [](CallEntry::Kind kind, int collective) {
    hips::comm::ByteWriter writer;
    CallEntry entry;
    entry.kind = kind;
    entry.collective = static_cast<hips::Collective>(collective);
    hips::comm::put_call(writer, entry);
    return writer;
  };
  const auto status = [](int code, int scope) {
    hips::comm::ByteWriter writer;
    hips::Status one;
    one.code = static_cast<hips::Code>(code);
    one.scope = static_cast<hips::Scope>(scope);
    writer.put_status(one);
    return writer;
  };
  EXPECT_TRUE(reads(call(CallEntry::Kind::kDestroyed, hips::kNumCollectives - 1), get_call));
  EXPECT_FALSE(reads(call(CallEntry::Kind::kDestroyed, hips::kNumCollectives), get_call));
  EXPECT_FALSE(reads(call(static_cast<CallEntry::Kind>(4), 0), get_call));
  EXPECT_TRUE(reads(status(static_cast<int>(hips::Code::kInternal), 4), get_status));
  EXPECT_FALSE(reads(status(10, 0), get_status));
  EXPECT_FALSE(reads(status(-1, 0), get_status));
  EXPECT_FALSE(reads(status(0, 5), get_status));
}

TEST(CallRecord, ShowsAReaderThreadWholeEntries) {
  CallRecord record;
  std::atomic<bool> stop{false};
  std::uint64_t seen = 0, torn = 0;
  std::thread reader([&] {
    while (!stop.load()) {
      const CallEntry last = record.last();
      if (last.kind == CallEntry::Kind::kNone) continue;
      ++seen;
      // The writer gives each call its index as its count.
      torn += last.count != last.index;
    }
  });
  std::uint64_t index = 0;
  while (index < 200'000) {
    ++index;
    record.begin({.count = index, .type = DataType::kInt32, .op = ReduceOp::kSum});
  }
  stop = true;
  reader.join();
  EXPECT_EQ(torn, 0u);
  RecordProperty("seen", static_cast<int>(seen));
}

}  // namespace
}  // namespace call_record_test
