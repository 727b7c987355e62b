// Uneven trees of Slurm, and jobs on some of their nodes: every plan is proved and compared with the bound.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "lib/cost/estimate.hpp"
#include "lib/plan/builder.hpp"
#include "lib/plan/check/check.hpp"
#include "tests/choices.hpp"
#include "tests/topology/random_slurm_tree.hpp"
#include "topology/clusters/slurm.hpp"
#include "topology/formats/cluster_topology.hpp"
#include "topology/parts/restrict.hpp"

namespace hips::cost {
namespace {

using topology::RandomSlurmTree;

struct TreeRatio {
  double ratio = 0;
  std::uint64_t seed = 0;
  std::string text;
};

/// Proves the plan that HiPS chooses, and returns its time of bandwidth over the cut bound; 1 for a single server.
double proved_ratio(const Topology& topology, const std::string& text) {
  if (topology.num_ranks() < 2) return 1;
  const auto builder = plan::make_builder(topology, {});
  if (!builder) {
    ADD_FAILURE() << builder.error().message << "\n" << text;
    return 1;
  }
  const plan::CheckReport report =
      plan::check(plan::build_all(**builder), {.count = 1'000'003, .topology = &topology});
  EXPECT_TRUE(report.ok()) << (report.findings.empty() ? "" : report.findings.front().text) << "\n" << text;
  const double ratio = estimate_all(topology, **builder, {.count = std::int64_t{1} << 28}).ratio;
  EXPECT_GE(ratio, 1 - 1e-3) << "faster than the bound:\n" << text;
  return ratio;
}

void expect_near_the_bound(const char* what, std::vector<TreeRatio> all) {
  ASSERT_FALSE(all.empty());
  std::ranges::sort(all, {}, &TreeRatio::ratio);
  const TreeRatio &rank99 = all[(all.size() - 1) * 99 / 100], &worst = all.back();
  std::printf(
      "%s: %zu plans proved; time over the cut bound %.3f in the median, %.3f for 99 %%, %.3f at most (seed %llu)\n",
      what, all.size(), all[all.size() / 2].ratio, rank99.ratio, worst.ratio,
      static_cast<unsigned long long>(worst.seed));
  EXPECT_LE(rank99.ratio, 1.05) << what << ", the worst:\n" << worst.text;
}

TEST(SlurmTrees, PlansAndThoseOfJobsAreProvedAndNearTheBound) {
  const std::uint64_t num_seeds = test::runs_everything() ? 2000 : test::runs_a_sample() ? 30 : 400;
  std::vector<TreeRatio> wholes, jobs;
  for (std::uint64_t seed = test::seed(); seed < test::seed() + num_seeds; ++seed) {
    const RandomSlurmTree tree(seed);
    const auto slurm = topology::read_slurm_topology("topology.conf", tree.text);
    ASSERT_TRUE(slurm) << slurm.error().message << "\n" << tree.text;
    wholes.push_back({proved_ratio(slurm->topology, tree.text), seed, tree.text});
    if (tree.num_nodes < 2) continue;

    std::vector<std::string> nodes = slurm->nodes;
    std::mt19937_64 random(seed);
    std::shuffle(nodes.begin(), nodes.end(), random);
    nodes.resize(std::min<std::size_t>(2 + random() % 63, nodes.size()));
    const auto job = topology::restrict_to(topology::file_of(*slurm), {.names = nodes});
    std::string text = tree.text;
    for (const std::string& node : nodes) text += node + " ";
    ASSERT_TRUE(job) << job.error().message << "\n" << text;
    ASSERT_EQ(job->topology.num_servers(), static_cast<std::int64_t>(nodes.size())) << text;
    jobs.push_back({proved_ratio(job->topology, text), seed, text + "\n"});
    if (HasFailure()) return;
  }
  expect_near_the_bound("trees", std::move(wholes));
  expect_near_the_bound("jobs", std::move(jobs));
}

}  // namespace
}  // namespace hips::cost
