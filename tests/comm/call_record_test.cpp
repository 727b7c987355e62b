#include "lib/comm/calls/call_record.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

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
