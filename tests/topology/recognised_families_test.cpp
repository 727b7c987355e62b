// Every family in many sizes, with names and ports shuffled and up to three cables or servers taken away, is found again.

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/choices.hpp"
#include "tests/topology/shuffled_cabling.hpp"
#include "topology/formats/parse.hpp"
#include "topology/wiring/recognise.hpp"

namespace hips::topology {
namespace {

constexpr std::size_t kNumSizes = 50;
constexpr std::uint64_t kNumSeeds = 5000;

/// All members of a family in a range, of which kNumSizes are kept, spread evenly.
std::vector<std::string> spread(const std::vector<std::string>& all) {
  if (all.size() <= kNumSizes) return all;
  std::vector<std::string> some;
  for (std::size_t i = 0; i < kNumSizes; ++i) some.push_back(all[i * all.size() / kNumSizes]);
  return some;
}

/// "3x4" and "3x4x2" for sides in [2, most].
std::vector<std::string> grids(const std::string& family, int most) {
  std::vector<std::string> specs;
  for (int x = 2; x <= most; ++x) {
    for (int y = 3; y <= most; ++y) {
      specs.push_back(fmt::format("{}:{}x{}", family, x, y));
      for (int z = 3; z <= most && x <= 5 && y <= 5; z += 2)
        specs.push_back(fmt::format("{}:{}x{}x{}", family, x, y, z));
    }
  }
  return spread(specs);
}

/// By family. Fat-Trees have one number only; above 16, one has 2,000 servers and more.
std::vector<std::vector<std::string>> families() {
  std::vector<std::vector<std::string>> all(7);
  for (int n = 2; n < 2 + static_cast<int>(kNumSizes); ++n) all[0].push_back(fmt::format("switch:{}", n));
  for (int n = 2; n <= 60; n += 5)
    for (int rails = 2; rails <= 8; ++rails) all[1].push_back(fmt::format("rail:{},{}", n, rails));
  for (int leaves = 2; leaves <= 12; leaves += 2)
    for (int below = 2; below <= 12; below += 2)
      for (int spines = 1; spines <= below; ++spines)
        all[2].push_back(fmt::format("leafspine:{},{},{}", leaves, below, spines));
  for (int ports = 4; ports <= 16; ports += 2) all[3].push_back(fmt::format("fattree:{}", ports));
  for (int n = 3; n <= 12; ++n) all[4].push_back(fmt::format("bcube:{},1", n));
  for (int x = 2; x <= 6; ++x)
    for (int y = 3; y <= 5; ++y)
      for (int z = 2; z <= 4; ++z) all[4].push_back(fmt::format("bcube:{}x{}x{}", x, y, z));
  all[5] = grids("torus", 9);
  all[6] = grids("mesh", 9);
  for (auto& specs : all) specs = spread(specs);
  return all;
}

std::vector<std::int64_t> sizes_of(const Topology& topology) {
  std::vector<std::int64_t> sizes{static_cast<std::int64_t>(topology.family), topology.num_whole_servers(),
                                  topology.num_switches};
  for (const Level& level : topology.levels) sizes.push_back(level.radix);
  std::sort(sizes.begin() + 3, sizes.end());
  return sizes;
}

/// Cables between servers, which have names, and switches, which have numbers. Nothing tells ports.
struct NamedGraph {
  std::vector<std::string> names;  ///< empty: a switch
  std::vector<std::pair<std::size_t, std::size_t>> cables;
};

/// The cables as sorted lines, in which a switch is what it is joined to: the same for two graphs that differ in the numbers of
/// switches only. Switches with one cable are on no path and are left out.
std::vector<std::size_t> signature(NamedGraph graph) {
  for (bool again = true; again;) {
    std::vector<std::size_t> degree(graph.names.size(), 0);
    for (const auto& [a, b] : graph.cables) ++degree[a], ++degree[b];
    const auto ends = [&](std::size_t node) { return graph.names[node].empty() && degree[node] == 1; };
    again =
        std::erase_if(graph.cables, [&](const auto& one) { return ends(one.first) || ends(one.second); }) > 0;
  }
  const std::hash<std::string> hash;
  std::vector<std::size_t> colour;
  for (const std::string& name : graph.names) colour.push_back(name.empty() ? 1 : hash(name));
  for (int round = 0; round < 6; ++round) {
    std::vector<std::vector<std::size_t>> near(graph.names.size());
    for (const auto& [a, b] : graph.cables) near[a].push_back(colour[b]), near[b].push_back(colour[a]);
    for (std::size_t node = 0; node < near.size(); ++node) {
      if (!graph.names[node].empty()) continue;
      std::ranges::sort(near[node]);
      std::string text;
      for (const std::size_t one : near[node]) text += std::to_string(one) + " ";
      colour[node] = hash(text);
    }
  }
  std::vector<std::size_t> lines;
  for (const auto& [a, b] : graph.cables)
    lines.push_back(
        hash(fmt::format("{} {}", std::min(colour[a], colour[b]), std::max(colour[a], colour[b]))));
  std::ranges::sort(lines);
  return lines;
}

NamedGraph graph_of(const Cabling& cabling, const std::set<std::string>& servers) {
  NamedGraph graph;
  for (const CabledNode& node : cabling.nodes)
    graph.names.push_back(servers.contains(node.name) ? node.name : "");
  for (const Cable& cable : cabling.cables) graph.cables.emplace_back(cable.a.node, cable.b.node);
  return graph;
}

/// What a result says is there: its family without the servers and cables that it says are missing.
NamedGraph graph_of(const ClusterTopology& found) {
  Topology whole = found.topology;
  std::set<std::pair<std::int64_t, std::int64_t>> down;
  std::set<std::pair<std::string, std::string>> down_between;
  for (const LinkOverride& one : whole.overrides) {
    if (one.up) continue;
    if (one.server >= 0) {
      down.emplace(whole.whole_server(one.server), one.rail);
    } else {
      down_between.emplace(one.lower, one.upper);
    }
  }
  std::vector<std::string> names(static_cast<std::size_t>(whole.num_whole_servers()));
  for (std::size_t i = 0; i < found.nodes.size(); ++i)
    names[static_cast<std::size_t>(whole.whole_server(static_cast<std::int64_t>(i)))] = found.nodes[i];
  whole.part.clear();
  whole.overrides.clear();
  const Graph all = whole.graph();
  NamedGraph graph;
  graph.names = names;
  graph.names.resize(all.nodes.size());
  for (const GraphLink& link : all.links) {
    const auto a = static_cast<std::size_t>(link.a), b = static_cast<std::size_t>(link.b);
    const auto gone = [&](std::size_t node) { return node < names.size() && names[node].empty(); };
    const bool is_down = down.contains({link.a, link.a_port}) ||
                         (b < names.size() && down.contains({link.b, link.b_port})) ||
                         down_between.contains({all.nodes[a].name, all.nodes[b].name});
    if (!gone(a) && !gone(b) && !is_down) graph.cables.emplace_back(a, b);
  }
  return graph;
}

/// What is missing according to a result.
struct MissingParts {
  std::size_t servers = 0, cables = 0;
};

MissingParts missing_parts(const Topology& topology) {
  MissingParts missing{.servers =
                           static_cast<std::size_t>(topology.num_whole_servers() - topology.num_servers())};
  for (const LinkOverride& link : topology.overrides) missing.cables += link.up ? 0 : 1;
  return missing;
}

/// What must be found again where the cables tell it: missing servers of a switch or rack leave a smaller one, and so do those of
/// leaf switches that all lose some. Elsewhere a smaller member explains as much only where a whole slice may be missing.
struct Expected {
  bool is_unique = false;
  bool lost_a_leaf = false;  ///< a leaf switch without servers may be left out
  std::vector<std::int64_t> sizes;
  std::size_t servers = 0;  ///< that are missing in it
};

Expected expected_of(const Topology& topology, const CablingShuffle& shuffle) {
  const auto& gone = shuffle.removed_servers();
  const auto left = static_cast<std::size_t>(topology.num_servers()) - gone.size();
  Expected expected{.sizes = sizes_of(topology), .servers = gone.size()};
  std::int64_t widest = 0;
  for (const Level& level : topology.levels) widest = std::max(widest, level.radix);
  switch (topology.family) {
    case Family::kSwitch:
    case Family::kRail: {
      // Of 4 servers or fewer, other families may lack as little.
      expected.is_unique = left > 4;
      expected.servers = 0;
      expected.sizes = sizes_of(parse_topology(topology.family == Family::kSwitch
                                                   ? fmt::format("switch:{}", left)
                                                   : fmt::format("rail:{},{}", left, topology.num_rails)));
      break;
    }
    case Family::kLeafSpine:
    case Family::kFatTree: {
      const auto below = static_cast<std::size_t>(topology.levels.front().radix);
      std::map<std::size_t, std::size_t> at;
      for (const std::size_t server : gone) ++at[server / below];
      const std::size_t leaves = left / below + (left % below > 0 ? 1 : 0);
      for (const auto& [leaf, count] : at) expected.lost_a_leaf |= count == below;
      // A spine that keeps one cable is a dead end.
      const auto num_leaves = static_cast<std::size_t>(topology.num_servers()) / below;
      expected.is_unique =
          !expected.lost_a_leaf && at.size() < leaves && num_leaves > shuffle.removed_cables() + 1;
      break;
    }
    default:
      // A small mesh without a server, which has several cables, is a part of two meshes.
      expected.is_unique = topology.num_servers() / widest >
                           static_cast<std::int64_t>(shuffle.removed() + shuffle.removed_servers().size());
  }
  return expected;
}

/// Counts for the summary that a run prints.
struct Tally {
  std::size_t tried = 0, unique = 0, with_kinds = 0, kinds_told = 0, refused = 0;
};

class ShuffledFamilies : public testing::Test {
 protected:
  void expect_found(const std::string& spec, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    CablingShuffle shuffle(random);
    const Topology topology = parse_topology(spec);
    const std::size_t cables = random() % 4, servers = random() % (4 - cables);
    Disguise disguise{.servers_missing = servers, .cables_missing = cables};
    disguise.names_alike = random() % 4 == 0;
    const Cabling cabling = shuffle.run(topology, disguise);
    SCOPED_TRACE(
        fmt::format("HIPS_SEED={} HIPS_SEEDS=1: {} without {}", seed, spec, shuffle.removed_words()));
    const auto found = topology_of("cables", cabling);
    ASSERT_TRUE(found) << found.error().message;
    ++tally_.tried;
    SCOPED_TRACE(found->topology.name + " " + found->topology.spec);
    ASSERT_NE(found->topology.family, Family::kGraph);
    std::set<std::string> names;
    for (const CabledNode& node : cabling.nodes)
      if (node.kind == CabledNode::Kind::kServer) names.insert(node.name);
    EXPECT_EQ(std::set<std::string>(found->nodes.begin(), found->nodes.end()), names);
    const Expected expected = expected_of(topology, shuffle);
    const MissingParts missing = missing_parts(found->topology);
    // What it has and what it says is missing is the list, whatever else it could have been.
    if (!expected.lost_a_leaf) {
      EXPECT_EQ(signature(graph_of(*found)), signature(graph_of(cabling, names)));
    }
    EXPECT_LE(missing.servers + missing.cables, shuffle.removed());
    // Mesh(2x3) without its middle cable is a ring of which nothing is missing, and Mesh(3x4) without two may be Mesh(2x6) without
    // one: where a wiring of servers that are cabled to each other lacks less than was taken away, the answer is a better one.
    const bool lacks_less = missing.servers + missing.cables < shuffle.removed() &&
                            (topology.family == Family::kMesh || topology.family == Family::kTorus);
    if (expected.is_unique && !lacks_less) {
      ++tally_.unique;
      const bool is_same_mesh = topology.family == Family::kMesh &&
                                found->topology.family == Family::kTorus && shuffle.removed() == 0;
      if (!is_same_mesh) {
        EXPECT_EQ(sizes_of(found->topology), expected.sizes);
      }
      EXPECT_EQ(missing.servers, expected.servers);
      EXPECT_EQ(missing.cables, shuffle.removed_cables());
    }
    expect_words(*found, missing);
    expect_the_same_without_kinds(*found, cabling);
  }

  Tally tally_;

 private:
  static void expect_words(const ClusterTopology& found, const MissingParts& missing) {
    using testing::Contains;
    using testing::HasSubstr;
    if (missing.servers > 0) {
      EXPECT_THAT(found.notes,
                  Contains(HasSubstr(missing.servers > 1 ? " without servers " : " without server ")));
    }
    if (missing.cables > 0) {
      EXPECT_THAT(found.notes, Contains(HasSubstr(missing.cables > 1 ? "missing, so they count as down"
                                                                     : "missing, so it counts as down")));
    }
  }

  /// Where the servers are the same, so is the rest.
  void expect_the_same_without_kinds(const ClusterTopology& known, Cabling cabling) {
    for (CabledNode& node : cabling.nodes) node.kind = CabledNode::Kind::kUnknown;
    const auto found = topology_of("cables", std::move(cabling));
    ++tally_.with_kinds;
    if (!found) {
      ++tally_.refused;
      EXPECT_THAT(found.error().message, testing::HasSubstr("such as --hosts '^"));
      return;
    }
    if (std::set(found->nodes.begin(), found->nodes.end()) !=
        std::set(known.nodes.begin(), known.nodes.end()))
      return;
    ++tally_.kinds_told;
    EXPECT_EQ(found->topology, known.topology);
    EXPECT_EQ(found->nodes, known.nodes);
  }
};

TEST_F(ShuffledFamilies, AreFoundAgainWithWhatIsMissing) {
  const auto all = families();
  const char* given = std::getenv("HIPS_SEEDS");
  const std::uint64_t count = given != nullptr          ? std::strtoull(given, nullptr, 10)
                              : test::runs_everything() ? kNumSeeds
                              : test::runs_a_sample()   ? 100
                                                        : 1000;
  std::map<std::string, Tally> by_family;
  for (std::uint64_t seed = test::seed(); seed < test::seed() + count; ++seed) {
    // The seed alone tells family and size, so that one seed repeats a failure.
    const auto& sizes = all[seed % all.size()];
    const std::string& spec = sizes[seed / all.size() % sizes.size()];
    tally_ = {};
    expect_found(spec, seed);
    Tally& sum = by_family[spec.substr(0, spec.find(':'))];
    sum.tried += tally_.tried;
    sum.unique += tally_.unique;
    sum.with_kinds += tally_.with_kinds;
    sum.kinds_told += tally_.kinds_told;
    sum.refused += tally_.refused;
  }
  for (const auto& [family, sum] : by_family) {
    std::cout << fmt::format(
        "{}: {} found, {} of them unique; kinds told by the cables in {} of {}, {} refused\n", family,
        sum.tried, sum.unique, sum.kinds_told, sum.with_kinds, sum.refused);
  }
}

}  // namespace
}  // namespace hips::topology
