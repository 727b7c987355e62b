// Many vectors in one call. Ranks are processes; each computes the expected results itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <hips/hips.hpp>

#include "lib/comm/calls/coalesced.hpp"
#include "lib/comm/calls/coalesced_request.hpp"
#include "lib/comm/communicator.hpp"
#include "tests/choices.hpp"
#include "tests/comm/whole_ranks.hpp"

namespace coalesced_test {
namespace {

using hips::ReduceOp;
using hips::comm::Coalescer;
using hips::test::expect_texts;
using testing::HasSubstr;

/// Draws sizes around every limit, with runs of many small ones.
std::vector<std::size_t> draw_bytes(std::mt19937_64& random) {
  const std::size_t limits[] = {0, 8, 4096, Coalescer::kSmallBytes, Coalescer::kBucketBytes};
  std::vector<std::size_t> sizes;
  const std::size_t num = random() % 60;
  while (sizes.size() < num) {
    const std::size_t limit = limits[random() % std::size(limits)];
    const std::size_t size = random() % 3 == 0 ? limit + 8 * (random() % 3) : random() % (limit + 1);
    const std::size_t repeats = limit <= Coalescer::kSmallBytes ? 1 + random() % 30 : 1;
    sizes.insert(sizes.end(), repeats, size);
  }
  return sizes;
}

/// A list of vectors of two types, some in place, with values that make every sum exact and different.
struct List {
  List(std::uint64_t seed, int rank, int size) {
    std::mt19937_64 random(seed);
    const bool prioritized = seed % 2 == 0;
    for (const std::size_t bytes : draw_bytes(random)) {
      const bool wide = random() % 4 != 0, in_place = random() % 2 == 0;
      const std::size_t count = bytes / (wide ? 8 : 4);
      const auto base = static_cast<std::int64_t>(random() % 1000);
      in.emplace_back(bytes + 8);
      out.emplace_back(bytes + 8);
      want.emplace_back(bytes + 8);
      for (std::size_t i = 0; i < count; ++i) {
        const auto mine = base + static_cast<std::int64_t>(i % 97) + rank;
        const auto sum = size * (base + static_cast<std::int64_t>(i % 97)) + size * (size - 1) / 2;
        put(wide, (in_place ? out : in).back().data(), i, mine);
        put(wide, want.back().data(), i, sum);
      }
      buffers.push_back({in_place ? HIPS_IN_PLACE : in.back().data(), out.back().data(), count,
                         wide ? HIPS_INT64 : HIPS_FLOAT32,
                         prioritized ? static_cast<int>(random() % 5) - 2 : 0});
    }
  }
  static void put(bool wide, char* to, std::size_t i, std::int64_t value) {
    if (wide) {
      reinterpret_cast<std::int64_t*>(to)[i] = value;
    } else {
      reinterpret_cast<float*>(to)[i] = static_cast<float>(value);
    }
  }

  std::vector<hips_buffer_t> buffers;
  std::vector<std::vector<char>> in, out, want;
};

struct Backend {
  int num_ranks;
  std::string topology, transport;
};
void PrintTo(const Backend& backend, std::ostream* to) {
  *to << backend.num_ranks << " ranks, " << backend.topology << ", " << backend.transport;
}

hips_comm_t communicator(const std::string& topology) {
  hips_comm_config_t config = HIPS_COMM_CONFIG_INIT;
  if (!topology.empty()) config.topology = topology.c_str();
  hips_comm_t comm = nullptr;
  if (hips_comm_create(&config, nullptr, &comm) != HIPS_OK) throw std::runtime_error(hips_last_error());
  return comm;
}

class Coalesced : public testing::TestWithParam<Backend> {};

TEST_P(Coalesced, ReducesListsOfAnySizesExactly) {
  const Backend& backend = GetParam();
  const std::uint64_t from_seed = hips::test::seed();
  const int rounds = hips::test::runs_everything() ? 60 : hips::test::runs_a_sample() ? 2 : 8;
  expect_texts(
      backend.num_ranks,
      [&](int rank) -> std::string {
        hips_comm_t comm = communicator(backend.topology);
        for (int round = 0; round < rounds; ++round) {
          List list(from_seed + static_cast<std::uint64_t>(round), rank, backend.num_ranks);
          if (hips_allreduce_coalesced(list.buffers.data(), list.buffers.size(), HIPS_SUM, comm) != HIPS_OK)
            return hips_last_error();
          for (std::size_t i = 0; i < list.out.size(); ++i)
            if (list.out[i] != list.want[i])
              return "round " + std::to_string(round) + ", vector " + std::to_string(i) + " is wrong";
        }
        return hips_comm_destroy(comm) == HIPS_OK ? "right" : "not destroyed";
      },
      "right", {{"HIPS_TRANSPORT", backend.transport}});
}

// Two lists and an allreduce are outstanding together; in which order a rank looks at them is its own affair.
TEST_P(Coalesced, NonBlockingListsAreExactAmongOtherCalls) {
  const Backend& backend = GetParam();
  const std::uint64_t from_seed = hips::test::seed();
  const int rounds = hips::test::runs_everything() ? 30 : hips::test::runs_a_sample() ? 1 : 4;
  expect_texts(
      backend.num_ranks,
      [&](int rank) -> std::string {
        hips_comm_t comm = communicator(backend.topology);
        std::mt19937_64 own(from_seed + 1000 + static_cast<std::uint64_t>(rank));
        for (int round = 0; round < rounds; ++round) {
          const std::uint64_t seed = from_seed + 2 * static_cast<std::uint64_t>(round);
          List lists[] = {{seed, rank, backend.num_ranks}, {seed + 1, rank, backend.num_ranks}};
          std::int32_t value = rank;
          hips_request_t requests[3] = {};
          for (int i = 0; i < 2; ++i) {
            const std::vector<hips_buffer_t> copied = lists[i].buffers;
            if (hips_iallreduce_coalesced(copied.data(), copied.size(), HIPS_SUM, comm, &requests[2 * i]) !=
                HIPS_OK)
              return hips_last_error();
            if (i == 0 && hips_iallreduce(HIPS_IN_PLACE, &value, 1, HIPS_INT32, HIPS_SUM, comm,
                                          &requests[1]) != HIPS_OK)
              return hips_last_error();
          }
          int done = 0;
          while (own() % 4 != 0 && done == 0)
            if (hips_test(&requests[own() % 3], &done) != HIPS_OK) return hips_last_error();
          std::size_t index = 0;
          while (own() % 2 == 0 && index != HIPS_INDEX_NONE) {
            if (hips_waitany(3, requests, &index) != HIPS_OK) return hips_last_error();
            if (index != HIPS_INDEX_NONE && requests[index] != HIPS_REQUEST_NULL) return "not freed";
          }
          if (hips_waitall(3, requests) != HIPS_OK) return hips_last_error();
          if (value != backend.num_ranks * (backend.num_ranks - 1) / 2) return "the allreduce is wrong";
          for (const List& list : lists)
            for (std::size_t i = 0; i < list.out.size(); ++i)
              if (list.out[i] != list.want[i])
                return "round " + std::to_string(round) + ", vector " + std::to_string(i) + " is wrong";
        }
        return hips_comm_destroy(comm) == HIPS_OK ? "right" : "not destroyed";
      },
      "right", {{"HIPS_TRANSPORT", backend.transport}});
}

INSTANTIATE_TEST_SUITE_P(Of, Coalesced,
                         testing::Values(Backend{1, "", "auto"}, Backend{3, "", "auto"},
                                         Backend{4, "bcube:2,1", "shm"}, Backend{4, "switch:2/2", "auto"},
                                         Backend{2, "switch:2", "tcp"}));

TEST(Coalesced, AcceptsSpansOfOneType) {
  expect_texts(
      2,
      [](int) -> std::string {
        auto comm = hips::Communicator::from_environment();
        std::vector<std::vector<double>> gradients = {{1, 2}, {}, {3}};
        std::vector<std::span<double>> spans(gradients.begin(), gradients.end());
        comm.allreduce_coalesced<double>(spans, ReduceOp::kSum);
        const std::int32_t priorities[] = {2, 0, 1};
        comm.allreduce_coalesced<double>(spans, ReduceOp::kSum, priorities);
        try {
          comm.allreduce_coalesced<double>(spans, ReduceOp::kSum, std::span(priorities).first(2));
          return "accepted two priorities for three vectors";
        } catch (const hips::Error& error) {
          if (std::string(error.what()).find("3 vectors, but 2 priorities") == std::string::npos)
            return error.what();
        }
        // Without spans, and without waiting.
        hips::Request requests[] = {comm.iallreduce_coalesced(gradients, ReduceOp::kMax),
                                    comm.iallreduce_coalesced<double>(spans, ReduceOp::kMax, priorities)};
        hips::wait_all(requests);
        if (requests[0].handle() != nullptr || requests[1].handle() != nullptr) return "not freed";
        hips::Request empty = comm.iallreduce_coalesced(std::vector<std::span<double>>(), ReduceOp::kMax);
        empty.wait();
        const std::vector<std::vector<double>> want = {{4, 8}, {}, {12}};
        return gradients == want ? "right" : "wrong";
      },
      "right");
}

struct Started {
  const std::byte* in;
  std::uint64_t count;
  std::int32_t priority;
  friend bool operator==(const Started&, const Started&) = default;
};

/// Records the calls that are started. Each is complete at once.
class RecordingBackend final : public hips::comm::Backend {
 public:
  RecordingBackend(Context context, std::vector<Started>& started)
      : Backend(std::move(context)), started_(started) {}
  hips::Result<hips::Outbound> make(const hips::comm::Design&, const std::vector<hips::comm::ProcessInfo>&,
                                    std::uint64_t) override {
    return hips::Outbound();
  }
  hips::comm::FailureActions failure_actions() override { return {}; }
  hips::Result<hips::Outbound> allocate(const hips::Inbound&) override { return hips::Outbound(); }
  hips::Status connect(const hips::Inbound&) override { return {}; }
  hips::Status run(const hips::comm::CallArgs& args, hips::comm::Communicator& caller) override {
    RecordingCall call(started_);
    return caller.finish_blocking(call, args);
  }
  std::unique_ptr<hips::comm::PendingCall> make_call() override {
    return std::make_unique<RecordingCall>(started_);
  }
  void advance() override {}
  [[nodiscard]] hips::Clock& clock() const override { return hips::SystemClock::instance(); }

 private:
  class RecordingCall final : public hips::comm::PendingCall {
   public:
    explicit RecordingCall(std::vector<Started>& started) : started_(started) {}
    hips::Status set(const hips::comm::CallArgs& args) override {
      args_ = args;
      return {};
    }
    void start() override { started_.push_back({args_.in, args_.count, args_.priority}); }
    std::optional<hips::Status> test() override { return hips::Status(); }
    [[nodiscard]] bool done() const override { return true; }
    hips::Status wait(const hips::WaitOptions&) override { return {}; }
    [[nodiscard]] std::vector<hips::Rank> waiting_for() const override { return {}; }
    [[nodiscard]] std::string waiting_text() const override { return {}; }

   private:
    std::vector<Started>& started_;
    hips::comm::CallArgs args_;
  };
  std::vector<Started>& started_;
};

/// A communicator of two ranks with a RecordingBackend.
struct Recording {
  std::vector<Started> started;
  hips::comm::Communicator communicator{0, 2, std::make_shared<const hips::Config>(), {}};
  Recording() { communicator.use(std::make_unique<RecordingBackend>(communicator.context(), started)); }
};

TEST(Coalesced, NonBlockingListsStartTheSameCallsAsBlockingOnes) {
  const std::uint64_t from_seed = hips::test::seed();
  for (std::uint64_t seed = from_seed; seed < from_seed + 20; ++seed) {
    const List list(seed, 0, 2);
    std::vector<hips::comm::CoalescedBuffer> buffers;
    for (const hips_buffer_t& buffer : list.buffers)
      buffers.push_back({static_cast<const std::byte*>(buffer.out), static_cast<std::byte*>(buffer.out),
                         buffer.count, static_cast<hips::DataType>(buffer.type), buffer.priority});
    Recording blocking, non_blocking;
    ASSERT_TRUE(Coalescer(blocking.communicator).allreduce(buffers, ReduceOp::kSum).ok());
    auto request = hips::comm::prepare_coalesced(non_blocking.communicator, buffers, ReduceOp::kSum);
    ASSERT_TRUE(request.has_value());
    EXPECT_TRUE(non_blocking.started.empty());
    ASSERT_TRUE((*request)->start().ok());
    EXPECT_TRUE((*request)->wait().ok());
    ASSERT_EQ(blocking.started.size(), non_blocking.started.size()) << "seed " << seed;
    for (std::size_t i = 0; i < blocking.started.size(); ++i) {
      EXPECT_EQ(blocking.started[i].count, non_blocking.started[i].count)
          << "seed " << seed << ", call " << i;
      EXPECT_EQ(blocking.started[i].priority, non_blocking.started[i].priority) << "seed " << seed;
    }
  }
}

TEST(Coalesced, StartsByPriorityThenByListOrder) {
  constexpr std::size_t kLarge = Coalescer::kSmallBytes;  // elements of four bytes
  std::vector<std::byte> memory(5 * kLarge * 4);
  const auto large = [&](std::size_t i) { return memory.data() + i * kLarge * 4; };
  const auto buffer = [&](std::size_t i, std::int32_t priority) {
    return hips::comm::CoalescedBuffer{large(i), large(i), kLarge, hips::DataType::kFloat32, priority};
  };
  Recording recording;
  Coalescer coalescer(recording.communicator);
  const hips::comm::CoalescedBuffer list[] = {buffer(0, 7), buffer(1, -1), buffer(2, 7), buffer(3, 0),
                                              buffer(4, -1)};
  ASSERT_TRUE(coalescer.allreduce(list, ReduceOp::kSum).ok());
  const std::vector<Started> want = {{large(1), kLarge, -1},
                                     {large(4), kLarge, -1},
                                     {large(3), kLarge, 0},
                                     {large(0), kLarge, 7},
                                     {large(2), kLarge, 7}};
  EXPECT_EQ(recording.started, want);
}

TEST(Coalesced, GivesABucketThePriorityOfItsFirstVector) {
  float values[6] = {};
  auto* const bytes = reinterpret_cast<std::byte*>(values);
  const auto buffer = [&](std::size_t i, std::int32_t priority) {
    return hips::comm::CoalescedBuffer{bytes + 4 * i, bytes + 4 * i, 1, hips::DataType::kFloat32, priority};
  };
  Recording recording;
  Coalescer coalescer(recording.communicator);
  const hips::comm::CoalescedBuffer list[] = {buffer(0, 3), buffer(1, 9), buffer(2, 2)};
  ASSERT_TRUE(coalescer.allreduce(list, ReduceOp::kSum).ok());
  ASSERT_EQ(recording.started.size(), 1U);
  EXPECT_EQ(recording.started[0].count, 3U);
  EXPECT_EQ(recording.started[0].priority, 2);
}

TEST(Coalesced, NamesAnInvalidBufferAndReducesNothing) {
  expect_texts(
      2,
      [](int) -> std::string {
        hips_comm_t comm = communicator("");
        double fine[2] = {1, 2};
        const hips_buffer_t list[] = {{HIPS_IN_PLACE, fine, 2, HIPS_FLOAT64, 0},
                                      {nullptr, fine, 1, HIPS_FLOAT64, 0}};
        const std::string text =
            hips_allreduce_coalesced(list, 2, HIPS_SUM, comm) == HIPS_OK ? "no error" : hips_last_error();
        if (fine[0] != 1) return "it took place";
        if (hips_allreduce_coalesced(list, 1, HIPS_SUM, comm) != HIPS_OK || fine[0] != 2) return "broken";
        (void)hips_comm_destroy(comm);
        return text;
      },
      HasSubstr("buffer 1 of 2: allreduce: the input buffer is null"));
}

TEST(Coalesced, ReportsDifferentListsOnEveryRank) {
  expect_texts(
      3,
      [](int rank) -> std::string {
        hips_comm_t comm = communicator("");
        std::vector<float> values(100);
        const hips_buffer_t list[] = {
            {HIPS_IN_PLACE, values.data(), 40, HIPS_FLOAT32, 0},
            {HIPS_IN_PLACE, values.data() + 50, rank == 1 ? 41U : 40U, HIPS_FLOAT32, 0}};
        const auto status = hips_allreduce_coalesced(list, 2, HIPS_SUM, comm);
        const std::string text = status == HIPS_OK ? "no error" : hips_last_error();
        (void)hips_comm_destroy(comm);
        return text;
      },
      HasSubstr("all ranks must pass the same"));
}

}  // namespace
}  // namespace coalesced_test
