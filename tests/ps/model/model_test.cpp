// Models of whole processes: on one node, on emulated nodes, over shared memory and TCP.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <hips/hips.hpp>
#include <hips/ps_model.hpp>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/choices.hpp"
#include "tests/comm/whole_ranks.hpp"
#include "tests/ps/places.hpp"

namespace {

using hips::Communicator;
using hips::Request;
using hips::ps::Model;
using hips::ps::test::expect_everywhere;
using hips::ps::test::kPlaces;
using hips::test::Environment;
using hips::test::error_text;
using hips::test::Ready;
using hips::test::run;

/// Every rank adds to its own elements, those with e % 4 == rank; `steps` times, with parts that are handed back added again.
template <typename T>
std::string train(int rank, std::uint64_t count, int steps, const hips::ps::ModelOptions<T>& options) {
  Communicator comm = Communicator::from_environment();
  Model<T> model(comm, options);
  std::vector<T> values(count), update(count);
  std::vector<unsigned char> applied(model.num_shards());
  std::vector<std::int64_t> expected(model.num_shards(), 0);
  std::mt19937_64 random(hips::test::seed() + static_cast<std::uint64_t>(rank));
  for (std::uint64_t e = 0; e < count; ++e)
    update[e] = static_cast<T>(e % 4 == static_cast<std::uint64_t>(rank));
  model.fetch(values);
  for (int step = 0; step < steps; ++step) {
    switch (random() % 4) {
      case 0:
        model.push(update, applied);
        model.fetch(values);
        break;
      case 1: {
        Request request = model.ipush_fetch(update, values, applied);
        request.wait();
        break;
      }
      default:
        model.push_fetch(update, values, applied);
    }
    for (std::uint32_t s = 0; s < model.num_shards(); ++s) {
      expected[s] += applied[s];
      const auto [begin, length] = model.shard(s);
      for (std::uint64_t e = begin; e < begin + length; ++e)
        if (e % 4 == static_cast<std::uint64_t>(rank) && values[e] != static_cast<T>(expected[s]))
          return "own updates are not seen";
    }
  }
  comm.barrier();
  model.fetch(values);
  // Of each shard all ranks' updates, once.
  std::vector<std::int64_t> all(4 * model.num_shards());
  comm.allgather(expected, all);
  for (std::uint32_t s = 0; s < model.num_shards(); ++s) {
    const auto [begin, length] = model.shard(s);
    for (std::uint64_t e = begin; e < begin + length; ++e)
      if (values[e] != static_cast<T>(all[e % 4 * model.num_shards() + s]))
        return "an update is lost or doubled";
  }
  return "right";
}

TEST(Model, AppliesTheUpdatesOfAllRanksOnce) {
  // Shards below and above the size from which they are scheduled, on all nodes and on few.
  for (const std::uint64_t count : {3, 1001, 60'000}) {
    for (const std::uint32_t num_shards : {0, 1, 2}) {
      expect_everywhere("right", [&](int rank) {
        return train<std::int32_t>(rank, count, count > 10'000 ? 8 : 30,
                                   {.count = count, .num_shards = num_shards});
      });
    }
  }
}

TEST(Model, HandsBackWhatIsTooLateAndLosesNothing) {
  expect_everywhere("right", [](int rank) {
    return train<double>(rank, 60'000, 15, {.count = 60'000, .num_shards = 2, .delay_max = 1});
  });
}

TEST(Model, ATraceOfTheFirstRankSaysWhatWasScheduled) {
  std::string folder = (std::filesystem::temp_directory_path() / "hips-model-trace-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string text = run(4,
                               [](int rank, const Ready&) {
                                 return train<float>(rank, 60'000, 5, {.count = 60'000, .num_shards = 2});
                               },
                               {{"HIPS_TOPO", "switch:4"}, {"HIPS_TRACE", folder}});
  EXPECT_EQ(text, "right");
  std::ifstream file(folder + "/trace-0.json");
  int num_updates = 0, num_values = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.find(R"("cat":"update")") != std::string::npos) ++num_updates;
    if (line.find(R"("cat":"values")") != std::string::npos) ++num_values;
  }
  EXPECT_EQ(num_updates, 4 * 5 * 2);  // a part for each shard
  EXPECT_GT(num_values, 0);
  std::filesystem::remove_all(folder);
}

TEST(Model, CanSendAllAtOnce) {
  expect_everywhere("right", [](int rank) {
    return train<float>(rank, 100'000, 10, {.count = 100'000, .delay_max = 2, .sends_at_once = true});
  });
}

TEST(Model, BeginsWithItsFirstValues) {
  expect_everywhere("right", [](int rank) -> std::string {
    Communicator comm = Communicator::from_environment();
    std::vector<float> first(5000), values(5000);
    std::iota(first.begin(), first.end(), 0.5F);
    Model<float> model(comm, {.count = first.size(), .first = first});
    model.fetch(values);
    if (values != first) return "other values";
    const auto text = error_text([&] { model.fetch(std::span(values).first(7)); });
    if (text.find("model: values has 7 elements; expected 5000") == std::string::npos) return text;
    return rank >= 0 ? "right" : "";
  });
}

TEST(Model, ACallThatOutlivesItEndsWithAnError) {
  EXPECT_EQ(run(2,
                [](int rank, const Ready&) -> std::string {
                  Communicator comm = Communicator::from_environment();
                  std::vector<float> values(100'000);
                  Request request;
                  {
                    Model<float> model(comm, {.count = values.size(), .num_shards = 1});
                    // On the rank without a shard the values cannot have come.
                    if (rank == 1) request = model.ifetch(values);
                  }
                  const auto text = error_text([&] { request.wait(); });
                  comm.barrier();
                  return rank == 1 && text.find("it was destroyed while a call was outstanding") ==
                                          std::string::npos
                             ? "rank 1: " + text
                             : "right";
                }),
            "right");
}

TEST(Model, RanksThatDisagreeGetOneError) {
  EXPECT_EQ(run(2,
                [](int rank, const Ready&) -> std::string {
                  Communicator comm = Communicator::from_environment();
                  return error_text(
                      [&] { Model<float> model(comm, {.count = 10U + static_cast<unsigned>(rank)}); });
                }),
            "mismatch: model: the ranks disagree on the count: rank 1 has \"11\", rank 0 has \"10\"");
  EXPECT_EQ(run(2,
                [](int, const Ready&) -> std::string {
                  Communicator comm = Communicator::from_environment();
                  return error_text([&] { Model<float> model(comm, {.count = 0}); });
                }),
            "invalid argument: model: count is 0; expected the number of elements");
  EXPECT_EQ(run(2,
                [](int rank, const Ready&) -> std::string {
                  Communicator comm = Communicator::from_environment();
                  const std::vector<float> first(10, 1);
                  return error_text([&] {
                    Model<float> model(comm,
                                       {.count = 10, .first = std::span(first).first(rank == 0 ? 10 : 0)});
                  });
                },
                {{"HIPS_TOPO", "switch:2"}}),
            "mismatch: model: of ranks 0 and 1, which have shards, only one passes first values");
}

TEST(Model, ADeathEndsTheCallsOfAllRanks) {
  for (const Environment& place : {kPlaces[0], kPlaces[2], kPlaces[3]}) {
    hips::test::RankProcesses ranks(
        4,
        [](int rank, const Ready& ready) -> std::string {
          Communicator comm = Communicator::from_environment();
          Model<float> model(comm, {.count = 100'000, .num_shards = 1});
          std::vector<float> values(100'000), update(100'000, 1);
          ready();
          return error_text([&] {
            model.fetch(values);
            comm.barrier();
            for (int step = 0;; ++step) {
              if (rank == 2 && step == 3) (void)raise(SIGKILL);
              model.push_fetch(update, values);
            }
          });
        },
        place);
    const auto outcomes = ranks.wait();
    for (const std::size_t rank : {0, 1, 3}) {
      EXPECT_FALSE(outcomes[rank].hung) << "rank " << rank;
      EXPECT_THAT(outcomes[rank].text, testing::StartsWith("peer lost: ")) << "rank " << rank;
      EXPECT_THAT(outcomes[rank].text, testing::HasSubstr("rank 2")) << "rank " << rank;
    }
  }
}

/// Ranks that push ones to elements of their own until one dies; what is left of the model has what they have been told of, but for
/// a norm of `divergence_max`.
std::string go_on_with_models(int rank, double divergence_max, const Ready& ready) {
  constexpr std::uint64_t kCount = 40'000;
  Communicator comm = Communicator::from_environment();
  Model<double> model(comm, {.count = kCount, .num_shards = 2, .divergence_max = divergence_max});
  std::vector<double> values(kCount), update(kCount);
  for (std::uint64_t e = 0; e < kCount; ++e) update[e] = e % 4 == static_cast<std::uint64_t>(rank) ? 1 : 0;
  int told = 0;
  try {
    model.fetch(values);
    while (true) {
      model.push_fetch(update, values);
      ++told;
      ready();
    }
  } catch (const hips::Error& error) {
    if (error.status().code != hips::Code::kPeerLost) throw;
  }
  comm = comm.shrink();
  model = model.recover(comm);
  model.fetch(values);
  double missing = 0;
  for (auto e = static_cast<std::uint64_t>(rank); e < kCount; e += 4) {
    if (values[e] > told + 1)
      return "a rank finds " + std::to_string(values[e]) + " of " + std::to_string(told) + " updates";
    if (values[e] < told) missing += (told - values[e]) * (told - values[e]);
  }
  if (std::sqrt(missing) > divergence_max)
    return "a norm of " + std::to_string(std::sqrt(missing)) + " is missing";
  comm.barrier();
  const double before = values[static_cast<std::size_t>(rank)];
  for (int step = 0; step < 5; ++step) model.push_fetch(update, values);
  return values[static_cast<std::size_t>(rank)] == before + 5 ? "right"
                                                              : "the model that is left does not go on";
}

TEST(Model, IsTakenOverFromReplicas) {
  std::mt19937_64 random(hips::test::seed());
  const int trials = hips::test::runs_everything() ? 60 : hips::test::runs_a_sample() ? 4 : 8;
  for (int trial = 0; trial < trials && !HasFailure(); ++trial) {
    const auto victim = static_cast<int>(random() % 4);
    // Of all updates of a rank to a shard: the root of 5,000.
    const double divergence_max = random() % 2 == 0 ? 0 : 71.0 * static_cast<double>(1 + random() % 8);
    SCOPED_TRACE("trial " + std::to_string(trial) + ", rank " + std::to_string(victim) + ", " +
                 std::to_string(divergence_max));
    hips::test::RankProcesses processes(
        4, [&](int rank, const Ready& ready) { return go_on_with_models(rank, divergence_max, ready); },
        kPlaces[trial % 2 == 0 ? 2 : 3]);
    ASSERT_TRUE(processes.wait_ready());
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 100'000));
    processes.signal(victim, SIGKILL);
    auto outcomes = processes.wait();
    outcomes.erase(outcomes.begin() + victim);
    EXPECT_EQ(hips::test::same_text(outcomes), "right");
  }
}

TEST(Model, NamesTheElementsThatAreLostWithTheirNode) {
  hips::test::RankProcesses processes(3,
                                      [](int rank, const Ready&) {
                                        Communicator comm = Communicator::from_environment();
                                        Model<float> model(comm, {.count = 300, .num_shards = 3});
                                        (void)error_text([&] {
                                          comm.barrier();
                                          if (rank == 1) raise(SIGKILL);
                                          comm.barrier();
                                        });
                                        Communicator left = comm.shrink();
                                        return error_text([&] { (void)model.recover(left); });
                                      },
                                      {{"HIPS_TOPO", "switch:3"}});
  auto outcomes = processes.wait();
  outcomes.erase(outcomes.begin() + 1);
  EXPECT_EQ(
      hips::test::same_text(outcomes),
      "peer lost: model: elements 100 to 199 are lost: the node of shard 1 is gone; with divergence_max it has a replica");
}

}  // namespace
