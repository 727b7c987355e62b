#include "lib/cost/select.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "lib/cost/estimate.hpp"
#include "lib/plan/builder.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::cost {
namespace {

std::int64_t num_sends(const PlanBuilder& builder, Rank rank) {
  std::int64_t sends = 0;
  for (const Step& step : builder.program(rank).steps) sends += step.op == StepOp::kSend ? 1 : 0;
  return sends;
}

constexpr std::array kMedia{Medium::kWires, Medium::kMemory, Medium::kSockets, Medium::kSocketsOnNode};

const Candidate& candidate(const Selection& selection, const Selection::Choice& choice) {
  return selection.candidates[choice.candidate];
}

/// One slow cable, wherever it is, makes every call as slow as it is. Where servers relay, any of them may send over it: such plans are
/// tried before they are chosen.
TEST(Select, CandidatesKnowTheSlowestCable) {
  for (const std::string spec : {"switch:12", "rail:9,2", "leafspine:3,4", "bcube:3,1", "torus:3x4",
                                 "rail:9,2[0-3,6-8]", "leafspine:3,8,2[1-23]"}) {
    const Topology whole = parse_topology(spec);
    for (std::int32_t server = 0; server < whole.num_servers(); ++server) {
      Topology topology = whole;
      topology.overrides = {{server, 0, "", "", kDefaultBandwidthBytesPerS / 20, true}};
      const auto all = candidates(topology);
      ASSERT_TRUE(all);
      for (const Candidate& candidate : *all) {
        if (!candidate.builder->shape().neighbours_only) continue;
        const Volume volume{.count = 4 << 20, .element_bytes = 4};
        const Cost one = estimate(topology, candidate.builder->shape(), candidate.programs, volume);
        const Cost every = estimate_all(topology, *candidate.builder, volume);
        EXPECT_GE(one.bandwidth_seconds, 0.9 * every.bandwidth_seconds)
            << spec << ", server " << server << ", " << candidate.name;
      }
    }
  }
}

TEST(Select, CandidatesKnowTheSlowestCableOfAGraph) {
  for (int slow = 0; slow < 9; ++slow) {
    std::string text =
        "hips-topology: 1\nshape: graph\nservers: {count: 9}\nswitches: {names: [x, y, z]}\ncables:\n"
        "  - {switches: [x, y], rate: 400Gb}\n  - {switches: [y, z], rate: 400Gb}\n";
    for (int server = 0; server < 9; ++server)
      text += fmt::format("  - {{server: {}, nic: 0, switch: {}, rate: {}}}\n", server, "xyz"[server % 3],
                          server == slow ? "10Gb" : "100Gb");
    const auto file = topology::parse_topology_file("g.yaml", text);
    ASSERT_TRUE(file) << file.error().message;
    const auto all = candidates(file->topology);
    ASSERT_TRUE(all);
    for (const Candidate& candidate : *all) {
      const Volume volume{.count = 4 << 20, .element_bytes = 4};
      const Cost one = estimate(file->topology, candidate.builder->shape(), candidate.programs, volume);
      const Cost every = estimate_all(file->topology, *candidate.builder, volume);
      EXPECT_GE(candidate.uplinks_to_nics * one.bandwidth_seconds, 0.9 * every.bandwidth_seconds)
          << "server " << slow << ", " << candidate.name;
    }
  }
}

/// The servers of a switch share the cables above it.
TEST(Select, CandidatesKnowUplinksThatAreSlowerThanTheNicsBelow) {
  std::vector<Topology> topologies;
  for (const char* spec :
       {"leafspine:2,2,1", "leafspine:4,4,1", "leafspine:3,5,2", "leafspine:2,8,2[1-14]", "leafspine:16,8,2"})
    topologies.push_back(parse_topology(spec));
  for (const double slower : {10.0, 100.0}) {
    for (const char* spec : {"leafspine:3,4", "fattree:4", "fattree:8"}) {
      topologies.push_back(parse_topology(spec));
      topologies.back().levels.back().bandwidth_bytes_per_s /= slower;
    }
  }
  for (const Topology& topology : topologies) {
    const auto all = candidates(topology);
    ASSERT_TRUE(all);
    for (const Candidate& candidate : *all) {
      const Volume volume{.count = 4 << 20, .element_bytes = 4};
      const double one =
          estimate(topology, candidate.builder->shape(), candidate.programs, volume).bandwidth_seconds;
      const double every = estimate_all(topology, *candidate.builder, volume).bandwidth_seconds;
      EXPECT_NEAR(candidate.uplinks_to_nics * one / every, 1, 0.1)
          << topology.name << " " << topology.levels.back().bandwidth_bytes_per_s << ", " << candidate.name;
    }
  }
}

TEST(Select, SmallVectorsOverSlowUplinksTakePlansOfFewBytes) {
  Topology topology = parse_topology("leafspine:2,8,1");
  topology.levels.back().bandwidth_bytes_per_s /= 100;
  const Selection selection = value_or_throw(select(topology, Medium::kWires));
  // Recursive doubling sends eight vectors of a leaf over its uplink at once, rings less than two.
  EXPECT_EQ(selection.of(8).name, "recursive-doubling");
  EXPECT_NE(selection.of(64U << 10U).name, "recursive-doubling");
}

TEST(Select, EveryCandidateCostsWhatItsBusiestServerDoes) {
  // In recursive doubling some ranks are outside the core unless their number is a power of two.
  for (int servers = 2; servers <= 40; ++servers) {
    for (const std::string& ranks : {std::string(), std::string("/2"), std::string("/3")}) {
      const Topology topology = parse_topology("switch:" + std::to_string(servers) + ranks);
      const auto all = candidates(topology);
      ASSERT_TRUE(all);
      for (const Candidate& candidate : *all) {
        const Volume volume{.count = 60'000, .element_bytes = 4};
        const Cost one = estimate(topology, candidate.builder->shape(), candidate.programs, volume);
        const Cost whole = estimate_all(topology, *candidate.builder, volume);
        // With three ranks per server another server may be busier, by less than a fifth.
        EXPECT_NEAR(one.bandwidth_seconds / whole.bandwidth_seconds, 1, ranks == "/3" ? 0.2 : 0.02)
            << topology.spec << " " << candidate.name;
        EXPECT_GE(candidate.num_messages, num_sends(*candidate.builder, 0)) << topology.spec;
      }
    }
  }
}

TEST(Select, SmallVectorsTakeFewerMessagesWhereEveryPairIsOneHopApart) {
  // With three ranks one is outside the core, and doubling takes one hop more than a mesh.
  for (int ranks = 4; ranks <= 64; ++ranks) {
    const Topology topology = parse_topology("switch:" + std::to_string(ranks));
    for (const Medium& medium : kMedia) {
      const Selection selection = value_or_throw(select(topology, medium));
      ASSERT_GE(selection.choices.size(), 2U) << ranks;
      const Selection::Choice& small = selection.choices.front();
      const Selection::Choice& large = selection.choices.back();
      EXPECT_EQ(candidate(selection, small).name, "recursive-doubling");
      EXPECT_GE(small.up_to_bytes, 4U);
      EXPECT_LE(small.up_to_bytes, 256U << 10U);
      for (Rank rank = 0; rank < ranks; ++rank) {
        EXPECT_LE(num_sends(selection.builder(small), rank), num_sends(selection.builder(large), rank));
      }
    }
  }
}

TEST(Select, EverySizeTakesHipsWhereAnotherPlanWouldNeedRelays) {
  for (const char* spec : {"bcube:3,1", "bcube:2x4x3", "torus:3x3", "torus:4x4x2", "bcube:2,3"}) {
    for (const Medium& medium : kMedia) {
      const Selection selection = value_or_throw(select(parse_topology(spec), medium));
      for (const Selection::Choice& choice : selection.choices)
        EXPECT_EQ(selection.builder(choice).shape().algorithm, "hips") << spec;
    }
  }
}

TEST(Select, LargeVectorsTakePlansWithoutIncastOnWires) {
  for (const char* spec : {"bcube:3,1", "switch:4", "rail:9,2", "switch:9", "fattree:4", "bcube:2x4x3/2"}) {
    const Selection selection = value_or_throw(select(parse_topology(spec), Medium::kWires));
    EXPECT_TRUE(selection.candidates[0].has_incast) << spec;
    EXPECT_EQ(candidate(selection, selection.choices.back()).name, "hips, rings") << spec;
    EXPECT_FALSE(candidate(selection, selection.choices.back()).has_incast) << spec;
  }
}

TEST(Select, PlansWithoutIncastNeedNoRings) {
  for (const char* spec : {"switch:2", "bcube:2,3", "torus:3x3", "torus:4x4x2"}) {
    const Selection selection = value_or_throw(select(parse_topology(spec), Medium::kWires));
    EXPECT_FALSE(selection.candidates[0].has_incast) << spec;
    EXPECT_EQ(candidate(selection, selection.choices.back()).name, "hips") << spec;
  }
}

TEST(Select, OnlyTheNumberOfStepsDistinguishesMeshesFromRingsInMemory) {
  for (const char* spec : {"bcube:3,1", "switch:4", "rail:9,2", "switch:9"}) {
    const Selection selection = value_or_throw(select(parse_topology(spec), Medium::kMemory));
    EXPECT_EQ(candidate(selection, selection.choices.back()).name, "hips") << spec;
  }
}

TEST(Select, SocketsTakePlansOfFewMessagesForVectorsAtLeastAsLarge) {
  const auto most_of_doubling = [](const Topology& topology, Medium medium) {
    const Selection selection = value_or_throw(select(topology, medium));
    const Selection::Choice& first = selection.choices.front();
    return candidate(selection, first).name == "recursive-doubling" ? first.up_to_bytes : 0;
  };
  for (int ranks = 3; ranks <= 40; ++ranks) {
    const Topology topology = parse_topology("switch:" + std::to_string(ranks));
    const auto on_wires = most_of_doubling(topology, Medium::kWires);
    EXPECT_GE(most_of_doubling(topology, Medium::kSockets), on_wires) << ranks;
    const auto on_host = most_of_doubling(topology, Medium::kSocketsOnNode);
    EXPECT_GE(on_host, most_of_doubling(topology, Medium::kMemory)) << ranks;
    EXPECT_GE(on_host, ranks >= 4 && ranks <= 16 ? 64U << 10U : 0U) << ranks;
  }
}

TEST(Select, LimitsAscendAndTheLastIsUnlimited) {
  for (const char* spec :
       {"switch:1", "switch:2", "rail:8,4", "fattree:4", "leafspine:4,4", "rail:3,2/2", "switch:100"}) {
    for (const Medium& medium : kMedia) {
      const Selection selection = value_or_throw(select(parse_topology(spec), medium));
      ASSERT_FALSE(selection.choices.empty());
      std::uint64_t last = 0;
      for (const Selection::Choice& choice : selection.choices) {
        EXPECT_GT(choice.up_to_bytes, last) << spec;
        last = choice.up_to_bytes;
      }
      EXPECT_EQ(last, UINT64_MAX);
    }
  }
}

/// The name of the cheapest plan for a power of two of ranks on a switch, from the closed forms of the
/// algorithms: steps, share of the vector that a NIC carries, messages of a rank, and whether several senders
/// send to one NIC at a time.
std::string cheapest_on_switch(int ranks, const Medium& medium, std::uint64_t bytes) {
  struct ClosedForm {
    const char* name;
    double steps, vectors, messages;
    bool incast;
  };
  const double n = ranks, log_n = std::bit_width(static_cast<unsigned>(ranks)) - 1, halves = 2 * (n - 1) / n;
  const ClosedForm forms[] = {{"hips", 2, halves, 2 * (n - 1), true},
                              {"hips, rings", 2 * (n - 1), halves, 2 * (n - 1), false},
                              {"recursive-doubling", log_n, log_n, log_n, false},
                              {"halving-doubling", 2 * log_n, halves, 2 * log_n, false}};
  std::string best;
  double least = 1e9;
  for (const ClosedForm& form : forms) {
    if (form.name == std::string_view("recursive-doubling") && bytes > 256U << 10U) continue;
    const double incast = form.incast && medium.has_links ? 1.1 : 1;
    const double seconds = form.steps * 1e-6 + incast * form.vectors * static_cast<double>(bytes) / 12.5e9 +
                           form.messages * medium.message_seconds;
    // A later plan must be better by one percent.
    if (seconds >= 0.99 * least) continue;
    best = form.name;
    least = seconds;
  }
  return best;
}

TEST(Select, SizesOnASwitchGoToThePlanThatIsCheapestByClosedForms) {
  std::set<std::string> seen;
  for (const int ranks : {4, 8, 16, 32, 64}) {
    const Topology topology = parse_topology("switch:" + std::to_string(ranks));
    for (const Medium& medium : kMedia) {
      const Selection selection = value_or_throw(select(topology, medium));
      // In smaller vectors some blocks are empty.
      for (std::uint64_t bytes = 4 * static_cast<std::uint64_t>(ranks); bytes <= std::uint64_t{1} << 32U;
           bytes *= 2) {
        EXPECT_EQ(selection.of(bytes).name, cheapest_on_switch(ranks, medium, bytes))
            << ranks << " ranks, " << bytes;
        seen.insert(selection.of(bytes).name);
      }
    }
  }
  EXPECT_EQ(seen, (std::set<std::string>{"hips", "hips, rings", "recursive-doubling", "halving-doubling"}));
}

TEST(Select, ASizeBetweenPowersOfTwoGoesToThePlanOfTheNextPower) {
  const Topology topology = parse_topology("switch:16");
  for (const Medium& medium : kMedia) {
    const auto made = value_or_throw(candidates(topology));
    for (std::uint64_t bytes = 64; bytes <= std::uint64_t{1} << 31U; bytes = bytes * 3 / 2 + 1) {
      EXPECT_EQ(made[choose(topology, medium, made, bytes)].name,
                cheapest_on_switch(16, medium, std::bit_ceil(bytes)))
          << bytes;
    }
    // No size is too small or too large.
    EXPECT_EQ(made[choose(topology, medium, made, 0)].name, "recursive-doubling");
    EXPECT_EQ(made[choose(topology, medium, made, UINT64_MAX / 4)].name,
              cheapest_on_switch(16, medium, std::uint64_t{1} << 32U));
  }
}

TEST(Select, NoSizeHasACandidateThatIsCheaperByMoreThanAHundredth) {
  for (const char* spec : {"bcube:3,1", "switch:5", "rail:8,4", "leafspine:4,4", "bcube:4,1/2"}) {
    const Topology topology = parse_topology(spec);
    for (const Medium& medium : kMedia) {
      const Selection selection = value_or_throw(select(topology, medium));
      for (std::uint64_t bytes = 4; bytes <= 1U << 30U; bytes *= 2) {
        const double chosen = expected_seconds(topology, medium, selection.of(bytes), bytes);
        for (const Candidate& other : selection.candidates) {
          if (!other.excluded.empty()) continue;
          if (bytes > 256U << 10U && other.name == "recursive-doubling") continue;
          EXPECT_LE(0.99 * chosen, expected_seconds(topology, medium, other, bytes)) << spec << " " << bytes;
        }
      }
    }
  }
}

}  // namespace
}  // namespace hips::cost
