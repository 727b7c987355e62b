#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "lib/cost/fit.hpp"
#include "lib/plan/builder.hpp"
#include "topology/graph_wiring.hpp"

namespace hips::cost {
namespace {

struct Truth {
  double hop_seconds, seconds_per_byte, reduce_seconds_per_byte;
};

/// Times of the model itself, each with a relative error of up to `noise`.
std::vector<FitSample> times(const Topology& topology, const std::vector<PlanRequest>& plans, Truth truth,
                             double noise = 0) {
  std::mt19937_64 random(20181122);
  std::uniform_real_distribution<double> off(1 - noise, 1 + noise);
  std::vector<FitSample> samples;
  for (const PlanRequest& request : plans) {
    const auto builder = value_or_throw(plan::make_builder(topology, request));
    for (std::int64_t count = 16; count <= 1 << 24; count *= 16) {
      FitSample sample = fit_sample(topology, Medium::kWires, *builder, {count, 4}, 0);
      sample.seconds = (sample.fixed_seconds + sample.num_hops * truth.hop_seconds +
                        sample.link_bytes * truth.seconds_per_byte +
                        sample.reduced_bytes * truth.reduce_seconds_per_byte) *
                       off(random);
      samples.push_back(sample);
    }
  }
  return samples;
}

const std::vector<PlanRequest> kSeveral = {
    {}, {.algorithm = "halving-doubling"}, {.algorithm = "recursive-doubling"}};

TEST(Fit, FindsTheConstantsThatMadeTheTimes) {
  const Truth truth{3e-6, 1 / 2.5e9, 1 / 8e9};
  for (const char* spec : {"switch:8", "bcube:2,1", "leafspine:2,4,2", "rail:4,2"}) {
    const auto made = value_or_throw(fit(times(parse_topology(spec), kSeveral, truth)));
    EXPECT_NEAR(made.hop_seconds, truth.hop_seconds, 1e-4 * truth.hop_seconds) << spec;
    EXPECT_NEAR(made.seconds_per_byte, truth.seconds_per_byte, 1e-4 * truth.seconds_per_byte) << spec;
    EXPECT_NEAR(made.reduce_seconds_per_byte, truth.reduce_seconds_per_byte,
                1e-3 * truth.reduce_seconds_per_byte)
        << spec;
    EXPECT_TRUE(made.has_gamma);
    EXPECT_LT(made.median_error, 1e-6);
  }
}

TEST(Fit, NoiseChangesTheConstantsLittle) {
  const Truth truth{2e-6, 1 / 12.5e9, 1 / 10e9};
  const auto made = value_or_throw(fit(times(parse_topology("switch:8"), kSeveral, truth, 0.05)));
  EXPECT_NEAR(made.hop_seconds, truth.hop_seconds, 0.15 * truth.hop_seconds);
  EXPECT_NEAR(made.seconds_per_byte, truth.seconds_per_byte, 0.25 * truth.seconds_per_byte);
  EXPECT_LT(made.median_error, 0.06);
}

TEST(Fit, OnePlanDoesNotSeparateReducingFromSending) {
  // A ring reduces half of the bytes that it sends at any size: gamma becomes a part of beta.
  const Truth truth{2e-6, 1 / 12.5e9, 1 / 10e9};
  const auto made = value_or_throw(fit(times(parse_topology("torus:6"), {{}}, truth)));
  EXPECT_FALSE(made.has_gamma);
  EXPECT_GT(made.seconds_per_byte, truth.seconds_per_byte);
  EXPECT_LT(made.median_error, 1e-3);
  // The same holds without gamma.
  const auto two = value_or_throw(fit(times(parse_topology("switch:8"), kSeveral, truth), false));
  EXPECT_FALSE(two.has_gamma);
  EXPECT_EQ(two.reduce_seconds_per_byte, 0);
  EXPECT_GT(two.seconds_per_byte, truth.seconds_per_byte);
}

TEST(Fit, LevelsAndOverriddenLinksKeepTheirRelativeRates) {
  Topology topology = parse_topology("bcube:2,1");
  topology.levels[1].bandwidth_bytes_per_s /= 4;
  topology.overrides = {{0, 0, "", "", topology.levels[0].bandwidth_bytes_per_s / 10, true}};
  const Topology made = fitted(topology, {.hop_seconds = 1.2345e-6, .seconds_per_byte = 1 / 5.0e9});
  EXPECT_DOUBLE_EQ(made.levels[0].bandwidth_bytes_per_s, 5e9);
  EXPECT_DOUBLE_EQ(made.levels[1].bandwidth_bytes_per_s, 1.25e9);
  EXPECT_DOUBLE_EQ(made.overrides[0].bandwidth_bytes_per_s, 0.5e9);
  EXPECT_DOUBLE_EQ(made.levels[1].latency_ns, 1230);
}

TEST(Fit, TheCablesOfAGraphKeepTheirRelativeRatesToo) {
  // A ring of four servers, of whose cables one is faster.
  Graph graph;
  for (std::int64_t server = 0; server < 4; ++server) {
    graph.nodes.push_back({.id = server, .name = std::to_string(server)});
    const std::int64_t next = (server + 1) % 4;
    graph.links.push_back({.a = server,
                           .b = next,
                           .a_port = 0,
                           .b_port = 1,
                           .bandwidth_bytes_per_s = server == 0 ? 4e9 : 1e9,
                           .latency_ns = 1000});
  }
  const Topology ring = value_or_throw(topology::make_graph_topology(std::move(graph)));
  const Topology made = fitted(ring, {.hop_seconds = 7e-6, .seconds_per_byte = 1 / 5.0e9});
  EXPECT_DOUBLE_EQ(made.levels[0].bandwidth_bytes_per_s, 5e9);
  const std::vector<GraphLink>& links = made.wiring.value->graph.links;
  EXPECT_DOUBLE_EQ(links[0].bandwidth_bytes_per_s, 20e9);
  EXPECT_DOUBLE_EQ(links[1].bandwidth_bytes_per_s, 5e9);
  EXPECT_DOUBLE_EQ(links[1].latency_ns, 7000);
  EXPECT_DOUBLE_EQ(ring.wiring.value->graph.links[1].bandwidth_bytes_per_s, 1e9) << "shared by copies";
}

TEST(Fit, TimesThatDoNotDetermineTheRateAreAnError) {
  EXPECT_FALSE(fit({}));
  // The times do not grow.
  std::vector<FitSample> flat = times(parse_topology("switch:4"), {{}}, {1e-6, 1e-9, 0});
  for (FitSample& sample : flat) sample.seconds = 10e-6;
  flat.resize(2);
  for (FitSample& sample : flat) sample.link_bytes = sample.reduced_bytes = 0;
  const auto made = fit(flat);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kInvalidArgument);
  EXPECT_NE(made.error().message.find("measure larger sizes"), std::string::npos);
}

}  // namespace
}  // namespace hips::cost
