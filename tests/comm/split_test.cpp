// Tests of split() and duplicate(). Ranks are processes; each computes the expected result itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <hips/hips.hpp>

#include "tests/choices.hpp"
#include "tests/comm/whole_ranks.hpp"

namespace split_test {
namespace {

using hips::ReduceOp;
using hips::test::Environment;

void expect_right(int num_ranks, const std::function<std::string(int rank)>& body,
                  const Environment& environment = {}) {
  hips::test::expect_texts(num_ranks, body, "right", environment);
}

/// The expected members of a part: ranks of the world in the part's order.
using Members = std::vector<int>;

/// Checks that a communicator reduces and gathers over exactly these ranks, in this order; "" if it does.
std::string check(hips::Communicator& comm, const Members& members, int world_rank, std::size_t count) {
  const auto place = std::ranges::find(members, world_rank) - members.begin();
  if (comm.rank() != place || comm.size() != static_cast<int>(members.size()))
    return "rank " + std::to_string(comm.rank()) + " of " + std::to_string(comm.size());
  std::vector<std::int64_t> sums(count, std::int64_t{1} << world_rank);
  comm.allreduce(std::span(sums), ReduceOp::kSum);
  std::int64_t want = 0;
  for (const int member : members) want += std::int64_t{1} << member;
  if (std::ranges::any_of(sums, [&](std::int64_t sum) { return sum != want; })) return "wrong sum";
  const std::vector<std::int32_t> mine(1, world_rank);
  std::vector<std::int32_t> all(members.size());
  comm.allgather(std::span(mine), std::span(all));
  if (!std::ranges::equal(all, members)) return "wrong order";
  return "";
}

/// The arguments of one rank. Each rank knows those of all ranks.
struct Choice {
  int color, key;
};

Members members_of(const std::vector<Choice>& choices, const Members& parent, std::size_t place) {
  std::vector<std::size_t> places;
  for (std::size_t p = 0; p < choices.size(); ++p)
    if (choices[p].color == choices[place].color) places.push_back(p);
  std::ranges::stable_sort(places, {}, [&](std::size_t p) { return choices[p].key; });
  Members members;
  for (const std::size_t p : places) members.push_back(parent[p]);
  return members;
}

std::vector<Choice> draw(std::mt19937_64& random, std::size_t size) {
  const int colors = std::uniform_int_distribution(1, 3)(random);
  const bool by_key = random() % 2 == 0;
  std::vector<Choice> choices;
  for (std::size_t r = 0; r < size; ++r)
    choices.push_back({std::uniform_int_distribution(-1, colors - 1)(random),
                       by_key ? std::uniform_int_distribution(-2, 2)(random) : 7});
  return choices;
}

/// Splits at random, and the part again, and checks both and the whole after each other.
std::string split_at_random(hips::Communicator& comm, const Members& parent, int world_rank,
                            std::uint64_t seed, int depth) {
  std::mt19937_64 random(seed);
  const auto choices = draw(random, parent.size());
  const auto place = static_cast<std::size_t>(std::ranges::find(parent, world_rank) - parent.begin());
  auto part = comm.split(choices[place].color, choices[place].key);
  if (part.has_value() != (choices[place].color >= 0)) return "a part for none";
  if (part) {
    const Members members = members_of(choices, parent, place);
    for (const std::size_t count : {1, 1000}) {
      if (auto problem = check(*part, members, world_rank, count); !problem.empty())
        return problem + " in " + part->describe();
    }
    if (depth > 1) {
      // A seed that all ranks of the part have, and no other.
      const auto next = seed * 31 + static_cast<std::uint64_t>(choices[place].color);
      if (auto problem = split_at_random(*part, members, world_rank, next, depth - 1); !problem.empty())
        return problem;
    }
  }
  return check(comm, parent, world_rank, 17);
}

struct Way {
  int num_ranks;
  std::string topology, transport;
};
void PrintTo(const Way& way, std::ostream* out) {
  *out << way.num_ranks << " ranks, " << way.topology << ", " << way.transport;
}

class Split : public testing::TestWithParam<Way> {};

TEST_P(Split, AtRandomHasTheRightRanksInTheRightOrder) {
  const std::uint64_t from_seed = hips::test::seed();
  const int rounds = hips::test::runs_everything() ? 40 : hips::test::runs_a_sample() ? 2 : 6;
  expect_right(GetParam().num_ranks,
               [&](int rank) -> std::string {
                 auto world = hips::Communicator::from_environment({.topology = GetParam().topology});
                 Members all(static_cast<std::size_t>(GetParam().num_ranks));
                 std::iota(all.begin(), all.end(), 0);
                 for (int round = 0; round < rounds; ++round) {
                   const auto problem =
                       split_at_random(world, all, rank, from_seed + static_cast<std::uint64_t>(round), 2);
                   if (!problem.empty()) return problem + " in round " + std::to_string(round);
                 }
                 return "right";
               },
               {{"HIPS_TRANSPORT", GetParam().transport}});
}

INSTANTIATE_TEST_SUITE_P(Of, Split,
                         testing::Values(Way{1, "", "auto"}, Way{2, "", "auto"}, Way{7, "", "auto"},
                                         Way{9, "bcube:3,1", "shm"}, Way{8, "bcube:2,1/2", "shm"},
                                         Way{8, "switch:4/2", "auto"}, Way{6, "leafspine:3,2", "tcp"}));

TEST(Split, APartIsPlannedOnTheServersOfItsRanks) {
  // The ranks of a row share a switch. The pattern in the environment is for two levels, so the row ignores it.
  expect_right(9,
               [](int rank) -> std::string {
                 auto world = hips::Communicator::from_environment();
                 auto row = world.split(rank / 3);
                 if (std::string(row->describe()).find("BCube(3,0)") == std::string::npos)
                   return row->describe();
                 auto backwards = world.split(rank / 3, -rank);
                 if (std::string(backwards->describe()).find("memory") == std::string::npos)
                   return backwards->describe();
                 auto copy = world.duplicate();
                 return copy.describe() == world.describe() ? "right" : copy.describe();
               },
               {{"HIPS_TOPO", "bcube:3,1"}, {"HIPS_PATTERN", "mesh,ring"}});
}

TEST(Split, AnInvalidColourIsTheSameErrorOnEveryRank) {
  expect_right(3, [](int rank) -> std::string {
    auto world = hips::Communicator::from_environment();
    try {
      (void)world.split(rank == 1 ? -5 : 0);
      return "no error";
    } catch (const hips::Error& error) {
      const std::string text = error.what();
      if (text != "split: rank 1 passed invalid colour -5 (valid: 0 and above, or -1 for no part)")
        return text;
    }
    // The communicator is still usable.
    return check(world, {0, 1, 2}, rank, 5).empty() ? "right" : "wrong afterwards";
  });
}

TEST(Split, PartsOutliveTheirParentAndRunOnSeparateThreads) {
  expect_right(4, [](int rank) -> std::string {
    auto world = std::make_optional(hips::Communicator::from_environment());
    auto pair = *world->split(rank / 2);
    auto other = *world->split(rank % 2);
    auto copy = world->duplicate();
    world.reset();
    std::string problems[3];
    std::thread first([&] { problems[0] = check(pair, {rank / 2 * 2, rank / 2 * 2 + 1}, rank, 5000); });
    std::thread second([&] { problems[1] = check(other, {rank % 2, rank % 2 + 2}, rank, 5000); });
    problems[2] = check(copy, {0, 1, 2, 3}, rank, 5000);
    first.join();
    second.join();
    const std::string problem = problems[0] + problems[1] + problems[2];
    return problem.empty() ? "right" : problem;
  });
}

/// The resident memory of this process in KiB.
long resident_kib() {
  long pages = 0, resident = 0;
  FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = -1;
  if (file != nullptr) std::fclose(file);
  return resident * 4;
}

TEST(Split, AThousandCommunicatorsLeakNoMemory) {
  const int rounds = hips::test::runs_a_sample() ? 20 : 1000;
  expect_right(3, [&](int rank) -> std::string {
    auto world = hips::Communicator::from_environment();
    const auto some = [&](int count) {
      for (int i = 0; i < count; ++i) {
        auto part = world.split(0, i % 2 == 0 ? rank : -rank);
        const Members members = i % 2 == 0 ? Members{0, 1, 2} : Members{2, 1, 0};
        if (!check(part.value(), members, rank, 3).empty()) return false;
      }
      return true;
    };
    if (!some(rounds / 10 + 5)) return "wrong";
    const long before = resident_kib();
    if (!some(rounds)) return "wrong";
    const long grown = resident_kib() - before;
    // A communicator needs more than 100 KiB. Sanitizers delay the release of freed memory, so skip them.
    if (!hips::test::runs_a_sample() && grown > 2048) return std::to_string(grown) + " KiB more";
    return "right";
  });
}

std::size_t num_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

std::size_t num_mappings() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
}

/// Memory of this process alone, in KiB: without pages that it shares with others.
long private_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return std::stol(line.substr(8));
  return -1;
}

TEST(Split, ThousandsOfCommunicatorsOnANodeNeedNoDescriptorsAndLittleMemory) {
  const int number = hips::test::runs_a_sample() ? 300 : 5000;
  expect_right(3, [&](int rank) -> std::string {
    auto world = hips::Communicator::from_environment();
    std::vector<hips::Communicator> parts;
    const auto make = [&](int wanted) {
      while (static_cast<int>(parts.size()) < wanted) {
        parts.push_back(parts.size() % 2 == 0 ? world.duplicate() : *world.split(0, -rank));
        const Members members = parts.size() % 2 == 1 ? Members{0, 1, 2} : Members{2, 1, 0};
        if (!check(parts.back(), members, rank, 3).empty()) return false;
      }
      return true;
    };
    if (!make(10)) return "wrong";
    const std::size_t descriptors = num_descriptors(), mappings = num_mappings();
    const long before = private_kib(), shared_before = resident_kib() - before;
    if (!make(number)) return "wrong";
    // Fewer where a rank that has finished has closed its connection.
    if (num_descriptors() > descriptors)
      return std::to_string(num_descriptors() - descriptors) + " descriptors more";
    // The heap grows in a few pieces.
    if (!hips::test::runs_a_sample() && num_mappings() > mappings + 3)
      return std::to_string(num_mappings() - mappings) + " mappings more";
    const long each = (private_kib() - before) * 1024 / number;
    // The blocks of all three ranks.
    const long shared = (resident_kib() - private_kib() - shared_before) * 1024 / number;
    if (!hips::test::runs_a_sample() && (each > 4096 || shared > 3 * 2048 + 512))
      return std::to_string(each) + " bytes for a communicator, and " + std::to_string(shared) + " shared";
    return "right";
  });
}

TEST(Split, DuplicatesMayBeUsedInOppositeOrders) {
  expect_right(2, [](int rank) -> std::string {
    auto world = hips::Communicator::from_environment();
    std::vector<std::int64_t> one(20'000, 1), two(20'000, 2);
    auto first = world.duplicate();
    // A duplicate is local, also while a request is outstanding.
    auto before = rank == 0 ? std::optional(first.iallreduce(std::span(one), ReduceOp::kSum)) : std::nullopt;
    auto second = world.duplicate();
    if (rank == 0) {
      auto request = second.iallreduce(std::span(two), ReduceOp::kSum);
      request.wait();
      before->wait();
    } else {
      auto request = second.iallreduce(std::span(two), ReduceOp::kSum);
      auto last = first.iallreduce(std::span(one), ReduceOp::kSum);
      last.wait();
      request.wait();
    }
    if (one != std::vector<std::int64_t>(20'000, 2)) return "wrong first";
    return two == std::vector<std::int64_t>(20'000, 4) ? "right" : "wrong second";
  });
}

// Random communicators that overlap, and non-blocking calls on them whose order differs from rank to rank.
class Orders : public testing::TestWithParam<Way> {};

TEST_P(Orders, OfCallsOnOverlappingCommunicatorsMayDiffer) {
  const std::uint64_t from_seed = hips::test::seed();
  const bool in_memory = GetParam().transport == "auto" && GetParam().topology.empty();
  const int rounds = hips::test::runs_a_sample() ? 2 : in_memory || hips::test::runs_everything() ? 200 : 40;
  expect_right(
      GetParam().num_ranks,
      [&](int rank) -> std::string {
        auto world = hips::Communicator::from_environment({.topology = GetParam().topology});
        for (int round = 0; round < rounds; ++round) {
          std::mt19937_64 common(from_seed + static_cast<std::uint64_t>(round));
          struct Part {
            std::optional<hips::Communicator> comm;
            std::vector<std::vector<std::int64_t>> data;
            std::vector<hips::Request> requests;
          };
          std::vector<Part> parts;
          for (int i = 0; i < 4; ++i) {
            const auto choices = draw(common, static_cast<std::size_t>(world.size()));
            const Choice mine = choices[static_cast<std::size_t>(rank)];
            parts.push_back({world.split(mine.color, mine.key), {}, {}});
            for (int call = 0; call < 3; ++call)
              parts.back().data.emplace_back(common() % 4 == 0 ? 1 + common() % 40'000 : 1 + common() % 500,
                                             1);
          }
          // Of one communicator the calls have one order; between them every rank has its own.
          std::mt19937_64 own(from_seed * 31 + static_cast<std::uint64_t>(round * world.size() + rank));
          std::vector<std::size_t> order;
          for (std::size_t i = 0; i < parts.size(); ++i) order.insert(order.end(), 3, i);
          std::ranges::shuffle(order, own);
          for (const std::size_t i : order) {
            Part& part = parts[i];
            if (part.comm)
              part.requests.push_back(
                  part.comm->iallreduce(std::span(part.data[part.requests.size()]), ReduceOp::kSum));
          }
          std::ranges::shuffle(order, own);
          for (const std::size_t i : order)
            for (hips::Request& request : parts[i].requests) request.wait();
          for (const Part& part : parts)
            for (const auto& data : part.data)
              if (part.comm &&
                  std::ranges::any_of(data, [&](std::int64_t sum) { return sum != part.comm->size(); }))
                return "wrong sum in round " + std::to_string(round);
        }
        return "right";
      },
      {{"HIPS_TRANSPORT", GetParam().transport}});
}

INSTANTIATE_TEST_SUITE_P(Of, Orders,
                         testing::Values(Way{2, "", "auto"}, Way{5, "", "auto"}, Way{3, "", "tcp"},
                                         Way{6, "switch:3/2", "auto"}));

TEST(Split, FourOfEightRanksInReversedOrder) {
  expect_right(8, [](int rank) -> std::string {
    auto world = hips::Communicator::from_environment();
    auto odd = world.split(rank % 2 == 1 ? 0 : -1, -rank);
    for (int i = 0; i < 20; ++i) {
      if (odd) {
        for (const std::size_t count : {1, 100, 60'000})
          if (const auto problem = check(*odd, {7, 5, 3, 1}, rank, count); !problem.empty()) return problem;
      }
      if (const auto problem = check(world, {0, 1, 2, 3, 4, 5, 6, 7}, rank, 3); !problem.empty())
        return problem;
    }
    return "right";
  });
}

TEST(Split, AUseOfACommunicatorThatAnotherRankHasDestroyedIsAnError) {
  expect_right(3, [](int rank) -> std::string {
    auto world = hips::Communicator::from_environment();
    {
      auto copy = world.duplicate();
      if (const auto problem = check(copy, {0, 1, 2}, rank, 3); !problem.empty()) return problem;
      if (rank != 1) {
        try {
          copy.barrier();
          return "no error";
        } catch (const hips::Error& error) {
          const std::string text = error.what();
          if (text.find("rank 1 destroyed the communicator without taking part in barrier #3") ==
              std::string::npos)
            return text;
        }
      }
    }
    return check(world, {0, 1, 2}, rank, 3).empty() ? "right" : "the parent is broken";
  });
}

TEST(Split, OfACommunicatorThatHasFailedFails) {
  expect_right(3, [](int rank) -> std::string {
    auto world = hips::Communicator::from_environment();
    auto copy = world.duplicate();
    copy.barrier();  // all ranks have theirs
    if (rank == 2) world.abort("enough");
    for (int i = 0; i < 2; ++i) {
      try {
        // Ranks that do not know of the failure yet get a duplicate, which fails.
        auto another = world.duplicate();
        another.barrier();
        return "no error";
      } catch (const hips::Error& error) {
        if (std::string(error.what()).find("rank 2 aborted") == std::string::npos) return error.what();
      }
    }
    return check(copy, {0, 1, 2}, rank, 3).empty() ? "right" : "another communicator has failed";
  });
}

}  // namespace
}  // namespace split_test
