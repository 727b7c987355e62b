#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/result.hpp"
#include "lib/plan/plan_builder.hpp"

namespace hips::cost {

/// Overhead of a rank per message through a NIC or memory: posting it, its completion, its arrival and the
/// credit for it. About a microsecond on every NIC. Crossovers between plans depend on it only linearly.
inline constexpr double kMessageSeconds = 0.5e-6;
/// The same through the kernel's sockets: system calls at both ends, and a reader to wake. The crossovers
/// between plans of few messages and plans of few bytes, at 2 to 9 ranks, give 1.3 to 2.6 us at the default
/// rate of 100 Gbit/s.
inline constexpr double kSocketMessageSeconds = 2e-6;

/// What connects the ranks of a plan, as far as it matters for the choice of plans.
struct Medium {
  bool has_links = true;  ///< NICs, where incast costs time
  double message_seconds = kMessageSeconds;
  bool measured =
      false;  ///< these seconds and the rates and latencies of the topology are: more plans can be told apart

  static const Medium kWires;          ///< NICs, driven by the ranks
  static const Medium kMemory;         ///< memory of one node, which has no links
  static const Medium kSockets;        ///< NICs, driven by the kernel
  static const Medium kSocketsOnNode;  ///< the kernel, between ranks of one node
};
inline constexpr Medium Medium::kWires{};
inline constexpr Medium Medium::kMemory{.has_links = false};
inline constexpr Medium Medium::kSockets{.message_seconds = kSocketMessageSeconds};
inline constexpr Medium Medium::kSocketsOnNode{.has_links = false, .message_seconds = kSocketMessageSeconds};

/// The size of calls by which plans are compared between small calls and those whose time is that of their bytes.
inline constexpr std::uint64_t kMiddleBytes = 32U << 10U;

/// What a plan took where it was tried; 0: not tried.
struct TriedTimes {
  double small_seconds = 0;   ///< of a call whose bytes hardly matter
  double middle_seconds = 0;  ///< of a call of kMiddleBytes
  friend bool operator==(const TriedTimes&, const TriedTimes&) = default;
};

/// A plan that could execute a call.
struct Candidate {
  std::string name;  ///< "hips", "hips, rings", "recursive-doubling", "halving-doubling"
  std::unique_ptr<PlanBuilder> builder;
  std::vector<Program> programs;  ///< of the ranks of one of the busiest servers
  TriedTimes tried{};  ///< count instead of latency and overhead, and up to kMiddleBytes instead of all
  double hops_of_a_message = 1;  ///< more where servers relay
  double uplinks_to_nics =
      1;  ///< time of the busiest cables above a switch, in times of the busiest NIC; at least 1
  std::int64_t num_messages = 0;  ///< that the busiest rank sends
  bool has_incast = false;        ///< several peers send to one NIC at the same time
  std::string excluded;           ///< why it is never chosen; empty if it may be
};

/// The plan for each size of vector: few messages for small vectors, few bytes for large ones, and on wires
/// no incast.
struct Selection {
  struct Choice {
    std::size_t candidate = 0;
    std::uint64_t up_to_bytes = UINT64_MAX;  ///< of the vector; ascending, the last one has no limit
  };
  Medium medium{};
  std::vector<Candidate> candidates;  ///< HiPS first
  std::vector<Choice> choices;

  /// The plan of a choice.
  [[nodiscard]] const PlanBuilder& builder(const Choice& choice) const {
    return *candidates[choice.candidate].builder;
  }
  /// The candidate that executes a call of `bytes`.
  [[nodiscard]] const Candidate& of(std::uint64_t bytes) const;
};

/// The cost of a call by a plan, apart from the medium.
struct Work {
  double latency_seconds = 0;     ///< of the chain of hops
  double bandwidth_seconds = 0;   ///< of the busiest link
  std::int64_t num_messages = 0;  ///< that a rank sends
  bool has_incast = false;        ///< several peers send to one NIC at the same time
};

/// The expected time of a call: the chain of hops, the messages that a rank handles, and the busiest link,
/// which takes longer with incast on wires.
double expected_seconds(Medium medium, const Work& work);

/// expected_seconds() of a call of `bytes` by a candidate.
///
/// Units    bytes of the whole vector, seconds.
double expected_seconds(const Topology& topology, Medium medium, const Candidate& candidate,
                        std::uint64_t bytes);

/// The plans among which select() chooses: HiPS; HiPS with rings if its meshes have incast; recursive
/// doubling, and recursive halving and doubling, which are excluded unless every pair of ranks is one hop
/// apart. With measured constants also HiPS with meshes where it has none and, on
/// up to 64 servers, a mesh of all ranks, double trees and, with up to 40 NICs in all, trees; and none is excluded.
///
/// Cost     the programs of one server for each; those of all for algorithm "trees", and where up to 64 servers share cables above
///          their switches that are slower than their NICs; of more, up to 1,024, those of the servers below one switch.
/// Errors   those of plan::make_builder().
Result<std::vector<Candidate>> candidates(const Topology& topology, bool measured = false);

/// The candidate that select() chooses for a call of `bytes`, by the cost at that size alone.
///
/// Cost     once the programs of the candidates.
std::size_t choose(const Topology& topology, Medium medium, std::span<const Candidate> candidates,
                   std::uint64_t bytes);

/// Chooses the cheapest plans by expected_seconds(), for users who name none. Depends on topology and medium
/// only, so all ranks and all runs choose the same plans.
///
/// Recursive doubling is chosen for up to 256 KiB only, as are trees where there are rings. `tried` are Candidate::tried, or empty.
///
/// Cost     the costs of some thirty sizes by the programs of one server.
/// Errors   those of plan::make_builder().
Result<Selection> select(const Topology& topology, Medium medium, std::span<const TriedTimes> tried = {});

}  // namespace hips::cost
