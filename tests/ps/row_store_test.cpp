#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <map>
#include <random>
#include <string>
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
  std::vector<std::byte> copied(bytes);
  const Found found = store.with(key, [&](const std::byte* here) { std::copy_n(here, bytes, row.data()); });
  EXPECT_EQ(store.copy(key, store.place_of(key), copied.data(), bytes), found);
  EXPECT_EQ(copied, row);
  if (found != Found::kHere) row.clear();
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

TEST(RowStore, ARowIsTheSameWhileItsVersionIs) {
  constexpr std::size_t kBytes = 8, kKeys = 200;
  struct Seen {
    RowStore::Version version;
    std::vector<std::byte> row;  // empty: absent
  };
  std::mt19937_64 random(hips::test::seed());
  RowStore store = value_or_throw(RowStore::create(kBytes, kKeys));
  std::map<Key, Seen> seen;
  std::size_t num_same = 0;
  for (int step = 0; step < 20'000; ++step) {
    const Key key = random() % kKeys;
    std::vector<std::byte> row(kBytes);
    switch (random() % 4) {
      case 0:
        if (store.take(key, row.data()) == Found::kAbsent) {
          ASSERT_TRUE(store.insert(key, row_of(random(), kBytes).data()).ok());
        }
        break;
      case 1:
        (void)store.with(key, [&](std::byte* here) { here[random() % kBytes] = std::byte{7}; });
        break;
      default:
        // Who only reads changes no version.
        (void)read(store, random() % kKeys, kBytes);
        break;
    }
    const Key looked = random() % kKeys;
    Seen now;
    now.row.resize(kBytes);
    if (store.copy(looked, now.row.data(), now.version) == Found::kAbsent) now.row.clear();
    const auto before = seen.find(looked);
    if (before != seen.end() && before->second.version == now.version) {
      ASSERT_EQ(now.row, before->second.row) << "step " << step;
      ++num_same;
    }
    seen[looked] = now;
  }
  EXPECT_GT(num_same, 0U);
  Seen first, again;
  first.row.resize(kBytes);
  again.row.resize(kBytes);
  (void)store.insert(kKeys, first.row.data());
  (void)store.copy(kKeys, first.row.data(), first.version);
  (void)store.copy(kKeys, again.row.data(), again.version);
  EXPECT_EQ(first.version, again.version);
}

TEST(RowStore, KeepsItsLimitAndSaysSo) {
  RowStore store = value_or_throw(RowStore::create(8, 100));
  const auto row = row_of(1, 8);
  for (Key key = 0; key < 100; ++key) ASSERT_TRUE(store.insert(key, row.data()).ok());
  const Status full = store.insert(100, row.data());
  EXPECT_EQ(full.code, Code::kOutOfMemory);
  EXPECT_EQ(full.message, "it has 100 rows, as many as it may have; raise rows_per_node");
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

TEST(RowStore, NeedsNothingForKeysThatAreAbsentOrHaveLeft) {
  RowStore store = value_or_throw(RowStore::create(64, 1U << 30U));
  const auto row = row_of(1, 64);
  const std::size_t empty = store.used_bytes();
  std::vector<std::byte> taken(64);
  // Keys far apart, of which each leaves before the next comes.
  for (Key key = 0; key < 100'000; ++key) {
    EXPECT_EQ(store.take(key * 1'000'003, taken.data()), Found::kAbsent);
    ASSERT_TRUE(store.insert(key * 1'000'003, row.data()).ok());
    ASSERT_EQ(store.take(key * 1'000'003, taken.data()), Found::kHere);
  }
  EXPECT_LE(store.used_bytes(), empty + 2 * (64 + 32));
  EXPECT_EQ(store.num_rows(), 0U);
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

TEST(RowStore, DoesNotUseAPlaceThatAnotherRowHasTaken) {
  RowStore store = value_or_throw(RowStore::create(8, 10));
  const std::uint64_t first = 1, second = 2;
  std::uint64_t row = 0;
  auto* const bytes = reinterpret_cast<std::byte*>(&row);
  ASSERT_TRUE(store.insert(1, reinterpret_cast<const std::byte*>(&first)).ok());
  const RowStore::Place place = store.place_of(1);
  ASSERT_EQ(store.take(1, bytes), Found::kHere);
  ASSERT_TRUE(store.insert(2, reinterpret_cast<const std::byte*>(&second)).ok());
  EXPECT_EQ(store.copy(1, place, bytes, sizeof row), Found::kAbsent);
  EXPECT_EQ(store.with(1, place, [](std::byte* /*row*/) { FAIL(); }), Found::kAbsent);
  ASSERT_TRUE(store.insert(1, reinterpret_cast<const std::byte*>(&first)).ok());
  EXPECT_EQ(store.copy(1, place, bytes, sizeof row), Found::kHere);
  EXPECT_EQ(row, 1U);
}

TEST(RowStore, FindsARowThatASplitHasMovedToAnotherBucket) {
  RowStore store = value_or_throw(RowStore::create(8, 2000));
  std::uint64_t row = 0;
  auto* const bytes = reinterpret_cast<std::byte*>(&row);
  std::vector<RowStore::Place> places(1000);
  for (Key key = 0; key < places.size(); ++key) store.expect(key, places[key]);
  for (Key key = 0; key < places.size(); ++key) ASSERT_TRUE(store.insert(key, bytes).ok());
  for (Key key = 0; key < places.size(); ++key) {
    store.look(key, places[key]);
    EXPECT_EQ(store.copy(key, places[key], bytes, sizeof row), Found::kHere) << key;
  }
}

TEST(RowStore, CopiesWholeRowsWhileOthersChangeAndMoveThem) {
  constexpr Key kKeys = 2;
  constexpr int kCopies = 200'000;
  constexpr std::uint64_t kChanges = 200'000;  // of some row
  using Row = std::array<std::uint64_t, 64>;   // all elements are the same, and rise
  RowStore store = value_or_throw(RowStore::create(sizeof(Row), 1000));
  const auto bytes_of = [](auto& row) { return reinterpret_cast<std::byte*>(row.data()); };
  Row row{};
  for (Key key = 0; key < kKeys; ++key) ASSERT_TRUE(store.insert(key, bytes_of(row)).ok());
  const pid_t child = fork();
  if (child == 0) {
    std::mt19937_64 random(hips::test::seed());
    const pid_t parent = getppid();
    while (getppid() == parent)
      (void)store.with(random() % kKeys, [](std::byte* found) {
        auto* const elements = reinterpret_cast<std::uint64_t*>(found);
        for (std::size_t i = 0; i < Row().size(); ++i) ++elements[i];
      });
    _exit(0);
  }
  std::atomic<bool> stops{false};
  std::thread owner([&] {
    std::mt19937_64 random(hips::test::seed() + 1);
    Row taken{};
    while (!stops) {
      const Key key = random() % kKeys;
      if (store.take(key, bytes_of(taken)) == Found::kHere) (void)store.insert(key, bytes_of(taken));
    }
  });
  std::mt19937_64 random(hips::test::seed() + 2);
  std::array<std::uint64_t, kKeys> last{};
  std::string wrong;
  for (int copies = 0; wrong.empty() && (copies < kCopies || *std::ranges::max_element(last) < kChanges);) {
    const Key key = random() % kKeys;
    if (store.copy(key, store.place_of(key), bytes_of(row), sizeof row) != Found::kHere) continue;
    ++copies;
    for (const std::uint64_t element : row)
      if (element != row[0]) wrong = "a row is half of one state and half of another";
    if (row[0] < last[key]) wrong = "a row is older than it was before";
    last[key] = row[0];
  }
  stops = true;
  owner.join();
  kill(child, SIGKILL);
  (void)waitpid(child, nullptr, 0);
  EXPECT_EQ(wrong, "");
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
