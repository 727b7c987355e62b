#include "topology/wiring/recognise.hpp"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topology/shuffled_cabling.hpp"
#include "topology/names.hpp"
#include "topology/wiring/wiring.hpp"

namespace hips::topology {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

std::uint64_t seed_of_run() {
  const char* given = std::getenv("HIPS_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "HIPS_SEED=" << seed << "\n";
  return seed;
}

/// How many random wirings are tried; HIPS_WIRINGS sets another number.
int num_wirings() {
  const char* given = std::getenv("HIPS_WIRINGS");
  return given != nullptr ? std::atoi(given) : 600;
}

std::string random_spec(std::mt19937_64& random) {
  const auto number = [&](int least, int most) {
    return std::to_string(std::uniform_int_distribution(least, most)(random));
  };
  switch (random() % 7) {
    case 0:
      return "switch:" + number(2, 60);
    case 1:
      return "rail:" + number(2, 60) + "," + number(2, 8);
    case 2: {
      const int below = std::uniform_int_distribution(2, 12)(random);
      return "leafspine:" + number(2, 12) + "," + std::to_string(below) + "," + number(1, below);
    }
    case 3: {
      const int half = std::uniform_int_distribution(2, 5)(random);
      return "fattree:" + std::to_string(2 * half);
    }
    case 4:
      return random() % 2 == 0 ? "bcube:" + number(3, 9) + ",1"
                               : "bcube:" + number(2, 5) + "x" + number(3, 5) + "x" + number(2, 5);
    case 5:
      return random() % 2 == 0 ? "torus:" + number(2, 9) + "x" + number(3, 9)
                               : "torus:" + number(3, 5) + "x" + number(2, 6) + "x" + number(3, 5);
    default:
      return random() % 2 == 0 ? "mesh:" + number(2, 9) + "x" + number(3, 9)
                               : "mesh:" + number(3, 5) + "x" + number(2, 5) + "x" + number(3, 5);
  }
}

/// What is missing according to a result.
std::size_t missing_of(const Topology& topology) {
  std::size_t missing = static_cast<std::size_t>(topology.num_whole_servers() - topology.num_servers());
  for (const LinkOverride& link : topology.overrides) missing += link.up ? 0 : 1;
  return missing;
}

/// Numbers of servers and cables of which two topologies are alike, whatever the order of their levels.
std::vector<std::int64_t> shape_of(const Topology& topology) {
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(topology.family), topology.num_whole_servers(),
                                  topology.num_switches};
  for (const Level& level : topology.levels) shape.push_back(level.radix);
  std::sort(shape.begin() + 3, shape.end());
  return shape;
}

TEST(Recognition, FindsEveryFamilyAgainWhateverTheNamesAndPorts) {
  std::mt19937_64 random(seed_of_run());
  CablingShuffle shuffle(random);
  for (int i = 0; i < num_wirings(); ++i) {
    const std::string spec = random_spec(random);
    const Topology topology = parse_topology(spec);
    const auto found = topology_of("cables", shuffle.run(topology, {}));
    ASSERT_TRUE(found) << spec << ": " << found.error().message;
    EXPECT_EQ(missing_of(found->topology), 0U) << spec << ": " << found->topology.spec;
    // A mesh of sides 2 is a torus of sides 4.
    if (topology.family == Family::kMesh && found->topology.family == Family::kTorus) continue;
    EXPECT_EQ(shape_of(found->topology), shape_of(topology)) << spec << ": " << found->topology.spec;
    EXPECT_EQ(found->nodes.size(), static_cast<std::size_t>(topology.num_servers()));
  }
}

TEST(Recognition, FindsFamiliesWithUpToThreeCablesOrServersMissing) {
  std::mt19937_64 random(seed_of_run());
  CablingShuffle shuffle(random);
  int num_lost = 0;
  for (int i = 0; i < num_wirings(); ++i) {
    const std::string spec = random_spec(random);
    const Topology topology = parse_topology(spec);
    const std::size_t cables = random() % 4, servers = random() % (4 - cables);
    const Cabling cabling = shuffle.run(topology, {.servers_missing = servers, .cables_missing = cables});
    const auto found = topology_of("cables", cabling);
    // Few small ones have lost too much, such as both cables that join two switches of a pod.
    if (!found && ++num_lost <= 1 + num_wirings() / 200) continue;
    if (!found) {
      ADD_FAILURE() << spec << " without " << servers << " servers and " << cables
                    << " cables: " << found.error().message;
      continue;
    }
    // A smaller member of the family, or one of another, may have the same cables.
    EXPECT_LE(missing_of(found->topology), shuffle.removed())
        << spec << ": " << found->topology.name << " without " << servers << " servers and " << cables
        << " cables; " << found->notes.back();
    // Without servers missing it is the same family, too.
    if (missing_of(found->topology) == shuffle.removed() && servers == 0 &&
        shape_of(found->topology) != shape_of(topology))
      ADD_FAILURE() << spec << ": " << found->topology.spec << " " << found->topology.name;
  }
  std::cout << num_lost << " of " << num_wirings() << " not found\n";
}

void expect_fast(const std::string& spec, double most_seconds) {
  std::mt19937_64 random(7);
  CablingShuffle shuffle(random);
  const Cabling cabling = shuffle.run(parse_topology(spec), {.servers_missing = 1, .cables_missing = 2});
  const auto begin = std::chrono::steady_clock::now();
  const auto found = topology_of("cables", cabling);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ASSERT_TRUE(found) << spec << ": " << found.error().message;
  std::cout << spec << ": " << found->topology.name << ", " << seconds << " s\n";
  EXPECT_EQ(found->topology.family, parse_topology(spec).family) << found->topology.spec;
  EXPECT_LT(seconds, most_seconds) << spec;
}

TEST(Recognition, TakesLessThanASecondForAThousandServers) {
  for (const char* spec :
       {"switch:1024", "rail:1024,8", "leafspine:32,32", "fattree:16", "bcube:32,1", "bcube:10,2",
        "bcube:2,9", "torus:32x32", "torus:8x8x16", "torus:4x4x4x4x4", "mesh:32x32", "mesh:10x10x10"})
    expect_fast(spec, 1);
}

TEST(Recognition, TakesLessThanFifteenSecondsForTenThousandServers) {
  for (const char* spec : {"rail:10000,8", "leafspine:100,100", "fattree:34", "bcube:100,1", "bcube:21,2",
                           "torus:100x100", "torus:20x20x25", "mesh:100x100", "mesh:20x20x25"})
    expect_fast(spec, 15);
}

}  // namespace
}  // namespace hips::topology
