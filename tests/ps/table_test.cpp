// Tables of whole processes: on one node, on emulated nodes, over shared memory and TCP.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <hips/hips.hpp>
#include <hips/ps.hpp>
#include <hips/ps_downpour.hpp>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/choices.hpp"
#include "tests/comm/whole_ranks.hpp"
#include "tests/pipe_signal.hpp"
#include "tests/ps/places.hpp"

namespace {

using hips::Communicator;
using hips::Request;
using hips::ps::Key;
using hips::ps::Table;
using hips::ps::test::expect_everywhere;
using hips::ps::test::kPlaces;
using hips::test::Environment;
using hips::test::error_text;
using hips::test::Ready;
using hips::test::run;
using namespace std::chrono_literals;

TEST(Table, HasWhatAllRanksPushed) {
  expect_everywhere("right", [](int rank) -> std::string {
    Communicator comm = Communicator::from_environment();
    Table<float> table(comm, {.num_keys = 1000, .row_length = 3, .first_row = {10, 20, 30}});
    std::vector<Key> keys(1000);
    std::iota(keys.begin(), keys.end(), 0);
    std::vector<float> rows(3000);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>((rank + 1) * (i % 3));
    table.push(keys, rows);
    comm.barrier();
    table.pull(keys, rows);
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i] != static_cast<float>(10 + 10 * (i % 3) + 10 * (i % 3)))
        return "wrong at " + std::to_string(i);
    comm.barrier();
    // Unsorted, repeated, and set by one rank.
    const std::vector<Key> few{7, 3, 7};
    if (rank == 2) table.set(few, std::vector<float>{1, 2, 3, 4, 5, 6, 1, 2, 3});
    comm.barrier();
    std::vector<float> got(9);
    table.pull(few, got);
    return got == std::vector<float>{1, 2, 3, 4, 5, 6, 1, 2, 3} ? "right" : "wrong after set";
  });
}

TEST(Table, BringsRowsToTheNodeThatLocalizesThem) {
  expect_everywhere("right", [](int rank) -> std::string {
    Communicator comm = Communicator::from_environment();
    Table<std::int64_t> table(comm, {.num_keys = 400, .row_length = 2});
    std::vector<Key> mine(100), other(100);
    for (std::size_t i = 0; i < 100; ++i) {
      mine[i] = 4 * i + static_cast<Key>(rank);
      other[i] = 4 * i + static_cast<Key>((rank + 1) % 4);
    }
    std::vector<std::int64_t> rows(200, 1), got(200);
    std::vector<unsigned char> here(100);
    for (int round = 1; round <= 20; ++round) {
      const auto& keys = round % 2 == 0 ? mine : other;
      table.localize(keys);
      comm.barrier();
      table.pull_if_local(keys, got, here);
      for (const unsigned char one : here)
        if (one == 0) return "not here";
      table.push(keys, rows);
      table.pull(keys, got);
      for (const std::int64_t value : got)
        if (value != round) return "round " + std::to_string(round) + " has " + std::to_string(value);
      comm.barrier();
    }
    return "right";
  });
}

TEST(Table, LosesNothingWhileAllRanksPushAndMoveTheSameRows) {
  expect_everywhere("right", [](int rank) -> std::string {
    Communicator comm = Communicator::from_environment();
    constexpr Key kKeys = 30;
    Table<std::uint64_t> table(comm, {.num_keys = kKeys, .row_length = 4});
    std::mt19937_64 random(hips::test::seed() + static_cast<std::uint64_t>(rank));
    std::vector<std::uint64_t> pushed(kKeys);
    std::vector<Request> outstanding;
    for (int step = 0; step < 2000; ++step) {
      std::vector<Key> keys(1 + random() % 5);
      for (Key& key : keys) key = random() % kKeys;
      std::vector<std::uint64_t> rows(4 * keys.size());
      for (std::size_t i = 0; i < keys.size(); ++i) rows[4 * i + static_cast<std::size_t>(rank)] = 1;
      switch (random() % 6) {
        case 0:
          outstanding.push_back(table.ilocalize(keys));
          break;
        case 1: {
          table.pull(keys, rows);
          for (std::size_t i = 0; i < keys.size(); ++i)
            if (rows[4 * i + static_cast<std::size_t>(rank)] != pushed[keys[i]])
              return "own pushes are not seen";
          break;
        }
        case 2:
          table.push(keys, rows);
          for (const Key key : keys) ++pushed[key];
          break;
        default:
          outstanding.push_back(table.ipush(keys, rows));
          for (const Key key : keys) ++pushed[key];
      }
      if (outstanding.size() > 20) {
        hips::wait_all(outstanding);
        outstanding.clear();
      }
    }
    hips::wait_all(outstanding);
    comm.barrier();
    std::vector<std::uint64_t> sum = pushed, total(4 * kKeys);
    comm.allreduce(sum, hips::ReduceOp::kSum);
    std::vector<Key> all(kKeys);
    std::iota(all.begin(), all.end(), 0);
    table.pull(all, total);
    for (Key key = 0; key < kKeys; ++key) {
      if (total[4 * key + static_cast<std::size_t>(rank)] != pushed[key]) return "a push is lost or doubled";
      if (std::accumulate(total.begin() + static_cast<std::ptrdiff_t>(4 * key),
                          total.begin() + static_cast<std::ptrdiff_t>(4 * key + 4),
                          std::uint64_t{0}) != sum[key])
        return "another rank's push is lost or doubled";
    }
    return "right";
  });
}

/// A step of gradient descent towards a rank's own targets; as it stands in the two tests below.
std::vector<float> changes_of(std::span<const float> rows, int step) {
  std::vector<float> changes(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    changes[i] = -0.1F * (rows[i] - static_cast<float>((static_cast<int>(i) * 7 + step) % 11));
  return changes;
}

TEST(Table, DownpourOfOneRankIsGradientDescentBitForBit) {
  const auto result = run(1,
                          [](int, const Ready&) -> std::string {
                            Communicator comm = Communicator::from_environment();
                            const std::vector<Key> keys{5, 1, 9};
                            const std::vector<float> first{0.3F, 0.7F};
                            std::vector<float> expected{0.3F, 0.7F, 0.3F, 0.7F, 0.3F, 0.7F};
                            Table<float> table(comm, {.num_keys = 10, .row_length = 2, .first_row = first});
                            hips::ps::Downpour<float> downpour(table, keys);
                            for (int step = 0; step < 200; ++step) {
                              const std::span<const float> rows = downpour.fetch();
                              if (!std::ranges::equal(rows, expected))
                                return "wrong in step " + std::to_string(step);
                              downpour.step(changes_of(rows, step));
                              const std::vector<float> changes = changes_of(expected, step);
                              for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += changes[i];
                            }
                            downpour.flush();
                            std::vector<float> rows(6);
                            table.pull(keys, rows);
                            return rows == expected ? "right" : "wrong at the end";
                          },
                          {});
  EXPECT_EQ(result, "right");
}

TEST(Table, DownpourOfSeveralRanksLosesNoChangeHoweverSeldomTheyMeet) {
  expect_everywhere("right", [](int rank) -> std::string {
    Communicator comm = Communicator::from_environment();
    Table<std::int64_t> table(comm, {.num_keys = 6, .row_length = 4});
    const std::vector<Key> keys{0, 1, 2, 3, 4, 5};
    std::vector<std::int64_t> changes(24, 0), rows(24);
    std::int64_t seen = 0;
    for (const auto& [fetch, push] : {std::pair(1, 1), {3, 2}, {2, 5}, {7, 1}}) {
      hips::ps::Downpour<std::int64_t> downpour(
          table, keys,
          {.fetch_every = static_cast<std::uint64_t>(fetch), .push_every = static_cast<std::uint64_t>(push)});
      for (int step = 0; step < 23; ++step) {
        const auto now = downpour.fetch();
        // A rank sees its own changes at once, whether or not they have been pushed.
        if (now[static_cast<std::size_t>(rank)] != seen) return "has lost sight of its own changes";
        for (std::size_t i = 0; i < 24; ++i) changes[i] = i % 4 == static_cast<std::size_t>(rank) ? 1 : 0;
        downpour.step(changes);
        ++seen;
      }
      downpour.flush();
    }
    comm.barrier();
    table.pull(keys, rows);
    for (const std::int64_t row : rows)
      if (row != 4 * 23) return "has " + std::to_string(row);
    comm.barrier();
    try {
      hips::ps::Downpour<std::int64_t> broken(table, keys, {.fetch_every = 0});
      return "took 0";
    } catch (const std::invalid_argument&) {
    }
    return "right";
  });
}

TEST(Table, IsServedWhileAProgramComputes) {
  expect_everywhere("right", [](int rank) -> std::string {
    Communicator comm = Communicator::from_environment();
    Table<double> table(comm, {.num_keys = 100});
    comm.barrier();
    // Rank 0 serves a node, and makes no call.
    if (rank == 0) std::this_thread::sleep_for(300ms);
    std::vector<Key> keys(100);
    std::iota(keys.begin(), keys.end(), 0);
    std::vector<double> rows(100, 1);
    if (rank != 0) table.push(keys, rows);
    comm.barrier();
    table.pull(keys, rows);
    return rows == std::vector<double>(100, 3) ? "right" : "wrong";
  });
}

TEST(Table, EndsClocksTogetherWithinTheStaleness) {
  expect_everywhere("right", [](int rank) -> std::string {
    Communicator comm = Communicator::from_environment();
    for (const std::uint64_t staleness : {0UL, 2UL}) {
      Table<std::int64_t> table(comm, {.num_keys = 10, .row_length = 4, .staleness = staleness});
      std::vector<std::int64_t> one(4), row(4);
      one[static_cast<std::size_t>(rank)] = 1;
      const std::vector<Key> key{3};
      for (std::uint64_t clock = 0; clock < 30; ++clock) {
        if (rank == 1 && clock % 10 == 0) std::this_thread::sleep_for(5ms);
        table.pull(key, row);
        for (const std::int64_t pushed : row)
          if (static_cast<std::uint64_t>(pushed) + staleness < clock ||
              static_cast<std::uint64_t>(pushed) > clock + staleness + 1)
            return "clock " + std::to_string(clock) + " reads " + std::to_string(pushed);
        Request request = table.ipush(key, one);
        table.advance_clock();
        request.wait();
      }
      comm.barrier();
      table.pull(key, row);
      if (row != std::vector<std::int64_t>(4, 30)) return "a push is lost";
      comm.barrier();
    }
    return "right";
  });
}

TEST(Table, BringsRowsThatOnlyOneNodeHasAnIntentFor) {
  expect_everywhere("right", [](int rank) -> std::string {
    Communicator comm = Communicator::from_environment();
    Table<float> table(comm, {.num_keys = 400, .row_length = 2});
    std::vector<Key> keys(100);
    std::vector<float> rows(200, 1);
    std::vector<unsigned char> here(100);
    for (std::uint64_t clock = 0; clock < 8; ++clock) {
      // Each clock the rows of another rank; what the others do makes none of them leave before the clock ends.
      for (std::size_t i = 0; i < 100; ++i)
        keys[i] = 4 * i + (static_cast<std::uint64_t>(rank) + clock / 4) % 4;
      table.intent(keys, clock, clock + 1);
      while (std::ranges::find(here, 0) != here.end()) table.pull_if_local(keys, rows, here);
      std::ranges::fill(rows, 1.0F);
      table.push(keys, rows);
      table.pull(keys, rows);
      if (rows != std::vector<float>(200, static_cast<float>(clock + 1))) return "wrong rows";
      table.advance_clock();
      std::ranges::fill(here, 0);
    }
    return "right";
  });
}

TEST(Table, SendsAClockThatOthersWaitForBeforeTheRankGoesElsewhere) {
  expect_everywhere("right", [](int rank) -> std::string {
    Communicator comm = Communicator::from_environment();
    Table<float> table(comm, {.num_keys = 10, .staleness = 8});
    // Rank 1 ends the fewest clocks that let the others end theirs, and makes no call of the table any more.
    for (int clock = 0; clock < (rank == 1 ? 12 : 20); ++clock) table.advance_clock();
    comm.barrier();
    return "right";
  });
}

TEST(Table, LetsCollectivesOfTheRankGoOnWhileItWaits) {
  expect_everywhere("right", [](int rank) -> std::string {
    Communicator comm = Communicator::from_environment();
    Table<float> table(comm, {.num_keys = 10});
    std::vector<float> sum(100'000, 1);
    Request request = comm.iallreduce(sum, hips::ReduceOp::kSum);
    if (rank == 1) request.wait();  // before it ends the clock for which the others wait
    table.advance_clock();
    request.wait();
    return sum == std::vector<float>(100'000, 4) ? "right" : "wrong";
  });
}

TEST(Table, LeavesTheParentsCallsAloneInAChild) {
  expect_everywhere("right", [](int rank) -> std::string {
    Communicator comm = Communicator::from_environment();
    Table<float> table(comm, {.num_keys = 1000});
    std::vector<Key> keys(1000);
    std::iota(keys.begin(), keys.end(), 0);
    std::vector<float> rows(1000, 1);
    std::vector<Request> requests;
    requests.push_back(table.ipush(keys, rows));
    const pid_t child = fork();
    if (child == 0) {
      const std::string text = error_text([&] { table.pull(keys, rows); });
      requests.clear();
      _exit(text.find("fork") != std::string::npos ? 0 : 1);
    }
    int status = -1;
    (void)waitpid(child, &status, 0);
    hips::wait_all(requests);
    comm.barrier();
    table.pull(keys, rows);
    comm.barrier();
    (void)rank;
    return status == 0 && rows == std::vector<float>(1000, 4) ? "right" : "wrong";
  });
}

TEST(Table, TakesAFunctionAsUpdate) {
  expect_everywhere("right", [](int rank) -> std::string {
    Communicator comm = Communicator::from_environment();
    // Adagrad, with its state in the row: {weight, sum of squares}.
    const auto adagrad = [](const void* in, void* inout, std::uint64_t count, hips_type_t /*type*/,
                            void* /*context*/) {
      const auto* gradient = static_cast<const double*>(in);
      auto* row = static_cast<double*>(inout);
      if (reinterpret_cast<std::uintptr_t>(in) % 16 != 0 || reinterpret_cast<std::uintptr_t>(inout) % 16 != 0)
        return;
      for (std::uint64_t i = 0; i + 1 < 2 * count; i += 2) {
        row[i + 1] += gradient[i] * gradient[i];
        row[i] -= gradient[i];
      }
    };
    hips_op_t op = HIPS_OP_NULL;
    if (hips_op_create(adagrad, 1, nullptr, nullptr, &op) != HIPS_OK) return "no op";
    hips_ps_config_t config = HIPS_PS_CONFIG_INIT;
    config.num_keys = 50;
    config.type = HIPS_BYTES(16);
    config.update = op;
    hips_ps_table_t table = nullptr;
    if (hips_ps_table_create(comm.handle(), &config, &table) != HIPS_OK) return hips_last_error();
    (void)hips_op_free(&op);
    const std::uint64_t keys[] = {3, 49};
    const double gradients[] = {1.0 + rank, 0, 2, 0};
    if (hips_ps_push(table, keys, 2, gradients) != HIPS_OK) return hips_last_error();
    comm.barrier();
    double rows[4] = {};
    if (hips_ps_pull(table, keys, 2, rows) != HIPS_OK) return hips_last_error();
    if (hips_ps_table_destroy(table) != HIPS_OK) return hips_last_error();
    return rows[0] == -10 && rows[1] == 30 && rows[2] == -8 && rows[3] == 16 ? "right" : "wrong";
  });
}

TEST(Table, RefusesWhatCannotBe) {
  expect_everywhere("right", [](int rank) -> std::string {
    Communicator comm = Communicator::from_environment();
    std::string text = error_text([&] { Table<float> none(comm, {.num_keys = 0}); });
    if (text != "invalid argument: table: num_keys is 0; expected the number of keys") return text;
    text = error_text([&] { Table<float> other(comm, {.num_keys = rank == 3 ? 5UL : 6UL}); });
    if (text !=
        "mismatch: table: the ranks disagree on the num_keys: rank 3 has \"5\", the 3 others have \"6\"")
      return text;
    text = error_text(
        [&] { Table<float> other(comm, {.num_keys = 6, .first_row = {rank == 2 ? 1.0F : 2.0F}}); });
    if (!text.starts_with("mismatch: table: the ranks disagree on the first_row: rank 2 has \"digest "))
      return text;
    text = error_text([&] { Table<float> big(comm, {.num_keys = 5, .row_length = 300'000}); });
    if (text != "invalid argument: table: a row has 1200000 bytes; at most 1048576 are possible") return text;
    text = error_text([&] { Table<float> bits(comm, {.num_keys = 5, .update = hips::ReduceOp::kBxor}); });
    if (text != "invalid argument: table: update bxor does not exist for rows of float32") return text;
    hips_ps_config_t config = HIPS_PS_CONFIG_INIT;
    config.num_keys = 5;
    config.type = HIPS_INT32;
    config.update = static_cast<hips_op_t>(50);
    const char junk = 0;
    config.first_row = &junk;
    hips_ps_table_t none = nullptr;
    if (hips_ps_table_create(comm.handle(), &config, &none) != HIPS_ERR_INVALID_ARGUMENT ||
        std::string(hips_last_error()) != "table: invalid op 50")
      return hips_last_error();
    config.type = static_cast<hips_type_t>(0x7000);
    if (hips_ps_table_create(comm.handle(), &config, &none) != HIPS_ERR_INVALID_ARGUMENT)
      return "took a type";
    Table<float> table(comm, {.num_keys = 5, .row_length = 2});
    std::vector<float> rows(4);
    text = error_text([&] { table.pull(std::vector<Key>{1, 5}, rows); });
    if (text != "invalid argument: table: key 5 is out of range [0, 5)") return text;
    text = error_text([&] { table.pull(std::vector<Key>{1}, rows); });
    if (text != "invalid argument: table: rows has 4 elements; expected 2") return text;
    // It is as usable as before.
    table.pull(std::vector<Key>{1, 4}, rows);
    return "right";
  });
}

TEST(Table, EndsTheCallsOfAllRanksWhenAnExceptionLeavesItsScope) {
  expect_everywhere("aborted: rank 1 aborted the communicator: an exception ended the use of its table",
                    [](int rank) -> std::string {
                      Communicator comm = Communicator::from_environment();
                      try {
                        const std::string first = error_text([&] {
                          Table<float> table(comm, {.num_keys = 10});
                          if (rank == 1) throw std::runtime_error("the program's own");
                          table.advance_clock();
                        });
                        const std::string later = error_text([&] { comm.barrier(); });
                        return first == later ? first : first + ", then " + later;
                      } catch (const std::runtime_error&) {
                        return error_text([&] { comm.barrier(); });
                      }
                    });
}

/// Steps of gradient descent of all ranks on whole numbers, where a step is two clocks: all have pulled before any pushes.
TEST(Table, WithoutStalenessTwoClocksAStepAreSynchronousDescent) {
  constexpr std::size_t kLength = 5;
  constexpr int kSteps = 20;
  const auto gradient = [](std::int64_t value, int rank, std::size_t at, int step) {
    return value % 7 - 3 * rank + static_cast<std::int64_t>(at) * step;
  };
  std::vector<std::int64_t> expected(kLength, 0);
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<std::int64_t> before = expected;
    for (int rank = 0; rank < 4; ++rank)
      for (std::size_t at = 0; at < kLength; ++at) expected[at] -= gradient(before[at], rank, at, step);
  }
  expect_everywhere("right", [&](int rank) -> std::string {
    Communicator comm = Communicator::from_environment();
    Table<std::int64_t> table(comm, {.num_keys = 1, .row_length = kLength});
    const Key key = 0;
    std::vector<std::int64_t> row(kLength), change(kLength);
    for (int step = 0; step < kSteps; ++step) {
      table.pull(std::span(&key, 1), row);
      table.advance_clock();
      for (std::size_t at = 0; at < kLength; ++at) change[at] = -gradient(row[at], rank, at, step);
      table.push(std::span(&key, 1), change);
      table.advance_clock();
    }
    table.pull(std::span(&key, 1), row);
    return row == expected ? "right" : "another result than of one process";
  });
}

/// Whether the thread sleeps in a system call.
bool sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string stat;
  std::getline(file, stat);
  return stat.find(") S ") != std::string::npos;
}

TEST(Table, IsThereUntilACallOfAnotherThreadHasEndedWhenItIsAborted) {
  expect_everywhere("right", [](int rank) -> std::string {
    Communicator comm = Communicator::from_environment();
    hips_ps_config_t config = HIPS_PS_CONFIG_INIT;
    config.num_keys = 10;
    hips_ps_table_t table = nullptr;
    Communicator other_comm = comm.duplicate();
    if (hips_ps_table_create(comm.handle(), &config, &table) != HIPS_OK) return hips_last_error();
    other_comm.barrier();  // no rank is still making the table
    if (rank != 0) {
      // Rank 0 waits for their clocks, which they do not end.
      const std::string text = error_text([&] { comm.barrier(); });
      hips_ps_table_abort(table, "");
      return text == "aborted: rank 0 aborted the communicator: no more" ? "right" : text;
    }
    std::atomic<pid_t> waiting{0};
    hips_status_t status = HIPS_OK;
    std::thread other([&] {
      waiting = gettid();
      status = hips_ps_advance_clock(table);
    });
    while (waiting == 0 || !sleeps(waiting)) std::this_thread::yield();
    hips_ps_table_abort(table, "no more");
    other.join();
    return status == HIPS_ERR_ABORTED ? "right" : "status " + std::to_string(status);
  });
}

/// A table whose rows are all on one node, for calls of the C API; null: it cannot be made.
hips_ps_table_t local_table(const Communicator& comm) {
  hips_ps_config_t config = HIPS_PS_CONFIG_INIT;
  config.num_keys = 10;
  hips_ps_table_t table = nullptr;
  return hips_ps_table_create(comm.handle(), &config, &table) == HIPS_OK ? table : nullptr;
}

TEST(Table, IsThereForCallsThatBeginAsItIsAborted) {
  for (const bool comm_ends_first : {false, true}) {
    expect_everywhere("right", [=](int) -> std::string {
      std::optional<Communicator> comm(Communicator::from_environment());
      hips_ps_table_t table = local_table(*comm);
      if (table == nullptr) return hips_last_error();
      (void)error_text([&] { comm->barrier(); });  // another rank may have aborted it
      if (comm_ends_first) comm.reset();
      std::atomic<bool> calls{false};
      hips_status_t status = HIPS_OK;
      std::thread other([&] {
        const std::uint64_t keys[] = {1, 2};
        float rows[2];
        while (status == HIPS_OK) {
          status = hips_ps_push(table, keys, 2, rows);
          if (status == HIPS_OK) status = hips_ps_pull(table, keys, 2, rows);
          calls = true;
        }
      });
      while (!calls) std::this_thread::yield();
      hips_ps_table_abort(table, "no more");
      other.join();
      return status == HIPS_ERR_ABORTED ? "right" : "status " + std::to_string(status);
    });
  }
}

TEST(Table, ThatWasAbortedEndsWithTheCommunicatorAlsoInAForkedChild) {
  expect_everywhere("right", [](int) -> std::string {
    std::optional<Communicator> comm(Communicator::from_environment());
    hips_ps_table_t table = local_table(*comm);
    if (table == nullptr) return hips_last_error();
    (void)error_text([&] { comm->barrier(); });  // another rank may have aborted it
    hips_ps_table_abort(table, "no more");
    const pid_t child = fork();
    if (child == 0) {
      comm.reset();
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    comm.reset();
    return status == 0 ? "right" : "the child ended with " + std::to_string(status);
  });
}

TEST(Table, FailsOnAllRanksWhenANodeHasNoRoomForRows) {
  for (const Environment& place : kPlaces) {
    if (place.empty()) continue;  // all rows are on one node
    const std::string text = run(
        4,
        [](int rank, const Ready&) -> std::string {
          Communicator comm = Communicator::from_environment();
          Table<float> table(comm, {.num_keys = 1000, .rows_per_node = 700});
          std::vector<Key> keys(1000);
          std::iota(keys.begin(), keys.end(), 0);
          const std::string failed = error_text([&] {
            comm.barrier();
            if (rank == 1) table.localize(keys);
            // The others wait for rows that never come.
            std::vector<float> rows(1000);
            while (true) table.pull(keys, rows);
          });
          return failed;
        },
        place);
    EXPECT_THAT(text, testing::MatchesRegex(
                          "out of memory: table: the node of rank [01]: it has 700 rows, as many as it may "
                          "have; raise rows_per_node"));
  }
}

TEST(Table, SaysOnAllRanksThatTheCommunicatorHasFailedWithIt) {
  const hips::test::PipeSignal timed_out;
  const std::string text = run(2,
                               [&](int rank, const Ready&) -> std::string {
                                 Communicator comm = Communicator::from_environment();
                                 Table<float> table(comm, {.num_keys = 10});
                                 comm.barrier();
                                 try {
                                   if (rank == 1) timed_out.wait();
                                   while (true) table.advance_clock();
                                 } catch (const hips::Error& error) {
                                   timed_out.give();
                                   const bool is_final = error.status().scope == hips::Scope::kCommunicator;
                                   return std::string(to_string(error.status().code)) +
                                          (is_final ? ", final" : ", may be repeated");
                                 }
                               },
                               {{"HIPS_TOPO", "switch:2"}, {"HIPS_TIMEOUT", "4s"}});
  EXPECT_EQ(text, "timed out, final");
}

TEST(Table, FailsOnAllRanksWhenOneDies) {
  std::mt19937 random(static_cast<std::uint32_t>(hips::test::seed()));
  for (const Environment& place : kPlaces) {
    // One that serves its node, or another.
    const auto victim = static_cast<int>(random() % 4);
    hips::test::RankProcesses ranks(
        4,
        [&](int rank, const Ready& ready) -> std::string {
          Communicator comm = Communicator::from_environment();
          Table<float> table(comm, {.num_keys = 1000});
          ready();
          std::vector<Key> keys(1000);
          std::iota(keys.begin(), keys.end(), 0);
          std::vector<float> rows(1000, 1);
          const std::string text = error_text([&] {
            comm.barrier();
            if (rank == victim) raise(SIGKILL);
            while (true) {
              table.push(keys, rows);
              table.localize(keys);
            }
          });
          return text;
        },
        place);
    const auto outcomes = ranks.wait();
    const auto name = "rank " + std::to_string(victim);
    for (std::size_t r = 0; r < 4; ++r) {
      if (r == static_cast<std::size_t>(victim)) continue;
      EXPECT_FALSE(outcomes[r].hung) << "rank " << r;
      EXPECT_THAT(outcomes[r].text, testing::StartsWith("peer lost: ")) << "rank " << r;
      EXPECT_THAT(outcomes[r].text, testing::HasSubstr(name)) << "rank " << r;
    }
  }
}

}  // namespace
