// Buffers in memory of hips_mem_alloc, which other ranks read in place. Ranks are threads; runs under TSan in
// tools/check.

#include "lib/node/shared_operands.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/choices.hpp"
#include "tests/node/teams.hpp"

namespace hips::node {
namespace shared_operands_test {
namespace {

using test::make_teams;
using test::on_all_ranks;
using testing::ElementsAre;
using testing::HasSubstr;

/// Memory of hips_mem_alloc().
class Segment {
 public:
  explicit Segment(std::size_t bytes)
      : bytes_(bytes), data_(value_or_throw(MemoryRegistry::process().allocate(bytes))) {}
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment() {
    const Status status = MemoryRegistry::process().free(data_);
    EXPECT_TRUE(status.ok()) << status.message;
  }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::byte* data_;
};

double value_of(Rank rank, std::uint64_t i, std::uint64_t salt) {
  return (static_cast<double>((i * 7919 + static_cast<std::uint64_t>(rank) * 104729 + salt) % 1000003) -
          5e5) /
         7;
}

/// A buffer of one rank with a border that must not change, in ordinary memory or somewhere in a segment.
class Buffer {
 public:
  static constexpr std::size_t kBorder = 3;
  static constexpr double kMark = -77;

  Buffer(std::size_t elements, const Segment* segment, std::mt19937_64& random) : elements_(elements) {
    const std::size_t room = elements + 2 * kBorder;
    if (segment == nullptr || room * sizeof(double) > segment->size()) {
      own_.resize(room);
      data_ = own_.data();
    } else {
      const std::size_t spare = segment->size() / sizeof(double) - room;
      data_ = reinterpret_cast<double*>(segment->data()) + (spare > 0 ? random() % spare : 0);
    }
    std::fill(data_, data_ + room, kMark);
  }
  [[nodiscard]] double* data() { return data_ + kBorder; }
  [[nodiscard]] std::byte* bytes() { return reinterpret_cast<std::byte*>(data()); }
  [[nodiscard]] bool border_is_whole() const {
    bool whole = true;
    for (std::size_t i = 0; i < kBorder; ++i)
      whole = whole && data_[i] == kMark && data_[kBorder + elements_ + i] == kMark;
    return whole;
  }

 private:
  std::size_t elements_;
  std::vector<double> own_;
  double* data_ = nullptr;
};

/// The parameters that are equal on all ranks.
struct Plan {
  Collective collective;
  std::uint64_t count;
  Rank root;
  std::shared_ptr<const Sections> sections;
  std::uint64_t salt;
};

Plan draw_plan(std::mt19937_64& random, Rank size, std::size_t slice_elements) {
  static constexpr std::array kCollectives = {
      Collective::kAllreduce, Collective::kAllreduce,     Collective::kReduce,
      Collective::kBcast,     Collective::kReduceScatter, Collective::kAllgather,
      Collective::kGather,    Collective::kScatter,       Collective::kAlltoall};
  Plan plan{.collective = kCollectives[random() % kCollectives.size()],
            .count = random() % (random() % 4 == 0 ? 20 * slice_elements : 2 * slice_elements),
            .root = static_cast<Rank>(random() % static_cast<std::uint64_t>(size)),
            .sections = nullptr,
            .salt = random()};
  if (has_sections(plan.collective)) {
    std::vector<std::uint64_t> counts;
    if (plan.collective == Collective::kAlltoall)
      counts.assign(static_cast<std::size_t>(size), random() % (2 * slice_elements));
    for (Rank r = 0; counts.size() < static_cast<std::size_t>(size); ++r)
      counts.push_back(random() % 5 == 0 ? 0 : random() % (2 * slice_elements));
    plan.sections = std::make_shared<const Sections>(counts);
    plan.count = plan.sections->total();
  }
  return plan;
}

std::vector<double> folded(const Plan& plan, Rank size) {
  std::vector<double> sum(plan.count);
  for (std::uint64_t i = 0; i < plan.count; ++i) {
    sum[i] = value_of(0, i, plan.salt);
    for (Rank r = 1; r < size; ++r) sum[i] += value_of(r, i, plan.salt);
  }
  return sum;
}

/// One call of one rank. Each rank chooses its kind of memory, and reuses it once the call is done.
void run(NodeTeam& team, const Plan& plan, Rank rank, Rank size, const Segment* in_segment,
         const Segment* out_segment, std::mt19937_64& own) {
  const auto r = static_cast<std::size_t>(rank);
  const bool is_root = rank == plan.root;
  // In place, a scatter has its result in the input, and only the root of a gather has both.
  const bool may_be_in_place = plan.collective != Collective::kScatter &&
                               plan.collective != Collective::kAlltoall &&
                               (plan.collective != Collective::kGather || is_root);
  const bool in_place = own() % 3 == 0 && may_be_in_place;
  std::size_t num_in = plan.count, num_out = plan.count, in_first = 0;
  if (plan.collective == Collective::kReduceScatter)
    num_out = in_place ? plan.count : plan.sections->count(r);
  if (plan.collective == Collective::kScatter) {
    num_out = plan.sections->count(r);
    if (!is_root) num_in = 0;
  }
  if (plan.collective == Collective::kGather && !is_root) num_out = 0;
  if (plan.collective == Collective::kAllgather || plan.collective == Collective::kGather) {
    num_in = plan.sections->count(r);
    if (in_place) in_first = plan.sections->first(r);
  }
  // In one segment, the two buffers would overlap.
  if (in_segment == out_segment) in_segment = nullptr;
  Buffer in(num_in, in_segment, own), out(num_out, out_segment, own);
  double* const from = in_place ? out.data() + in_first : in.data();
  if (plan.collective == Collective::kBcast) {
    if (is_root)
      for (std::uint64_t i = 0; i < plan.count; ++i) out.data()[i] = value_of(rank, i, plan.salt);
  } else {
    for (std::size_t i = 0; i < num_in; ++i) from[i] = value_of(rank, i, plan.salt);
  }
  team.start({.collective = plan.collective,
              .in = reinterpret_cast<std::byte*>(from),
              .out = out.bytes(),
              .count = plan.count,
              .type = DataType::kFloat64,
              .op = ReduceOp::kSum,
              .root = plan.root,
              .sections = plan.sections.get()});
  // A rank that has found an error makes no further call.
  WaitOptions options;
  options.deadline_ns = SystemClock::instance().now_ns() + 20'000'000'000;
  const Status status = team.wait(options);
  ASSERT_TRUE(status.ok()) << status.message;

  std::vector<double> expected;
  std::size_t num_result = plan.count;
  switch (plan.collective) {
    case Collective::kReduceScatter: {
      const auto all = folded(plan, size);
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(plan.sections->first(r));
      num_result = plan.sections->count(r);
      expected.assign(begin, begin + static_cast<std::ptrdiff_t>(num_result));
      break;
    }
    case Collective::kScatter:
      num_result = plan.sections->count(r);
      for (std::uint64_t i = 0; i < num_result; ++i)
        expected.push_back(value_of(plan.root, plan.sections->first(r) + i, plan.salt));
      break;
    case Collective::kAlltoall:
      for (Rank p = 0; p < size; ++p) {
        for (std::uint64_t i = 0; i < plan.sections->count(r); ++i)
          expected.push_back(value_of(p, plan.sections->first(r) + i, plan.salt));
      }
      break;
    case Collective::kGather:
      if (!is_root) num_result = 0;
      if (!is_root) break;
      [[fallthrough]];
    case Collective::kAllgather:
      for (Rank p = 0; p < size; ++p) {
        for (std::uint64_t i = 0; i < plan.sections->count(static_cast<std::size_t>(p)); ++i)
          expected.push_back(value_of(p, i, plan.salt));
      }
      break;
    case Collective::kBcast:
      for (std::uint64_t i = 0; i < plan.count; ++i) expected.push_back(value_of(plan.root, i, plan.salt));
      break;
    default:
      if (plan.collective == Collective::kReduce && !is_root) num_result = 0;
      if (num_result > 0) expected = folded(plan, size);
  }
  const std::vector<double> result(out.data(), out.data() + num_result);
  const bool kept = in_place || plan.collective == Collective::kBcast || [&] {
    for (std::size_t i = 0; i < num_in; ++i)
      if (in.data()[i] != value_of(rank, i, plan.salt)) return false;
    return true;
  }();
  // If a peer still reads, it gets a wrong sum.
  std::fill(in.data(), in.data() + num_in, -2);
  std::fill(out.data(), out.data() + num_out, -3);
  const std::string text = std::string(to_string(plan.collective)) + " of " + std::to_string(plan.count) +
                           ", root " + std::to_string(plan.root) + (in_place ? ", in place" : "");
  ASSERT_EQ(result, expected) << text;
  ASSERT_TRUE(kept) << text << ": the input has changed";
  ASSERT_TRUE(in.border_is_whole() && out.border_is_whole()) << text;
}

struct Shape {
  Rank size;
  std::size_t staging;
  SpinLimits spin;
};

class Mixed : public testing::TestWithParam<Shape> {};

TEST_P(Mixed, memory_gives_the_same_result_as_ordinary_memory) {
  const Shape shape = GetParam();
  NodeTeam::Config config;
  config.max_staging_bytes = shape.staging;
  config.waits = std::make_shared<WaitPolicy>(WaitPolicy::fixed(shape.spin));
  auto teams = make_teams(shape.size, config);
  const std::size_t slice = teams[0]->layout().slice_bytes / sizeof(double);
  const std::uint64_t seed = test::seed();
  on_all_ranks(shape.size, [&](Rank rank) {
    std::mt19937_64 program(seed), own(seed + static_cast<std::uint64_t>(rank) + 1);
    std::array<std::unique_ptr<Segment>, 3> segments;
    for (int call = 0; call < (test::runs_a_sample() ? 25 : 80); ++call) {
      for (auto& segment : segments) {
        if (own() % 8 != 0) continue;
        segment.reset();  // the next segment probably gets the same address
        if (own() % 4 != 0)
          segment =
              std::make_unique<Segment>(MemoryRegistry::kLeastShared + own() % (24 * slice * sizeof(double)));
      }
      const auto any = [&]() -> const Segment* {
        const std::size_t at = own() % (segments.size() + 1);
        return at < segments.size() ? segments[at].get() : nullptr;
      };
      const Plan plan = draw_plan(program, shape.size, slice);
      run(*teams[static_cast<std::size_t>(rank)], plan, rank, shape.size, any(), any(), own);
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, Mixed,
                         testing::Values(Shape{2, 40000, {100, 100}}, Shape{2, 40000, {0, 0}},
                                         Shape{2, 8U << 20U, {100, 100}}, Shape{3, 60000, {0, 20}},
                                         Shape{4, 60000, {0, 0}}, Shape{5, 100000, {10, 10}},
                                         Shape{9, 100000, {0, 0}}),
                         [](const auto& shape) {
                           return "ranks" + std::to_string(shape.param.size) +
                                  (shape.param.staging < 1000000 ? "_small_staging" : "") +
                                  (shape.param.spin.yield_polls == 0 ? "_asleep" : "");
                         });

// Parts of such results are streamed while others read them, and runs are longer if no rank uses staging.
TEST(SharedOperands, give_the_same_result_beyond_the_cache_size) {
  constexpr std::size_t kBytes = 33U << 20U;
  const std::uint64_t seed = test::seed();
  for (const Rank size : test::or_every_nth(std::vector<Rank>{2, 3}, 2)) {
    auto teams = make_teams(size, {});
    on_all_ranks(size, [&](Rank rank) {
      std::mt19937_64 own(seed + static_cast<std::uint64_t>(rank));
      const Segment in(kBytes), out(kBytes);
      for (std::uint64_t call = 0; call < (test::runs_a_sample() ? 2 : 4); ++call) {
        const Plan plan{.collective = Collective::kAllreduce,
                        .count = kBytes / sizeof(double) - 100 - call * (seed % 50'000),
                        .root = 0,
                        .sections = nullptr,
                        .salt = seed + call};
        // In the second and the last call, some ranks use staging.
        const bool stages = call % 2 == 1 && rank == static_cast<Rank>((seed + call) % 2);
        run(*teams[static_cast<std::size_t>(rank)], plan, rank, size, stages ? nullptr : &in, &out, own);
        if (testing::Test::HasFatalFailure()) return;
      }
    });
  }
}

Call allreduce_of(std::byte* data, std::uint64_t count) {
  return {.in = data, .out = data, .count = count};
}

TEST(SharedOperands, cannot_be_freed_while_a_call_uses_them) {
  auto teams = make_teams(2, {});
  Segment mine(2U << 20U);
  constexpr std::uint64_t kCount = 400000;
  std::vector<float> theirs(kCount, 1);
  teams[0]->start(allreduce_of(mine.data(), kCount));
  EXPECT_THAT(MemoryRegistry::process().free(mine.data()).message,
              HasSubstr("an outstanding operation uses"));
  std::thread other([&] {
    teams[1]->start(allreduce_of(reinterpret_cast<std::byte*>(theirs.data()), kCount));
    EXPECT_TRUE(teams[1]->wait({}).ok());
  });
  EXPECT_TRUE(teams[0]->wait({}).ok());
  other.join();
  EXPECT_EQ(theirs, std::vector<float>(kCount, 1));
  // Now they can be freed: the destructor of the segment asserts it.
}

// A broadcast of a few slices is completely readable before any rank has read it; the root stays in the call
// anyway.
TEST(SharedOperands, keep_their_rank_in_the_call_until_all_peers_have_read_them) {
  auto teams = make_teams(3, {});
  Segment mine(1U << 20U);
  const Call call{.collective = Collective::kBcast, .out = mine.data(), .count = 50000};
  std::vector<std::vector<float>> theirs(3, std::vector<float>(call.count));
  const auto start = [&](std::size_t rank) {
    Call other = call;
    other.out = reinterpret_cast<std::byte*>(theirs[rank].data());
    teams[rank]->start(other);
  };
  start(2);
  (void)teams[2]->advance();  // it has called, and waits for the root
  start(1);
  teams[0]->start(call);
  (void)teams[0]->advance();
  (void)teams[1]->advance();
  EXPECT_TRUE(teams[1]->done());
  (void)teams[0]->advance();
  EXPECT_FALSE(teams[0]->done());
  EXPECT_THAT(teams[0]->waiting_for(), ElementsAre(2));
  EXPECT_THAT(teams[0]->waiting_text(), HasSubstr("slice 2 of 2"));
  (void)teams[2]->advance();
  EXPECT_TRUE(teams[2]->done());
  (void)teams[0]->advance();
  EXPECT_TRUE(teams[0]->done());
}

TEST(SharedOperands, of_a_failed_rank_give_no_result) {
  auto teams = make_teams(2, {});
  Segment mine(1U << 20U);
  constexpr std::uint64_t kCount = 50000;
  std::vector<float> theirs(kCount);
  teams[0]->start({.collective = Collective::kBcast, .out = mine.data(), .count = kCount});
  while (teams[0]->advance()) {
  }
  // Rank 0 learns that the communicator has failed and leaves. Its user writes into the buffer.
  teams[0]->fail(Status::error(Code::kPeerLost, "a third one died"));
  EXPECT_EQ(teams[0]->wait({}).code, Code::kPeerLost);
  std::memset(mine.data(), 1, mine.size());
  // Rank 1 does not know of the failure and can read all operands.
  auto* const out = reinterpret_cast<std::byte*>(theirs.data());
  teams[1]->start({.collective = Collective::kBcast, .out = out, .count = kCount});
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(teams[1]->test());
  teams[1]->fail(Status::error(Code::kPeerLost, "a third one died"));
  EXPECT_EQ(teams[1]->test()->message, "a third one died");
}

TEST(SharedOperands, that_cannot_be_mapped_end_the_call_with_advice) {
  NodeTeam::Config config;
  auto teams = make_teams(2, config);
  auto mine = std::make_unique<Segment>(1U << 20U);
  HeldOperands held;
  BufferLocation place = held.hold(mine->data(), 100);
  held.drop();
  ASSERT_TRUE(place.shared());
  PeerSegments segments;
  EXPECT_EQ(*segments.find(place, 100, 1), mine->data());
  const std::uint64_t size = place.segment.bytes;
  place.offset = size - 50;
  EXPECT_EQ(*segments.find(place, 50, 1), mine->data() + size - 50);
  for (const auto& [offset, bytes] :
       {std::pair{size - 50, std::size_t{51}}, {size, 1}, {UINT64_MAX, 2}, {0, size + 1}}) {
    place.offset = offset;
    EXPECT_EQ(segments.find(place, bytes, 1).error().code, Code::kMismatch) << offset << ", " << bytes;
  }
  place.offset = 0;
  place.segment.token ^= 1;
  EXPECT_EQ(segments.find(place, 100, 1).error().code, Code::kPeerLost);
}

TEST(SharedOperands, are_identified_by_token_and_few_mappings_are_kept) {
  PeerSegments segments;
  std::uint64_t call = 0;
  std::map<std::uint64_t, int> tokens;
  for (int i = 0; i < 200; ++i) {
    Segment segment(MemoryRegistry::kLeastShared);
    HeldOperands held;
    const BufferLocation place = held.hold(segment.data() + 8, 100);
    ASSERT_TRUE(place.shared());
    EXPECT_EQ(place.offset, 8U);
    EXPECT_EQ(++tokens[place.segment.token], 1);
    EXPECT_EQ(*segments.find(place, 100, ++call), segment.data() + 8);
    EXPECT_EQ(*segments.find(place, 100, call), segment.data() + 8);
    EXPECT_LE(segments.num_mapped(), PeerSegments::kMost);
  }
  EXPECT_EQ(segments.num_mapped(), PeerSegments::kMost);
}

TEST(SharedOperands, are_limited_in_size_and_number) {
  HeldOperands held;
  Segment small(MemoryRegistry::kLeastShared - 1), large(MemoryRegistry::kLeastShared);
  EXPECT_FALSE(held.hold(small.data(), 1).shared());
  EXPECT_TRUE(held.hold(large.data(), large.size()).shared());
  EXPECT_FALSE(held.hold(large.data() + 1, large.size()).shared());
  std::vector<std::byte> registered(100000);
  const auto id = value_or_throw(MemoryRegistry::process().add(registered.data(), registered.size()));
  EXPECT_FALSE(held.hold(registered.data(), 10).shared());
  EXPECT_TRUE(MemoryRegistry::process().remove(id).ok());
  held.drop();
  // Beyond the limit, memory is private, like that of malloc().
  std::vector<std::unique_ptr<Segment>> many;
  std::size_t num_shared = 0;
  for (std::size_t i = 0; i < MemoryRegistry::kMostShared + 10; ++i) {
    many.push_back(std::make_unique<Segment>(MemoryRegistry::kLeastShared));
    num_shared += held.hold(many.back()->data(), 1).shared() ? 1 : 0;
    held.drop();
  }
  EXPECT_EQ(num_shared, MemoryRegistry::kMostShared - 1);
}

}  // namespace
}  // namespace shared_operands_test
}  // namespace hips::node
