#include "lib/ps/model/batches.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "tests/choices.hpp"

namespace {

using hips::ps::Batches;
using hips::ps::plan_batches;
using hips::ps::WaitingUpdate;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

using Groups = std::vector<std::vector<std::size_t>>;

/// Updates that are applied, and the sum of the times until they are; nothing where a delay is above its limit.
std::optional<std::pair<std::size_t, std::int64_t>> judged(const Groups& groups,
                                                           std::span<const WaitingUpdate> updates,
                                                           std::uint64_t version, std::uint64_t delay_max) {
  std::int64_t now_ns = 0, sum_ns = 0;
  std::size_t num = 0;
  for (auto group : groups) {
    std::int64_t slowest_ns = 0;
    std::ranges::sort(group, {}, [&](std::size_t i) { return updates[i].version; });
    for (const std::size_t i : group) {
      slowest_ns = std::max(slowest_ns, updates[i].time_ns);
      if (version + num++ - updates[i].version > delay_max) return {};
    }
    now_ns += slowest_ns;
    sum_ns += now_ns * static_cast<std::int64_t>(group.size());
  }
  return std::pair(num, sum_ns);
}

/// The best of all ways to put the updates from `next` on into groups or leave them out.
void try_all(Groups& groups, std::size_t next, std::span<const WaitingUpdate> updates, std::uint64_t version,
             std::uint64_t delay_max, std::pair<std::size_t, std::int64_t>& best) {
  if (next == updates.size()) {
    const auto found = judged(groups, updates, version, delay_max);
    if (found && (found->first > best.first || (found->first == best.first && found->second < best.second)))
      best = *found;
    return;
  }
  try_all(groups, next + 1, updates, version, delay_max, best);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i].push_back(next);
    try_all(groups, next + 1, updates, version, delay_max, best);
    groups[i].pop_back();
  }
  for (std::size_t i = 0; i <= groups.size(); ++i) {
    groups.insert(groups.begin() + static_cast<std::ptrdiff_t>(i), {next});
    try_all(groups, next + 1, updates, version, delay_max, best);
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

TEST(Batches, OfAtMostSixUpdatesEqualTheBestOfAllOrders) {
  std::mt19937_64 random(20261128);
  std::size_t num_hopeless = 0, num_groups = 0;
  const int num_cases = hips::test::runs_a_sample() ? 1'000 : 10'000;
  for (int i = 0; i < num_cases; ++i) {
    std::vector<WaitingUpdate> updates(1 + random() % 6);
    const std::uint64_t version = 100, delay_max = random() % 12;
    for (WaitingUpdate& update : updates)
      update = {.version = version - random() % 10, .time_ns = static_cast<std::int64_t>(1 + random() % 20)};
    const Batches batches = plan_batches(updates, version, delay_max);
    const auto found = judged(batches.groups, updates, version, delay_max);
    ASSERT_TRUE(found) << "case " << i << ": a delay is above its limit";
    std::pair<std::size_t, std::int64_t> best{0, 0};
    Groups groups;
    try_all(groups, 0, updates, version, delay_max, best);
    ASSERT_EQ(*found, best) << "case " << i;
    ASSERT_EQ(found->first + batches.hopeless.size(), updates.size()) << "case " << i;
    num_hopeless += batches.hopeless.size();
    num_groups += batches.groups.size();
  }
  EXPECT_GT(num_hopeless, static_cast<std::size_t>(num_cases / 10));
  EXPECT_GT(num_groups, static_cast<std::size_t>(num_cases));
}

TEST(Batches, OfManyUpdatesLoseNoneAndKeepDelays) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    std::vector<WaitingUpdate> updates(random() % 80);
    const std::uint64_t version = 1000, delay_max = random() % 150;
    for (WaitingUpdate& update : updates)
      update = {.version = version - random() % 100,
                .time_ns = static_cast<std::int64_t>(1 + random() % 1000)};
    const Batches batches = plan_batches(updates, version, delay_max);
    const auto found = judged(batches.groups, updates, version, delay_max);
    ASSERT_TRUE(found);
    std::vector<std::size_t> all = batches.hopeless;
    for (const auto& group : batches.groups) all.insert(all.end(), group.begin(), group.end());
    std::ranges::sort(all);
    ASSERT_EQ(all.size(), updates.size());
    ASSERT_EQ(std::ranges::adjacent_find(all), all.end());
    // What is left out does not fit at the end either, as a last one of its own.
    for (const std::size_t h : batches.hopeless)
      ASSERT_GT(version + found->first - updates[h].version, delay_max);
  }
}

TEST(Batches, EqualUpdatesTravelAsOne) {
  const std::vector<WaitingUpdate> updates(5, {.version = 3, .time_ns = 10});
  EXPECT_THAT(plan_batches(updates, 3, 100).groups, ElementsAre(UnorderedElementsAre(0, 1, 2, 3, 4)));
}

TEST(Batches, SlowUpdatesComeAfterFastOnes) {
  std::vector<WaitingUpdate> updates(5, {.version = 3, .time_ns = 10});
  updates[1].time_ns = updates[4].time_ns = 100;
  const Batches batches = plan_batches(updates, 3, 100);
  EXPECT_THAT(batches.groups, ElementsAre(UnorderedElementsAre(0, 2, 3), UnorderedElementsAre(1, 4)));
  EXPECT_THAT(batches.hopeless, IsEmpty());
}

TEST(Batches, ASlowUpdateThatIsDueComesFirst) {
  const std::vector<WaitingUpdate> updates{
      {.version = 10, .time_ns = 1}, {.version = 10, .time_ns = 1}, {.version = 5, .time_ns = 10}};
  EXPECT_THAT(plan_batches(updates, 10, 5).groups, ElementsAre(UnorderedElementsAre(0, 1, 2)));
}

TEST(Batches, WhatIsTooLateIsHopeless) {
  const std::vector<WaitingUpdate> updates{{.version = 10, .time_ns = 1}, {.version = 4, .time_ns = 1}};
  const Batches batches = plan_batches(updates, 10, 5);
  EXPECT_THAT(batches.groups, ElementsAre(ElementsAre(0)));
  EXPECT_THAT(batches.hopeless, ElementsAre(1));
}

}  // namespace
