#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "lib/ps/row_store.hpp"
#include "tests/choices.hpp"

namespace hips::ps {
namespace {

std::vector<std::byte> row_of(std::uint64_t value, std::size_t bytes) {
  std::vector<std::byte> row(bytes);
  for (std::size_t i = 0; i < bytes; ++i) row[i] = static_cast<std::byte>(value >> 8U * (i % 8));
  return row;
}

std::vector<std::byte> read(const RowStore& store, Key key, std::size_t bytes) {
  std::vector<std::byte> row(bytes);
  if (store.with(key, [&](const std::byte* found) { std::memcpy(row.data(), found, bytes); }) != Found::kHere)
    row.clear();
  return row;
}

TEST(RowStore, IsAMapUnderRandomInsertsAndTakes) {
  std::mt19937_64 random(hips::test::seed());
  for (const std::size_t bytes : {1UL, 4UL, 12UL, 256UL}) {
    RowStore store = value_or_throw(RowStore::create(bytes, 5000));
    const RowStore same = value_or_throw(RowStore::attach(store.name()));
    std::map<Key, std::uint64_t> expected;
    for (int step = 0; step < 30'000; ++step) {
      // Keys of patterns that people use: consecutive ones, multiples, and any.
      const Key number = random() % 4000;
      const Key key = number % 3 == 0   ? number
                      : number % 3 == 1 ? number << 20U
                                        : number * 0x9e3779b97f4a7c15;
      const bool grows = step < 15'000;
      const auto known = expected.find(key);
      if (known == expected.end()) {
        EXPECT_EQ(read(same, key, bytes), std::vector<std::byte>());
        std::vector<std::byte> none(bytes);
        ASSERT_EQ(store.take(key, none.data()), Found::kAbsent);
        if (!grows && random() % 4 != 0) continue;
        const std::uint64_t value = random();
        ASSERT_TRUE(store.insert(key, row_of(value, bytes).data()).ok());
        expected[key] = value;
      } else {
        ASSERT_EQ(read(same, key, bytes), row_of(known->second, bytes));
        if (grows && random() % 4 != 0) continue;
        std::vector<std::byte> taken(bytes);
        ASSERT_EQ(store.take(key, taken.data()), Found::kHere);
        ASSERT_EQ(taken, row_of(known->second, bytes));
        expected.erase(known);
      }
    }
    ASSERT_EQ(store.num_rows(), expected.size());
    for (const auto& [key, value] : expected) ASSERT_EQ(read(store, key, bytes), row_of(value, bytes));
  }
}

TEST(RowStore, KeepsItsLimitAndSaysSo) {
  RowStore store = value_or_throw(RowStore::create(8, 100));
  const auto row = row_of(1, 8);
  for (Key key = 0; key < 100; ++key) ASSERT_TRUE(store.insert(key, row.data()).ok());
  const Status full = store.insert(100, row.data());
  EXPECT_EQ(full.code, Code::kOutOfMemory);
  EXPECT_EQ(full.message, "the node has 100 rows of the table, which is its limit");
  std::vector<std::byte> taken(8);
  EXPECT_EQ(store.take(7, taken.data()), Found::kHere);
  EXPECT_TRUE(store.insert(100, row.data()).ok());
}

TEST(RowStore, NeedsAtMost32BytesBesideARow) {
  const Key rows = hips::test::runs_a_sample() ? 30'000 : 300'000;
  for (const std::size_t bytes : {4UL, 8UL, 256UL}) {
    RowStore store = value_or_throw(RowStore::create(bytes, rows));
    const auto row = row_of(1, bytes);
    for (Key key = 0; key < rows; ++key) {
      ASSERT_TRUE(store.insert(key, row.data()).ok());
      if (key < 1000 || key % 5000 != 0) continue;
      EXPECT_LE(store.used_bytes(), (key + 1) * (bytes + 32)) << key + 1 << " rows of " << bytes << " bytes";
    }
  }
}

TEST(RowStore, CountsWhatSeveralProcessesAddWhileRowsComeAndGo) {
  constexpr int kProcesses = 3, kAdds = 20'000;
  constexpr Key kKeys = 500;
  RowStore store = value_or_throw(RowStore::create(8, 10'000));
  const std::uint64_t zero = 0;
  for (Key key = 0; key < kKeys; ++key)
    ASSERT_TRUE(store.insert(key, reinterpret_cast<const std::byte*>(&zero)).ok());
  std::vector<pid_t> children;
  for (int child = 0; child < kProcesses; ++child) {
    const pid_t pid = fork();
    if (pid == 0) {
      std::mt19937_64 random(hips::test::seed() + static_cast<std::uint64_t>(child));
      int added = 0;
      while (added < kAdds)
        if (store.with(random() % kKeys, [](std::byte* row) { ++*reinterpret_cast<std::uint64_t*>(row); }) ==
            Found::kHere)
          ++added;
      _exit(0);
    }
    children.push_back(pid);
  }
  // The owner takes rows away and brings them back, and adds others, so that buckets split.
  std::mt19937_64 random(hips::test::seed());
  for (Key other = 0; other < 8000; ++other) {
    std::uint64_t row = 0;
    const Key key = random() % kKeys;
    ASSERT_EQ(store.take(key, reinterpret_cast<std::byte*>(&row)), Found::kHere);
    ASSERT_TRUE(store.insert(kKeys + other, reinterpret_cast<const std::byte*>(&zero)).ok());
    ASSERT_TRUE(store.insert(key, reinterpret_cast<const std::byte*>(&row)).ok());
  }
  for (const pid_t pid : children) {
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  std::uint64_t sum = 0;
  for (Key key = 0; key < kKeys; ++key)
    ASSERT_EQ(
        store.with(key, [&](const std::byte* row) { sum += *reinterpret_cast<const std::uint64_t*>(row); }),
        Found::kHere);
  EXPECT_EQ(sum, std::uint64_t{kProcesses} * kAdds);
}

TEST(RowStore, GivesUpALatchWhoseHolderEnded) {
  RowStore store = value_or_throw(RowStore::create(8, 100));
  const std::uint64_t zero = 0;
  ASSERT_TRUE(store.insert(5, reinterpret_cast<const std::byte*>(&zero)).ok());
  const pid_t pid = fork();
  if (pid == 0) (void)store.with(5, [](std::byte* /*row*/) { _exit(0); });
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  int asked = 0;
  store.set_given_up([&] { return ++asked == 3; });
  EXPECT_EQ(store.with(5, [](std::byte* /*row*/) {}), Found::kLatchLost);
  EXPECT_EQ(asked, 3);
}

}  // namespace
}  // namespace hips::ps
