// User-defined functions as reductions: their table, and folds with them.

#include "lib/reduce/user_op.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "lib/reduce/reduce.hpp"
#include "tests/choices.hpp"

namespace hips::reduce {
namespace {

/// A word of up to 11 letters; joining two keeps the first ones, which is associative and does not commute.
struct Word {
  std::array<char, 12> text{};
};

void join(const void* in, void* inout, std::uint64_t count, hips_type_t /*type*/, void* context) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto& a = static_cast<const Word*>(in)[i];
    auto& b = static_cast<Word*>(inout)[i];
    Word both = a;
    for (std::size_t to = std::strlen(a.text.data()), from = 0; to < 11; ++to, ++from)
      both.text[to] = b.text[from];
    b = both;
  }
  if (context != nullptr) *static_cast<std::uint64_t*>(context) += count;
}

ReduceOp make(hips_user_function_t function, bool commutative, void* context = nullptr,
              void (*release)(void*) = nullptr) {
  const auto made = create_user_op({function, context, release}, commutative);
  EXPECT_TRUE(made);
  return *made;
}

// dst is separate from the sources or any one of them: the operands are always reduced in their order, and
// nothing else changes.
TEST(UserOp, ReducesInOrderForEveryDestination) {
  std::mt19937_64 random(test::seed());
  std::uint64_t folded = 0;
  const ReduceOp op = make(join, false, &folded);
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t num = 1 + random() % 6,
                      elements = std::array<std::size_t, 6>{0, 1, 2, 97, 1365, 5000}[random() % 6];
    std::vector<std::vector<Word>> words(num + 1, std::vector<Word>(elements));
    for (auto& list : words)
      for (Word& word : list)
        for (std::size_t i = 0, letters = random() % 4; i < letters; ++i)
          word.text[i] = static_cast<char>('a' + random() % 26);
    const std::size_t to = random() % (num + 1);
    std::vector<Word> right(elements);
    for (std::size_t i = 0; i < elements; ++i) {
      right[i] = words[num - 1][i];
      for (std::size_t s = num - 1; s-- > 0;) join(&words[s][i], &right[i], 1, HIPS_BYTES(12), nullptr);
    }
    std::vector<const std::byte*> sources;
    for (std::size_t s = 0; s < num; ++s)
      sources.push_back(reinterpret_cast<const std::byte*>(words[s].data()));
    const auto before = words;
    folded = 0;
    const auto fold_some = random() % 2 == 0 ? fold : fold_streaming;
    fold_some(bytes_type(sizeof(Word)), op, reinterpret_cast<std::byte*>(words[to].data()), sources,
              elements);
    if (elements > 0) {
      EXPECT_EQ(std::memcmp(words[to].data(), right.data(), elements * sizeof(Word)), 0)
          << num << " to " << to;
    }
    EXPECT_EQ(folded, elements * (num - 1));
    for (std::size_t s = 0; s <= num; ++s) {
      if (s != to && elements > 0) {
        EXPECT_EQ(std::memcmp(words[s].data(), before[s].data(), elements * sizeof(Word)), 0);
      }
    }
  }
  EXPECT_TRUE(free_user_op(op));
}

TEST(UserOp, OfTheLargestElementReducesIntoAnEarlierOperand) {
  using Row = std::array<std::uint8_t, kMaxElementBytes>;
  const ReduceOp op = make(
      [](const void* in, void* inout, std::uint64_t count, hips_type_t type, void* /*context*/) {
        for (std::size_t i = 0; i < count * size_of(static_cast<DataType>(type)); ++i)
          static_cast<std::uint8_t*>(inout)[i] = static_cast<std::uint8_t>(
              static_cast<std::uint8_t*>(inout)[i] + 2 * static_cast<const std::uint8_t*>(in)[i]);
      },
      false);
  std::vector<Row> a(37), b(37);
  for (Row& row : a) row.fill(5);
  for (Row& row : b) row.fill(3);
  const std::array sources = {reinterpret_cast<const std::byte*>(a.data()),
                              reinterpret_cast<const std::byte*>(b.data())};
  fold(bytes_type(sizeof(Row)), op, reinterpret_cast<std::byte*>(a.data()), sources, a.size());
  for (const Row& row : a) EXPECT_TRUE(std::ranges::all_of(row, [](int byte) { return byte == 13; }));
  EXPECT_TRUE(free_user_op(op));
}

TEST(UserOp, EncodesWhetherItCommutesInTheByteThatRanksCompare) {
  const ReduceOp commutes = make(join, true), ordered = make(join, false);
  EXPECT_TRUE(is_user(commutes) && !is_ordered(commutes));
  EXPECT_TRUE(is_user(ordered) && is_ordered(ordered));
  EXPECT_STREQ(to_string(commutes), "user op");
  EXPECT_STREQ(to_string(ordered), "ordered user op");
  EXPECT_TRUE(free_user_op(commutes) && free_user_op(ordered));
  for (int op = 0; op < kNumReduceOps; ++op) EXPECT_FALSE(is_user(static_cast<ReduceOp>(op)));
}

TEST(UserOp, IsInvalidIfBuiltInFreedOrUnknown) {
  const ReduceOp op = make(join, true);
  EXPECT_TRUE(is_user_op(op));
  EXPECT_TRUE(free_user_op(op));
  for (const ReduceOp none :
       {op, ReduceOp::kSum, static_cast<ReduceOp>(HIPS_OP_NULL), static_cast<ReduceOp>(-1),
        static_cast<ReduceOp>(0xff), static_cast<ReduceOp>(INT32_MIN)}) {
    EXPECT_FALSE(is_user_op(none)) << static_cast<int>(none);
    EXPECT_FALSE(free_user_op(none)) << static_cast<int>(none);
    EXPECT_EQ(UserOpHold(none).op(), ReduceOp::kSum);
  }
}

// The program frees a function while calls hold it: its context is released once, with the last hold.
TEST(UserOp, IsReleasedWithItsLastHold) {
  int released = 0;
  const auto count = [](void* context) { ++*static_cast<int*>(context); };
  const ReduceOp op = make(join, true, &released, count);
  {
    UserOpHold first(op);
    UserOpHold second(op);
    EXPECT_TRUE(free_user_op(op));
    EXPECT_FALSE(is_user_op(op));
    second = UserOpHold();
    EXPECT_EQ(released, 0);
    const UserOpHold moved(std::move(first));
    EXPECT_EQ(moved.op(), op);
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(UserOp, TableHoldsExactlyTheLargestNumber) {
  std::set<ReduceOp> ops;
  while (const auto made = create_user_op({join}, ops.size() % 2 == 0)) ASSERT_TRUE(ops.insert(*made).second);
  EXPECT_EQ(ops.size(), kMostUserOps);
  for (const ReduceOp op : ops) EXPECT_TRUE(free_user_op(op));
  // Values are not reused immediately.
  const ReduceOp next = make(join, true);
  EXPECT_FALSE(ops.contains(next));
  EXPECT_TRUE(free_user_op(next));
}

TEST(UserOp, IsCreatedAndFreedByThreadsConcurrently) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      std::vector<Word> a(3), b(3);
      const std::array sources = {reinterpret_cast<const std::byte*>(a.data()),
                                  reinterpret_cast<const std::byte*>(b.data())};
      for (int turn = 0; turn < 2000; ++turn) {
        std::uint64_t folded = 0;
        const ReduceOp op = make(join, turn % 2 == 0, &folded);
        UserOpHold hold(op);
        EXPECT_TRUE(free_user_op(op));
        fold(bytes_type(sizeof(Word)), op, reinterpret_cast<std::byte*>(b.data()), sources, a.size());
        EXPECT_EQ(folded, a.size());
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hips::reduce
