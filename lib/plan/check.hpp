#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/collective.hpp"

namespace hips::plan {

struct CheckOptions {
  /// What every rank brings, and must hold in the end. Sections of reduce_scatter and allgather are what the
  /// plan's table of owners says. bcast and allgather are proved in place, whatever is asked below.
  Collective collective = Collective::kAllreduce;
  Rank root = 0;  ///< of bcast and reduce
  /// Elements of the vector: decides which blocks are empty, and so which messages are not sent. None: a
  /// vector in which no block with a share is empty.
  std::optional<std::int64_t> count = {};
  /// Segments of the longest message; shorter ones have fewer, all segments having the same size.
  std::int32_t segments = 1;
  /// Slots of each channel. What is proved holds for every larger number too.
  std::int32_t credits = 1;
  /// Which calls to prove: input and output the same memory, and two memories.
  bool in_place = true;
  bool out_of_place = true;
  /// Names ranks by their addresses and, where the plan says that it talks to neighbours only, proves that.
  const Topology* topology = nullptr;
  /// Findings of each kind that are worked out and told; the rest is only counted.
  std::size_t max_findings_per_kind = 4;
  /// Fan-in from which on a note is made.
  std::int64_t note_fan_in = 8;
  /// Values (a block of a rank) held at once, and block accesses of all steps together: beyond them the plan
  /// is "too large", so that no stored file exhausts memory or time.
  std::int64_t max_values = std::int64_t{1} << 27;
  std::int64_t max_accesses = std::int64_t{1} << 34;
};

enum class Severity : std::uint8_t { kError, kNote };

enum class FindingKind : std::uint8_t {
  kMalformed,    ///< a rank, block, source or dependency out of range, a block map that does not cover the
                 ///< vector
  kTooLarge,     ///< above CheckOptions::max_values or max_accesses
  kNoLink,       ///< a message between servers that are no neighbours, or by a NIC that does not lead there
  kUnmatched,    ///< a send without receive, a receive without send, two of one name, different block ranges
  kDeadlock,     ///< steps that wait for one another
  kOverlap,      ///< two accesses of one rank to the same elements, one of them a write, in no certain order
  kUnwritten,    ///< output or scratch that is read, or left, without having been written
  kLost,         ///< an input that is missing in an output
  kDoubled,      ///< an input that is in an output more than once
  kOwner,        ///< the owner map disagrees with what is computed, or with what the gather hands round
  kUnequalLoad,  ///< NIC directions do not carry the same
  kFanIn,        ///< many messages meet at one NIC in one stage
};
inline constexpr std::size_t kNumFindingKinds = 12;

/// "lost contribution", "deadlock", ...
const char* to_string(FindingKind kind);
constexpr Severity severity_of(FindingKind kind) {
  return kind >= FindingKind::kUnequalLoad ? Severity::kNote : Severity::kError;
}

/// Where in a plan; -1 for what does not apply.
struct Place {
  Rank rank = -1;
  StepId step = -1;
  std::int32_t lane = -1;
  std::int32_t stage = -1;
  std::int32_t round = -1;
  BlockIdx block = -1;
};

struct Finding {
  FindingKind kind = FindingKind::kMalformed;
  Place where;
  std::string text;                  ///< one sentence: what is wrong and where
  std::vector<std::string> example;  ///< the shortest counter-example, a line for each of its steps
};

struct CheckReport {
  std::vector<Finding> findings;         ///< errors first; at most max_findings_per_kind of a kind
  std::vector<std::int64_t> num_found =  ///< by kind, those not told included
      std::vector<std::int64_t>(kNumFindingKinds);
  Rank num_ranks = 0;
  BlockIdx num_blocks = 0;
  std::int64_t num_steps = 0;
  std::int64_t num_messages = 0;  ///< that are sent: those of empty blocks are not
  std::int64_t num_credits = 1, num_segments = 1;
  bool in_place = false, out_of_place = false;

  /// No error; there may be notes.
  [[nodiscard]] bool ok() const;
  [[nodiscard]] bool has(FindingKind kind) const { return num_found[static_cast<std::size_t>(kind)] > 0; }
  [[nodiscard]] std::int64_t num_errors() const;
  /// Nothing was refuted, but the plan is too large to be proved.
  [[nodiscard]] bool only_too_large() const {
    return has(FindingKind::kTooLarge) &&
           num_errors() == num_found[static_cast<std::size_t>(FindingKind::kTooLarge)];
  }
};

/// Proves that a plan reduces every input exactly once into every block of every rank's output, and that it
/// ends; or says what is wrong, where, with the shortest counter-example.
///
/// Hazards and deadlock are decided on the happens-before order and not on one run:
///
///   a step's segment waits for   what `after` demands of earlier steps of its rank (plan.hpp, "Order");
///                                its messages;  the segment before it in its step
///   a send waits besides for     the send before it in its channel;
///                                the taking of the message `credits` places before it (plan.hpp, "Channels")
///   a send's source is read      until its local completion, which only `after` of the same rank can wait
///   for:
///                                that the message was taken elsewhere does not prove it
///
/// Deadlock is a cycle in this order. Overlap is decided without the credits' edges, because more credits
/// give less order. Where it is free of both, every run computes the same, and one run with sets of ranks for
/// values shows what.
///
/// Shapes   any plan, also one read from a file that nobody checked.
/// Cost     time and memory grow with steps + messages + block accesses; 1,024 servers take seconds.
/// Threads  pure; any thread.
/// Errors   all are findings; nothing is thrown but std::bad_alloc.
/// Example  CheckReport report = check(build_all(*builder), {.topology = &topology});
CheckReport check(const Plan& plan, const CheckOptions& options = {});

/// Says why check() would find a plan too large, before the programs of all ranks are made; "" where it would
/// not, or where only the programs tell.
///
/// Cost     two programs.
/// Errors   none.
/// Example  too_large_to_build(*builder) == "20000 ranks with 40000 blocks each; the checker holds ..."
std::string too_large_to_build(const PlanBuilder& builder, const CheckOptions& options = {});

}  // namespace hips::plan
