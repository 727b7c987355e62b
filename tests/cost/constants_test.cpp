#include "lib/cost/constants.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "topology/formats/parse.hpp"

namespace hips::cost {
namespace {

constexpr Constants kSlow{.hop_seconds = 21e-6, .message_seconds = 62e-6, .bytes_per_s = 25e6};

std::vector<SmallCall> calls_on(const std::string& spec, const Constants& constants, double noise,
                                std::mt19937& random) {
  const Topology topology = value_or_throw(topology::parse(spec));
  std::vector<SmallCall> calls;
  for (const Candidate& candidate : value_or_throw(candidates(topology))) {
    if (!candidate.excluded.empty()) continue;
    SmallCall call = small_call(topology, candidate);
    call.seconds = call.num_hops * constants.hop_seconds + call.num_messages * constants.message_seconds;
    call.seconds *= std::uniform_real_distribution<>(1 - noise, 1 + noise)(random);
    calls.push_back(call);
  }
  return calls;
}

TEST(Constants, small_calls_tell_latency_and_overhead) {
  std::mt19937 random(1);
  for (const std::string spec : {"rail:9,2", "switch:4", "bcube:3,1", "fattree:4", "bcube:2x3x2"}) {
    const Constants exact = fit_small(calls_on(spec, kSlow, 0, random));
    EXPECT_NEAR(exact.hop_seconds, kSlow.hop_seconds, 1e-9) << spec;
    EXPECT_NEAR(exact.message_seconds, kSlow.message_seconds, 1e-9) << spec;
    const Constants noisy = fit_small(calls_on(spec, kSlow, 0.05, random));
    EXPECT_GE(noisy.hop_seconds, 0) << spec;
    EXPECT_NEAR(noisy.message_seconds, kSlow.message_seconds, 0.5 * kSlow.message_seconds) << spec;
  }
}

TEST(Constants, between_two_nodes_no_plan_is_faster_than_an_exchange_of_the_vectors) {
  std::mt19937 random(3);
  for (const std::string spec : {"rail:2,2", "switch:2"}) {
    std::vector<SmallCall> calls = calls_on(spec, kSlow, 0.3, random);
    calls.push_back({.num_hops = 2, .num_messages = 1, .seconds = 0});      // was not tried
    calls.push_back({.num_hops = 2, .num_messages = 1, .seconds = 50e-6});  // an exchange takes 83
    const std::vector<SmallCall> before = calls;
    correct_between_two(calls);
    double exchange = 1, others = 1;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      double& least = calls[i].num_hops == 1 ? exchange : others;
      if (calls[i].seconds > 0) least = std::min(least, calls[i].seconds);
      EXPECT_GE(calls[i].seconds, before[i].seconds) << spec << " " << i;
      if (calls[i].num_hops == 1) {
        EXPECT_EQ(calls[i].seconds, before[i].seconds) << spec << " " << i;
      }
    }
    EXPECT_LT(exchange, others) << spec;
    EXPECT_EQ(calls[calls.size() - 2].seconds, 0);
  }
}

TEST(Constants, an_exchange_that_was_disturbed_itself_corrects_nothing) {
  std::vector<SmallCall> calls{{.num_hops = 1, .num_messages = 1, .seconds = 11e-3},
                               {.num_hops = 2, .num_messages = 1, .seconds = 60e-6},
                               {.num_hops = 2, .num_messages = 4, .seconds = 90e-6}};
  correct_between_two(calls);
  EXPECT_EQ(calls[1].seconds, 60e-6);
  EXPECT_EQ(calls[2].seconds, 90e-6);
}

TEST(Constants, neither_is_negative_and_one_proportion_is_shared) {
  const Constants shared =
      fit_small(std::vector<SmallCall>{{.num_hops = 2, .num_messages = 4, .seconds = 8e-6}});
  EXPECT_DOUBLE_EQ(shared.hop_seconds, 2e-6);
  EXPECT_DOUBLE_EQ(shared.message_seconds, 1e-6);
  std::mt19937 random(2);
  for (int i = 0; i < 1000; ++i) {
    std::vector<SmallCall> calls;
    for (int c = 0; c < 4; ++c)
      calls.push_back({.num_hops = 1.0 + static_cast<double>(random() % 20),
                       .num_messages = 1.0 + static_cast<double>(random() % 20),
                       .seconds = 1e-6 * (1.0 + static_cast<double>(random() % 1000))});
    const Constants found = fit_small(calls);
    EXPECT_GE(found.hop_seconds, 0);
    EXPECT_GE(found.message_seconds, 0);
    EXPECT_GT(found.hop_seconds + found.message_seconds, 0);
  }
}

/// On a slow network with expensive messages few messages win at 512 B, and few bytes at 16 MiB.
TEST(Constants, the_choice_follows_them) {
  for (const std::string spec : {"rail:9,2", "bcube:3,1", "torus:3x3", "switch:9"}) {
    const Topology topology = value_or_throw(topology::parse(spec));
    const Selection slow = value_or_throw(select(topology, Medium::kSockets, kSlow));
    EXPECT_THAT(slow.of(512).name, ::testing::StartsWith("recursive-")) << spec;
    EXPECT_THAT(slow.of(16U << 20U).name, ::testing::Not(::testing::StartsWith("recursive-"))) << spec;
    EXPECT_NE(slow.of(16U << 20U).name, "flat-mesh") << spec;
    const Selection fast = value_or_throw(select(
        topology, Medium::kSockets, {.hop_seconds = 21e-6, .message_seconds = 62e-6, .bytes_per_s = 12.5e9}));
    EXPECT_THAT(fast.of(16U << 10U).name, ::testing::StartsWith("recursive-"))
        << spec << ": bytes cost next to nothing";
  }
}

TEST(Constants, each_size_gets_the_plan_that_they_make_cheapest) {
  std::mt19937 random(3);
  for (const std::string spec :
       {"rail:5,3", "switch:6", "bcube:4,1", "torus:3x4", "leafspine:3,4", "mesh:3x3"}) {
    const Topology topology = value_or_throw(topology::parse(spec));
    for (int i = 0; i < 5; ++i) {
      const auto any = [&](double least, double most) {
        return least * std::pow(most / least, std::uniform_real_distribution<>(0, 1)(random));
      };
      const Constants constants{
          .hop_seconds = any(1e-6, 1e-3), .message_seconds = any(1e-7, 1e-4), .bytes_per_s = any(1e6, 1e11)};
      const Selection selection = value_or_throw(select(topology, Medium::kSockets, constants));
      const Topology measured = with_constants(topology, constants);
      for (std::uint64_t bytes = 4; bytes <= 64U << 20U; bytes *= 4) {
        const double chosen = expected_seconds(measured, selection.medium, selection.of(bytes), bytes);
        for (const Candidate& other : selection.candidates) {
          const bool is_for_less = other.name.starts_with("recursive-") || other.name == "binomial-tree" ||
                                   other.name == "trees" || other.name == "double-tree";
          if (is_for_less && bytes > 256U << 10U) continue;
          EXPECT_LE(chosen, 1.02 * expected_seconds(measured, selection.medium, other, bytes))
              << spec << ", " << bytes << " bytes: " << selection.of(bytes).name << ", " << other.name;
        }
      }
    }
  }
}

/// Times that were taken count at their sizes, and times between and above them go on from there.
TEST(Constants, tried_times_count_at_their_sizes) {
  const Topology topology = value_or_throw(topology::parse("rail:9,2"));
  Constants constants{
      .hop_seconds = 20e-6, .message_seconds = 20e-6, .bytes_per_s = 125e6, .spec = topology.spec};
  const std::size_t plans = value_or_throw(candidates(topology, true)).size();
  std::mt19937 random(4);
  for (int i = 0; i < 20; ++i) {
    constants.tried.clear();
    for (std::size_t plan = 0; plan < plans; ++plan) {
      const double small = std::uniform_real_distribution<>(1e-4, 1e-3)(random);
      constants.tried.push_back({small, small + std::uniform_real_distribution<>(4e-3, 9e-3)(random)});
    }
    const Selection selection = value_or_throw(select(topology, Medium::kSockets, constants));
    const Topology measured = with_constants(topology, constants);
    const auto seconds = [&](const Candidate& candidate, std::uint64_t bytes) {
      return expected_seconds(measured, selection.medium, candidate, bytes);
    };
    double least = 1;
    for (std::size_t plan = 0; plan < plans; ++plan) {
      const Candidate& candidate = selection.candidates[plan];
      EXPECT_DOUBLE_EQ(seconds(candidate, kMiddleBytes), constants.tried[plan].middle_seconds);
      EXPECT_NEAR(seconds(candidate, 4), constants.tried[plan].small_seconds,
                  0.01 * constants.tried[plan].middle_seconds);
      for (std::uint64_t bytes = 8; bytes <= 16U << 20U; bytes *= 2)
        EXPECT_LE(seconds(candidate, bytes / 2), seconds(candidate, bytes))
            << candidate.name << ", " << bytes;
      least = std::min(least, constants.tried[plan].middle_seconds);
    }
    EXPECT_LE(seconds(selection.of(kMiddleBytes), kMiddleBytes), 1.02 * least);
  }
}

/// Buffers on the path hide the rate for a while.
TEST(Constants, a_trial_faster_than_its_links_counts_as_long_as_they_need) {
  const Topology topology = value_or_throw(topology::parse("rail:9,2"));
  Constants constants{
      .hop_seconds = 1e-6, .message_seconds = 1e-6, .bytes_per_s = 1e6, .spec = topology.spec};
  const auto made = value_or_throw(candidates(topology, true));
  constants.tried.assign(made.size(), {.small_seconds = 1e-6, .middle_seconds = 2e-6});
  const Selection selection = value_or_throw(select(topology, Medium::kSockets, constants));
  // Two NICs carry at least 8/9 of the vector each way, twice.
  for (const Candidate& candidate : selection.candidates)
    EXPECT_GE(
        expected_seconds(with_constants(topology, constants), selection.medium, candidate, kMiddleBytes),
        0.99 * 8 / 9 * kMiddleBytes / 1e6)
        << candidate.name;
}

}  // namespace
}  // namespace hips::cost
