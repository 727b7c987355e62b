// Allreduce over verbs: every algorithm, odd sizes, in and out of place, two to eight ranks, one credit; with
// shared memory inside hosts, and asleep.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <hips/hips.hpp>

#include "lib/plan/builder.hpp"
#include "tests/choices.hpp"
#include "tests/comm/verbs/job.hpp"

namespace hips::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Sums of small integers, exact in every order; "" or what was wrong.
std::string check_sum(hips::Communicator& comm, int rank, int size, std::span<float> in, std::span<float> out,
                      bool in_place) {
  const std::size_t count = in.size();
  for (std::size_t i = 0; i < count; ++i)
    in[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(rank)) % 64);
  std::fill(out.begin(), out.end(), -1.0F);
  const std::span<float> result = in_place ? in : out;
  comm.allreduce<float>(in, result, ReduceOp::kSum);
  for (std::size_t i = 0; i < count; ++i) {
    float expected = 0;
    for (int r = 0; r < size; ++r) expected += static_cast<float>((i * 7 + static_cast<std::size_t>(r)) % 64);
    if (result[i] != expected)
      return fmt::format("rank {}, count {}: element {} is {}, not {}", rank, count, i, result[i], expected);
  }
  // The next call overwrites at once what a NIC might still want to read.
  return "";
}

std::string check_sum(hips::Communicator& comm, int rank, int size, std::size_t count, bool in_place) {
  std::vector<float> in(count), out(count);
  return check_sum(comm, rank, size, in, out, in_place);
}

struct Job {
  std::string topology, algorithm, pattern;
  int ranks = 2;
  std::map<std::string, std::string> environment{};
};

std::vector<Job> jobs() {
  std::vector<Job> all;
  const std::vector<std::pair<std::string, int>> switches = {
      {"switch:2", 2}, {"switch:3", 3}, {"switch:5", 5}, {"switch:7", 7}, {"switch:8", 8}};
  std::size_t turn = 0;
  // Every algorithm on every number of ranks; credits, segments and queue pairs vary so that pairs are
  // covered.
  const std::vector<std::map<std::string, std::string>> settings = {
      {{"HIPS_CREDITS", "1"}, {"HIPS_SEGMENT_BYTES", "4K"}},
      {{"HIPS_CREDITS", "4"}, {"HIPS_IB_QPS_PER_CONNECTION", "3"}, {"HIPS_SEGMENT_BYTES", "16K"}},
      {{"HIPS_CREDITS", "1"}, {"HIPS_IB_QPS_PER_CONNECTION", "2"}},
      {{"HIPS_CREDITS", "3"}, {"HIPS_VERBS_CM", "1"}},
      {{"HIPS_CREDITS", "15"}, {"HIPS_SEGMENT_BYTES", "1K"}},
  };
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    for (const auto& [topology, ranks] : switches) {
      // Some are for a torus only.
      if (!plan::make_builder(parse_topology(topology), {.algorithm = std::string(algorithm.name)})) continue;
      all.push_back({topology, std::string(algorithm.name), "", ranks, settings[turn++ % settings.size()]});
    }
  }
  for (const char* pattern : {"mesh", "ring", "ps:1"}) {
    for (const auto& [topology, ranks] : std::vector<std::pair<std::string, int>>{
             {"bcube:2,1", 4}, {"torus:3x2", 6}, {"bcube:2,2", 8}, {"rail:4,2", 4}, {"bcube:2,1/2", 8}})
      all.push_back({topology, "hips", pattern, ranks, settings[turn++ % settings.size()]});
  }
  return all;
}

/// All jobs with HIPS_TEST_FULL=1, else every `step`-th from a random one on: over memory the executor's tests run all, and
/// here it is the devices' turn.
std::vector<Job> chosen_jobs(std::mt19937_64& random, std::size_t step) {
  const std::vector<Job> all = jobs();
  if (runs_everything()) return all;
  std::vector<Job> chosen;
  for (std::size_t j = random() % step; j < all.size(); j += step) chosen.push_back(all[j]);
  return chosen;
}

TEST(Matrix, EveryAlgorithmIsExactOverVerbs) {
  std::mt19937_64 random(seed());
  for (const Job& job : chosen_jobs(random, 3)) {
    std::map<std::string, std::string> environment = job.environment;
    environment["HIPS_TOPO"] = job.topology;
    environment["HIPS_ALGORITHM"] = job.algorithm;
    if (!job.pattern.empty()) environment["HIPS_PATTERN"] = job.pattern;
    const auto n = static_cast<std::size_t>(job.ranks);
    const std::vector<std::size_t> counts = {0, 1, n - 1, n, n + 1, 1009, 20'011 + random() % 4096};
    const std::uint64_t places = random();
    const auto texts = run_job(
        job.ranks,
        [&](int rank, const auto&) {
          auto comm = hips::Communicator::from_environment();
          std::string wrong;
          for (std::size_t i = 0; i < counts.size() && wrong.empty(); ++i)
            wrong = check_sum(comm, rank, job.ranks, counts[i], (places >> i & 1U) != 0);
          if (std::string(comm.describe()).find("verbs") == std::string::npos) wrong += "not over verbs";
          return wrong;
        },
        environment);
    for (const std::string& text : texts) {
      EXPECT_EQ(text, "") << job.topology << " " << job.algorithm << " " << job.pattern << " "
                          << ::testing::PrintToString(job.environment);
    }
  }
}

TEST(ZeroCopy, RegisteredMemoryIsExactUnderEveryAlgorithmWhicheverRanksHaveIt) {
  std::mt19937_64 random(seed());
  for (const Job& job : chosen_jobs(random, 7)) {
    std::map<std::string, std::string> environment = job.environment;
    environment["HIPS_TOPO"] = job.topology;
    environment["HIPS_ALGORITHM"] = job.algorithm;
    if (!job.pattern.empty()) environment["HIPS_PATTERN"] = job.pattern;
    if (random() % 2 == 0) environment["HIPS_CREDITS"] = "1";
    const std::vector<std::size_t> counts = {1, 1009, 20'011 + random() % 4096, 65'536};
    const std::uint64_t choices = random();
    const auto texts = run_job(
        job.ranks,
        [&](int rank, const auto&) {
          auto comm = hips::Communicator::from_environment();
          std::string wrong;
          for (std::size_t i = 0; i < counts.size() && wrong.empty(); ++i) {
            const std::uint64_t choice = choices >> (i * 3 + static_cast<std::size_t>(rank));
            const bool in_place = (choices >> (60 - i) & 1U) != 0;
            auto in = hips::allocate_registered<float>(counts[i]);
            std::vector<float> out(counts[i]);
            hips::RegisteredMemory registered;
            if ((choice & 1U) != 0) registered = hips::RegisteredMemory(std::span(out));
            std::vector<float> plain((choice & 2U) != 0 ? counts[i] : 0);
            const std::span<float> from = plain.empty() ? in.span() : plain;
            for (int turn = 0; turn < 3 && wrong.empty(); ++turn)
              wrong = check_sum(comm, rank, job.ranks, from, out, in_place);
          }
          return wrong;
        },
        environment);
    for (const std::string& text : texts) {
      EXPECT_EQ(text, "") << job.topology << " " << job.algorithm << " " << job.pattern << " "
                          << ::testing::PrintToString(environment);
    }
  }
}

TEST(ZeroCopy, MemoryThatMayNotBeLockedGoesThroughStaging) {
  const auto texts = run_job(2, [](int rank, const auto&) {
    // Nobody limits root.
    if (rank == 0) move_to_another_host();
    auto comm = hips::Communicator::from_environment();
    auto out = hips::allocate_registered<float>(300'000);
    std::vector<float> plain(out.size());
    std::string wrong = check_sum(comm, rank, 2, out.span(), plain, true);
    const rlimit little{64 << 10, 64 << 10};
    if (rank == 0 && setrlimit(RLIMIT_MEMLOCK, &little) != 0) return std::string("cannot lower a limit");
    ::testing::internal::CaptureStderr();
    auto late = hips::allocate_registered<float>(300'000);
    for (int turn = 0; turn < 3; ++turn) {
      wrong += check_sum(comm, rank, 2, late.span(), out.span(), false);
      wrong += check_sum(comm, rank, 2, late.span(), plain, true);
    }
    return wrong + ::testing::internal::GetCapturedStderr();
  });
  EXPECT_THAT(texts[0], AllOf(StartsWith("hips"), HasSubstr("through staging instead: verbs: "),
                              HasSubstr("RLIMIT_MEMLOCK is 64 KiB")));
  EXPECT_EQ(std::count(texts[0].begin(), texts[0].end(), '\n'), 1) << texts[0];
  EXPECT_EQ(texts[1], "");
}

TEST(Mixed, RanksOfAHostUseSharedMemoryAndOthersVerbsAndAllSleepWithoutLosingAWakeUp) {
  // Two hosts of two ranks; more ranks than cores, so that they sleep again and again.
  const auto texts = run_job(4,
                             [](int rank, const auto&) {
                               if (rank >= 2) move_to_another_host();
                               auto comm = hips::Communicator::from_environment();
                               std::string wrong;
                               for (std::size_t i = 0; i < 1000 && wrong.empty(); ++i)
                                 wrong = check_sum(comm, rank, 4, 1 + i % 50, i % 2 == 0);
                               for (std::size_t count : {4099UL, 70'001UL})
                                 wrong += check_sum(comm, rank, 4, count, false);
                               return wrong + comm.describe();
                             },
                             {{"HIPS_TRANSPORT", "auto"}, {"HIPS_TOPO", "switch:2/2"}});
  for (const std::string& text : texts) {
    EXPECT_THAT(text, HasSubstr("shm, verbs"));
    EXPECT_THAT(text, HasSubstr("not emulated"));
  }
}

TEST(Routes, AnAutomaticChoiceInsideAHostIsSharedMemoryAlone) {
  const auto texts = run_job(
      2, [](int, const auto&) { return std::string(hips::Communicator::from_environment().describe()); },
      {{"HIPS_TRANSPORT", "auto"}});
  for (const std::string& text : texts) {
    EXPECT_THAT(text, HasSubstr("shared memory of one node"));
    EXPECT_THAT(text, ::testing::Not(HasSubstr("verbs")));
  }
}

}  // namespace
}  // namespace hips::test
