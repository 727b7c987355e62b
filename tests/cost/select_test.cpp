#include "lib/cost/select.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "lib/cost/estimate.hpp"
#include "lib/plan/builder.hpp"

namespace hips::cost {
namespace {

std::int64_t num_sends(const PlanBuilder& builder, Rank rank) {
  std::int64_t sends = 0;
  for (const Step& step : builder.program(rank).steps) sends += step.op == StepOp::kSend ? 1 : 0;
  return sends;
}

constexpr std::array kMedia{Medium::kWires, Medium::kMemory, Medium::kSockets, Medium::kSocketsOnHost};

const Candidate& candidate(const Selection& selection, const Selection::Choice& choice) {
  return selection.candidates[choice.candidate];
}

TEST(Select, prices_every_candidate_by_its_busiest_server) {
  // Recursive doubling folds some ranks out where their number is no power of two.
  for (int servers = 2; servers <= 40; ++servers) {
    for (const std::string& ranks : {std::string(), std::string("/2"), std::string("/3")}) {
      const Topology topology = parse_topology("switch:" + std::to_string(servers) + ranks);
      const auto all = candidates(topology);
      ASSERT_TRUE(all);
      for (const Candidate& candidate : *all) {
        const Volume volume{.count = 60'000, .element_bytes = 4};
        const Cost one = estimate(topology, candidate.builder->shape(), candidate.programs, volume);
        const Cost whole = estimate_all(topology, *candidate.builder, volume);
        // Of three ranks a server the busiest may be another one yet, by less than a fifth.
        EXPECT_NEAR(one.bandwidth_seconds / whole.bandwidth_seconds, 1, ranks == "/3" ? 0.2 : 0.02)
            << topology.spec << " " << candidate.name;
        EXPECT_GE(candidate.num_messages, num_sends(*candidate.builder, 0)) << topology.spec;
      }
    }
  }
}

TEST(Select, small_vectors_take_fewer_messages_where_every_pair_is_one_hop_apart) {
  // Of three ranks one is folded out, and doubling takes a hop more than meshes do.
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

TEST(Select, every_size_goes_by_hips_where_another_plan_would_need_relays) {
  for (const char* spec : {"bcube:3,1", "bcube:2x4x3", "torus:3x3", "torus:4x4x2", "bcube:2,3"}) {
    for (const Medium& medium : kMedia) {
      const Selection selection = value_or_throw(select(parse_topology(spec), medium));
      for (const Selection::Choice& choice : selection.choices)
        EXPECT_EQ(selection.builder(choice).shape().algorithm, "hips") << spec;
    }
  }
}

TEST(Select, large_vectors_let_no_senders_meet_on_wires) {
  for (const char* spec : {"bcube:3,1", "switch:4", "rail:9,2", "switch:9", "fattree:4", "bcube:2x4x3/2"}) {
    const Selection selection = value_or_throw(select(parse_topology(spec), Medium::kWires));
    EXPECT_TRUE(selection.candidates[0].senders_meet) << spec;
    EXPECT_EQ(candidate(selection, selection.choices.back()).name, "hips, rings") << spec;
    EXPECT_FALSE(candidate(selection, selection.choices.back()).senders_meet) << spec;
  }
}

TEST(Select, plans_in_which_no_senders_meet_need_no_rings) {
  for (const char* spec : {"switch:2", "bcube:2,3", "torus:3x3", "torus:4x4x2"}) {
    const Selection selection = value_or_throw(select(parse_topology(spec), Medium::kWires));
    EXPECT_FALSE(selection.candidates[0].senders_meet) << spec;
    EXPECT_EQ(candidate(selection, selection.choices.back()).name, "hips") << spec;
  }
}

TEST(Select, nothing_but_the_number_of_steps_tells_meshes_from_rings_in_memory) {
  for (const char* spec : {"bcube:3,1", "switch:4", "rail:9,2", "switch:9"}) {
    const Selection selection = value_or_throw(select(parse_topology(spec), Medium::kMemory));
    EXPECT_EQ(candidate(selection, selection.choices.back()).name, "hips") << spec;
  }
}

TEST(Select, sockets_take_plans_of_few_messages_for_vectors_at_least_as_large) {
  const auto most_of_doubling = [](const Topology& topology, Medium medium) {
    const Selection selection = value_or_throw(select(topology, medium));
    const Selection::Choice& first = selection.choices.front();
    return candidate(selection, first).name == "recursive-doubling" ? first.up_to_bytes : 0;
  };
  for (int ranks = 3; ranks <= 40; ++ranks) {
    const Topology topology = parse_topology("switch:" + std::to_string(ranks));
    const auto on_wires = most_of_doubling(topology, Medium::kWires);
    EXPECT_GE(most_of_doubling(topology, Medium::kSockets), on_wires) << ranks;
    const auto on_host = most_of_doubling(topology, Medium::kSocketsOnHost);
    EXPECT_GE(on_host, most_of_doubling(topology, Medium::kMemory)) << ranks;
    EXPECT_GE(on_host, ranks >= 4 && ranks <= 16 ? 64U << 10U : 0U) << ranks;
  }
}

TEST(Select, limits_ascend_and_the_last_has_none) {
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

TEST(Select, one_size_alone_is_chosen_as_in_the_table) {
  for (const char* spec : {"bcube:3,1", "switch:1", "switch:5", "rail:8,4", "torus:4x4", "bcube:4,1/2"}) {
    const Topology topology = parse_topology(spec);
    for (const Medium& medium : kMedia) {
      const Selection selection = value_or_throw(select(topology, medium));
      const auto made = value_or_throw(candidates(topology));
      for (std::uint64_t bytes = 1; bytes <= std::uint64_t{1} << 40U; bytes = bytes * 3 / 2 + 1)
        EXPECT_EQ(made[choose(topology, medium, made, bytes)].name, selection.of(bytes).name)
            << spec << " " << bytes;
      EXPECT_EQ(made[choose(topology, medium, made, 0)].name, selection.of(0).name) << spec;
    }
  }
}

TEST(Select, no_size_has_a_candidate_that_is_cheaper_by_more_than_a_hundredth) {
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
