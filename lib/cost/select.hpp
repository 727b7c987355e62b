#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::cost {

/// What a rank spends on a message beside the wire where a NIC or memory carries it: posting it, its
/// completion, its arrival and the credit for it. Of the order of a microsecond on every NIC; where
/// crossovers lie depends on it only linearly.
inline constexpr double kMessageSeconds = 0.5e-6;
/// The same through the kernel's sockets: system calls at both ends and a reader to wake. Where plans of few
/// messages and of few bytes cross at 2 to 9 ranks says 1.3 to 2.6 us beside the default rate of 100 Gbit/s.
inline constexpr double kSocketMessageSeconds = 2e-6;

/// What lies between the ranks of a plan, as far as it decides between plans.
struct Medium {
  bool has_links = true;  ///< NICs: a link into which several peers send at once loses time
  double message_seconds = kMessageSeconds;

  static const Medium kWires;          ///< NICs that ranks drive themselves
  static const Medium kMemory;         ///< of one host, which has no links
  static const Medium kSockets;        ///< NICs that the kernel drives
  static const Medium kSocketsOnHost;  ///< the kernel, between ranks of one host
};
inline constexpr Medium Medium::kWires{};
inline constexpr Medium Medium::kMemory{.has_links = false};
inline constexpr Medium Medium::kSockets{.message_seconds = kSocketMessageSeconds};
inline constexpr Medium Medium::kSocketsOnHost{.has_links = false, .message_seconds = kSocketMessageSeconds};

/// A plan that could carry a call.
struct Candidate {
  std::string name;  ///< "hips", "hips, rings", "recursive-doubling", "halving-doubling"
  std::unique_ptr<PlanBuilder> builder;
  std::vector<Program> programs;  ///< of the ranks of one of the busiest servers
  std::int64_t num_messages = 0;  ///< that the busiest rank sends
  bool senders_meet = false;      ///< several peers send to one NIC at the same time
  std::string excluded;           ///< why it is not taken whatever it costs; empty: it may be
};

/// Plans that share the sizes among them: small vectors want few messages, large ones few bytes, and
/// on wires no two senders at one NIC.
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
  /// The candidate that carries a call of `bytes`.
  [[nodiscard]] const Candidate& of(std::uint64_t bytes) const;
};

/// What a call costs a plan, apart from the medium.
struct Work {
  double latency_seconds = 0;     ///< of the chain of hops
  double bandwidth_seconds = 0;   ///< of the busiest link
  std::int64_t num_messages = 0;  ///< that a rank sends
  bool senders_meet = false;      ///< several peers send to one NIC at the same time
};

/// What a call is expected to take: the chain of hops, the messages that a rank has to handle, and the
/// busiest link, which takes longer where senders meet on wires.
double expected_seconds(Medium medium, const Work& work);

/// expected_seconds() of a call of `bytes` by a candidate.
///
/// Units    bytes of the whole vector, seconds.
double expected_seconds(const Topology& topology, Medium medium, const Candidate& candidate,
                        std::uint64_t bytes);

/// The plans among which select() chooses, HiPS first: HiPS; HiPS with rings where its meshes let senders
/// meet; recursive doubling, and recursive halving and doubling, which are excluded where not every pair of
/// ranks is one hop apart.
///
/// Cost     the programs of one server for each.
/// Errors   those of plan::make_builder().
Result<std::vector<Candidate>> candidates(const Topology& topology);

/// The candidate that select() has for a call of `bytes`, priced for that size alone.
///
/// Cost     once the programs of the candidates.
std::size_t choose(const Topology& topology, Medium medium, std::span<const Candidate> candidates,
                   std::uint64_t bytes);

/// The cheapest plans where nobody named one, by expected_seconds(). A function of topology and medium alone,
/// so that all ranks choose alike, and every run as the last.
///
/// Of candidates(), recursive doubling for up to 256 KiB.
///
/// Cost     prices some thirty sizes by the programs of one server.
/// Errors   those of plan::make_builder().
Result<Selection> select(const Topology& topology, Medium medium);

}  // namespace hips::cost
