// Models in a simulated network: what their ranks see, and how long it takes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/trace.hpp"
#include "tests/choices.hpp"
#include "tests/ps/model/simulated_model.hpp"

namespace {

using hips::Rank;
using hips::ps::ModelCall;
using hips::ps::test::SimulatedModel;

/// What a run has seen. Element e of a shard counts the updates of worker e % workers, so each row of `workers` elements adds up
/// to the version of the shard.
struct Seen {
  std::uint64_t num_applied = 0, num_handed_back = 0;  ///< parts of updates, one for each shard
  std::uint64_t longest_delay = 0;
  std::vector<std::vector<std::uint64_t>> found;  ///< by shard: versions that applied updates found
  std::string wrong;
};

struct Work {
  std::vector<Rank> workers;
  int rounds = 1;                    ///< of each
  std::int64_t most_compute_ns = 0;  ///< between a fetch and the push
  std::uint64_t seed = 1;
  bool always_fetches = false;  ///< with each push
};

/// Workers that fetch, compute and push.
class Workers {
 public:
  Workers(SimulatedModel& model, Work work) : model_(model), work_(std::move(work)), random_(work_.seed) {
    seen_.found.resize(model.shards().num);
    for (const Rank rank : work_.workers) {
      auto& worker = workers_.emplace_back(std::make_unique<Worker>());
      worker->rank = rank;
      worker->counts.resize(model.shards().num, 0);
      worker->values.resize(model.shards().count);
      worker->update.resize(model.shards().count);
    }
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      for (std::size_t shard = 0; shard < model.shards().num; ++shard)
        for (std::size_t e = 0; e < model.shards().length(shard); ++e)
          workers_[i]->update[model.shards().begin(shard) + e] = e % workers_.size() == i ? 1 : 0;
      fetch(i);
    }
  }
  Seen& seen() { return seen_; }
  /// What is wrong with values of a shard that lack at most `limit` of what workers that are left have been told of; "": nothing.
  [[nodiscard]] std::string compare(std::uint16_t shard, const std::vector<std::int64_t>& values,
                                    double limit) const {
    double missing = 0;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      const Worker& worker = *workers_[i];
      if (model_.places().node_of[static_cast<std::size_t>(worker.rank)] == model_.dead_node()) continue;
      const auto told = static_cast<std::int64_t>(worker.counts[shard]);
      for (std::size_t e = i; e < values.size(); e += workers_.size()) {
        if (values[e] > told + 1 || values[e] != values[i])
          return "worker " + std::to_string(i) + " has been told of " + std::to_string(told) +
                 " updates, and finds " + std::to_string(values[e]);
        if (values[e] < told) missing += static_cast<double>((told - values[e]) * (told - values[e]));
      }
    }
    return std::sqrt(missing) <= limit * (1 + 1e-9)
               ? ""
               : "a norm of " + std::to_string(std::sqrt(missing)) + " is missing";
  }
  [[nodiscard]] std::uint64_t num_ended() const { return num_ended_; }

 private:
  struct Worker {
    Rank rank = 0;
    int round = 0;
    ModelCall call;
    std::vector<std::uint64_t> read;  ///< versions
    std::vector<std::int64_t> values, update;
    std::vector<std::uint64_t> counts;  ///< by shard: own updates that are applied
  };

  void fetch(std::size_t i) {
    Worker& worker = *workers_[i];
    worker.call.given = nullptr;
    worker.call.out = reinterpret_cast<std::byte*>(worker.values.data());
    model_.fetch(worker.rank, worker.call, [this, i] { on_values(i); });
  }
  void on_values(std::size_t i) {
    Worker& worker = *workers_[i];
    const auto& shards = model_.shards();
    for (std::size_t shard = 0; shard < shards.num; ++shard) {
      const std::int64_t* const values = worker.values.data() + shards.begin(shard);
      for (std::size_t row = 0; row + workers_.size() <= shards.length(shard); row += workers_.size()) {
        std::int64_t sum = 0;
        for (std::size_t e = 0; e < workers_.size(); ++e) sum += values[row + e];
        if (sum != static_cast<std::int64_t>(worker.call.versions[shard]))
          seen_.wrong = "values are not those of their version";
      }
      if (values[i] != static_cast<std::int64_t>(worker.counts[shard]))
        seen_.wrong = "a worker does not see exactly its own updates";
    }
    if (worker.round++ == work_.rounds) return;
    const std::int64_t compute_ns =
        work_.most_compute_ns == 0
            ? 0
            : static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(work_.most_compute_ns));
    model_.nics().after(compute_ns, [this, i] { push(i); });
  }
  /// Every other time together with the next fetch, or always.
  void push(std::size_t i) {
    Worker& worker = *workers_[i];
    const bool fetches = work_.always_fetches || random_() % 2 == 0;
    worker.call.given = reinterpret_cast<const std::byte*>(worker.update.data());
    worker.call.out = fetches ? reinterpret_cast<std::byte*>(worker.values.data()) : nullptr;
    worker.read = worker.call.versions;
    model_.push(worker.rank, worker.call, [this, i, fetches] {
      on_outcome(i);
      if (fetches)
        on_values(i);
      else
        fetch(i);
    });
  }
  void on_outcome(std::size_t i) {
    Worker& worker = *workers_[i];
    for (std::size_t shard = 0; shard < model_.shards().num; ++shard) {
      if (worker.call.applied[shard] != 0) {
        ++worker.counts[shard];
        ++seen_.num_applied;
        seen_.longest_delay = std::max(seen_.longest_delay, worker.call.found[shard] - worker.read[shard]);
        seen_.found[shard].push_back(worker.call.found[shard]);
      } else {
        ++seen_.num_handed_back;
      }
    }
    ++num_ended_;
  }

  SimulatedModel& model_;
  Work work_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Seen seen_;
  std::uint64_t num_ended_ = 0;  ///< pushes
};

std::vector<Rank> ranks(Rank begin, Rank end) {
  std::vector<Rank> all;
  for (Rank rank = begin; rank < end; ++rank) all.push_back(rank);
  return all;
}

/// Each applied update found a version that no other one found, and none is missing.
bool are_all_once(std::vector<std::uint64_t> found) {
  std::ranges::sort(found);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i] != i) return false;
  return true;
}

int num_seeds() {
  return hips::test::runs_everything() ? 100'000 : hips::test::runs_a_sample() ? 100 : 1000;
}

/// Any model, any NICs, any workers.
class RandomRun {
 public:
  explicit RandomRun(int seed, hips::TraceSink* trace = nullptr)
      : random_(static_cast<std::uint64_t>(seed)),
        options_(make_options(random_, trace)),
        model_(options_),
        work_{.workers = ranks(0, model_.num_ranks()),
              .rounds = static_cast<int>(1 + random_() % 8),
              .most_compute_ns = static_cast<std::int64_t>(random_() % 5'000'000),
              .seed = random_()} {
    for (std::int32_t node = 0; node < options_.num_nodes; ++node)
      model_.nics().nic(static_cast<std::size_t>(node)).rate *= 1 + static_cast<double>(random_() % 4);
    model_.nics().set_window(1 + random_() % 4);
    model_.nics().set_jitter(static_cast<std::int64_t>(1 + random_() % 3'000'000), random_());
    workers_ = std::make_unique<Workers>(model_, work_);
  }
  /// Until nothing happens any more.
  void run() { ASSERT_FALSE(model_.nics().run_until(INT64_MAX)); }
  /// A node dies within the first `within_ns` of time.
  void kill(std::int64_t within_ns) {
    const auto node = static_cast<std::int32_t>(random_() % static_cast<std::uint64_t>(options_.num_nodes));
    model_.nics().at(static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(within_ns)),
                     [this, node] { model_.kill(node); });
  }
  [[nodiscard]] std::uint64_t num_pushes() const {
    return work_.workers.size() * static_cast<std::uint64_t>(work_.rounds);
  }
  SimulatedModel::Options& options() { return options_; }
  SimulatedModel& model() { return model_; }
  Workers& workers() { return *workers_; }

 private:
  static SimulatedModel::Options make_options(std::mt19937_64& random, hips::TraceSink* trace) {
    SimulatedModel::Options options{.num_nodes = static_cast<std::int32_t>(1 + random() % 5),
                                    .ranks_per_node = static_cast<std::int32_t>(1 + random() % 3)};
    options.num_shards =
        static_cast<std::uint16_t>(1 + random() % static_cast<std::uint64_t>(options.num_nodes));
    options.count = options.num_shards * (20 + random() % 2000);
    options.delay_max = random() % 4 == 0 ? UINT64_MAX : random() % 20;
    options.schedules = random() % 4 != 0;
    // The norm of an update is the square root of the rows of a shard.
    const double norm = std::sqrt(static_cast<double>(options.count));
    if (random() % 2 == 0)
      options.divergence_max = random() % 3 == 0 ? 0 : norm * static_cast<double>(random() % 8);
    options.trace = trace;
    return options;
  }

  std::mt19937_64 random_;
  SimulatedModel::Options options_;
  SimulatedModel model_;
  Work work_;
  std::unique_ptr<Workers> workers_;
};

TEST(ModelProtocol, AppliesEachUpdateOnceOrHandsItBack) {
  std::uint64_t num_handed_back = 0;
  for (int seed = 1; seed <= num_seeds(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomRun run(seed);
    ASSERT_NO_FATAL_FAILURE(run.run());
    const Seen& seen = run.workers().seen();
    ASSERT_EQ(seen.wrong, "");
    ASSERT_EQ(run.workers().num_ended(), run.num_pushes());
    ASSERT_EQ(seen.num_applied + seen.num_handed_back, run.num_pushes() * run.options().num_shards);
    ASSERT_LE(seen.longest_delay, run.options().delay_max);
    for (const auto& found : seen.found) ASSERT_TRUE(are_all_once(found));
    ASSERT_LE(run.model().longest_distance(), std::max(run.options().divergence_max, 0.0) * (1 + 1e-9));
    ASSERT_FALSE(run.model().counted_less());
    ASSERT_EQ(run.model().num_held(), 0U) << "an agent keeps what nobody needs any more";
    num_handed_back += seen.num_handed_back;
  }
  EXPECT_GT(num_handed_back, 0U);
}

struct RecordedEvents : hips::TraceSink {
  void record(const hips::TraceEvent& event) override { events.push_back(event); }
  std::vector<hips::TraceEvent> events;
};

TEST(ModelProtocol, TheTraceHasEachUpdateThatIsScheduledWithItsGroupAndDelay) {
  int num_groups_of_several = 0, num_chains_of_several = 0;
  for (int seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RecordedEvents trace;
    RandomRun run(seed, &trace);
    ASSERT_NO_FATAL_FAILURE(run.run());
    std::uint64_t num_applied = 0, num_handed_back = 0;
    std::map<std::pair<std::int32_t, std::uint64_t>, std::pair<int, int>>
        groups;  // members that are seen, and told
    for (const hips::TraceEvent& event : trace.events) {
      ASSERT_LE(event.begin_ns, event.end_ns);
      ASSERT_GE(event.shard, 0);
      if (event.kind == hips::TraceEvent::Kind::kValues) {
        ASSERT_GE(event.members, 1);
        if (event.members > 1) ++num_chains_of_several;
        continue;
      }
      ASSERT_EQ(event.kind, hips::TraceEvent::Kind::kUpdate);
      if (event.members == 0) {
        ++num_handed_back;
        continue;
      }
      ++num_applied;
      ASSERT_LE(static_cast<std::uint64_t>(event.delay), run.options().delay_max);
      auto& [seen, told] = groups[{event.shard, event.sequence}];
      ++seen;
      told = event.members;
    }
    for (const auto& [group, members] : groups) {
      ASSERT_EQ(members.first, members.second);
      if (members.second > 1) ++num_groups_of_several;
    }
    if (!run.options().schedules) {
      ASSERT_TRUE(trace.events.empty());
      continue;
    }
    ASSERT_EQ(num_applied, run.workers().seen().num_applied);
    ASSERT_EQ(num_handed_back, run.workers().seen().num_handed_back);
  }
  EXPECT_GT(num_groups_of_several, 0);
  EXPECT_GT(num_chains_of_several, 0);
}

TEST(ModelProtocol, UntilOthersHearOfADeathValuesAndDelaysAreAsPromised) {
  int num_cut_short = 0;
  for (int seed = 1; seed <= num_seeds(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomRun run(seed);
    run.kill(50'000'000);
    ASSERT_NO_FATAL_FAILURE(run.run());
    Seen& seen = run.workers().seen();
    ASSERT_EQ(seen.wrong, "");
    ASSERT_LE(seen.longest_delay, run.options().delay_max);
    for (auto& found : seen.found) {
      std::ranges::sort(found);
      ASSERT_EQ(std::ranges::adjacent_find(found), found.end()) << "two updates found the same version";
    }
    if (run.workers().num_ended() < run.num_pushes()) ++num_cut_short;
  }
  EXPECT_GT(num_cut_short, num_seeds() / 2);
}

TEST(ModelProtocol, WhatIsLeftOfAShardLacksNoMoreThanItsDivergence) {
  int num_recovered = 0, num_whole = 0;
  for (int seed = 1; seed <= num_seeds(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomRun run(seed);
    run.kill(50'000'000);
    ASSERT_NO_FATAL_FAILURE(run.run());
    const auto& model = run.model();
    const std::int32_t dead = model.dead_node();
    if (run.options().divergence_max < 0 || dead < 0 || dead >= model.shards().num ||
        model.places().num_nodes() == 1)
      continue;
    // The shard of the node that is gone. Groups that it had sent itself are kept there only.
    const auto shard = static_cast<std::uint16_t>(dead);
    const std::vector<std::int64_t> values = model.recovered(shard);
    ASSERT_EQ(run.workers().compare(shard, values, run.options().divergence_max), "");
    ++num_recovered;
    num_whole += run.workers().compare(shard, values, 0).empty() ? 1 : 0;
  }
  EXPECT_GT(num_recovered, num_seeds() / 20);
  EXPECT_GT(num_whole, num_recovered * 3 / 4);
}

TEST(ModelProtocol, AGroupWhoseNormIsNoNumberIsStoredFirst) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double limit : {0.0, 5.0, kInfinity})
    for (const double norm : {kInfinity, std::numeric_limits<double>::quiet_NaN(), 1e300}) {
      hips::ps::Divergence divergence(limit);
      std::vector<hips::ps::Divergence::Flush> flushes;
      if (limit >= 3) {
        ASSERT_TRUE(divergence.admits({1, 0, 0}, 0, 3, flushes));
      }
      for (int tries = 0; !divergence.admits({2, 1, 0}, 1, norm, flushes); ++tries) {
        ASSERT_LT(tries, 3) << limit << " " << norm;
        ASSERT_FALSE(flushes.empty());
        for (const auto& flush : flushes) divergence.stored(flush.number);
        flushes.clear();
      }
      ASSERT_LE(divergence.value(), limit);
      ASSERT_TRUE(limit < 3 || divergence.admits({3, 0, 1}, 0, 1, flushes));
    }
}

/// Updates per second of 24 workers and 4 nodes with a shard each, with cross-traffic and NICs that become slow.
double updates_per_s(bool schedules, bool changes, double for_s) {
  constexpr std::int32_t kServers = 4, kWorkers = 24;
  SimulatedModel model({.num_nodes = kServers + kWorkers,
                        .ranks_per_node = 1,
                        .count = 4 * 32768,
                        .num_shards = kServers,
                        .delay_max = 4 * kWorkers,
                        .schedules = schedules,
                        .rate = 0.0125,
                        .latency_ns = 50'000});
  auto random = std::make_shared<std::mt19937_64>(11);
  auto& nics = model.nics();
  std::function<void()> change;
  if (changes) {
    change = [&, random] {
      // 30 % of the NICs at half their rate for 2 s, and somebody else's bursts on them.
      for (std::size_t node = 0; node < kServers + kWorkers; ++node)
        nics.nic(node).rate = (*random)() % 10 < 3 ? 0.00625 : 0.0125;
      for (int i = 0; i < 40; ++i) {
        const std::size_t node = (*random)() % (kServers + kWorkers);
        const auto begin_ns = static_cast<std::int64_t>((*random)() % 2'000'000'000);
        nics.after(begin_ns, [&nics, node] {
          auto& nic = nics.nic(node);
          nic.receives_until_ns = std::max(nics.now_ns(), nic.receives_until_ns) + 20'000'000;
          nic.sends_until_ns = std::max(nics.now_ns(), nic.sends_until_ns) + 20'000'000;
        });
      }
      nics.after(2'000'000'000, change);
    };
    change();
  }
  Workers workers(model, {.workers = ranks(kServers, kServers + kWorkers),
                          .rounds = 1 << 20,
                          .most_compute_ns = 30'000'000,
                          .seed = 3,
                          .always_fetches = true});
  nics.run_until(static_cast<std::int64_t>(for_s * 1e9));
  EXPECT_EQ(workers.seen().wrong, "");
  const double rate = static_cast<double>(workers.seen().num_applied) / kServers / for_s;
  EXPECT_LE(workers.seen().longest_delay, 4U * kWorkers);
  std::cout << (schedules ? "scheduled" : "at once") << (changes ? ", NICs change: " : ", NICs are equal: ")
            << rate << " updates/s\n";
  return rate;
}

TEST(ModelProtocol, SchedulingIsFasterThanSendingAtOnce) {
  // Updates per second, by virtual time. Bounds of the NICs of workers, each of which has to send and to pass on: 131 and 47.7
  // where NICs are equal.
  // A sample has little more than its first steps, in which all workers do the same.
  const bool is_sample = hips::test::runs_a_sample();
  const double for_s = hips::test::runs_everything() ? 60 : is_sample ? 1 : 10;
  EXPECT_GT(updates_per_s(true, false, for_s), (is_sample ? 1.5 : 2.2) * updates_per_s(false, false, for_s));
  EXPECT_GT(updates_per_s(true, true, for_s), (is_sample ? 1.5 : 3.0) * updates_per_s(false, true, for_s));
}

TEST(ModelProtocol, AWaveOfUpdatesTakesAThirdOfTheTime) {
  // A shard's NIC would receive 24 updates; aggregation at other nodes, of one level, lets it receive 8.
  const auto wave_ns = [](bool schedules) {
    SimulatedModel model({.num_nodes = 28,
                          .ranks_per_node = 1,
                          .count = 4 * 32768,
                          .num_shards = 4,
                          .schedules = schedules,
                          .rate = 0.0125,
                          .latency_ns = 50'000});
    std::vector<std::int64_t> update(model.shards().count, 1);
    std::vector<ModelCall> calls(24);
    std::int64_t last_ns = 0;
    for (Rank worker = 0; worker < 24; ++worker) {
      ModelCall& call = calls[static_cast<std::size_t>(worker)];
      call.given = reinterpret_cast<const std::byte*>(update.data());
      call.versions.assign(4, 0);
      model.push(4 + worker, call, [&] { last_ns = model.nics().now_ns(); });
    }
    model.nics().run_until(INT64_MAX);
    return static_cast<double>(last_ns);
  };
  EXPECT_GT(wave_ns(false), 3.0 * wave_ns(true));
}

}  // namespace
