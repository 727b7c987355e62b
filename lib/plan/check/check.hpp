#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/collective.hpp"
#include "lib/plan/plan_builder.hpp"

namespace hips::plan {

struct CheckOptions {
  /// Decides what every rank contributes, and must have in the end. The sections of reduce_scatter and
  /// allgather come from the plan's table of owners. bcast and allgather are proved in place, regardless of
  /// the options below.
  Collective collective = Collective::kAllreduce;
  Rank root = 0;  ///< of bcast and reduce
  /// Elements of the vector. Decides which blocks are empty, and so which messages are not sent. None: a
  /// vector in which no block with a share is empty.
  std::optional<std::int64_t> count = {};
  /// Segments of the longest message. Shorter messages have fewer, as all segments have the same size.
  std::int32_t segments = 1;
  /// Slots of each channel. A proof also holds for every larger number.
  std::int32_t credits = 1;
  /// Which calls to prove: with one buffer for input and output, and with two.
  bool in_place = true;
  bool out_of_place = true;
  /// Names ranks by their addresses. If the plan claims to use neighbours only, proves that.
  const Topology* topology = nullptr;
  /// Findings of each kind to report with details; the others are only counted.
  std::size_t max_findings_per_kind = 4;
  /// The smallest fan-in to report as a note.
  std::int64_t note_fan_in = 8;
  /// Limits for values (a block of a rank) held at once, and for block accesses of all steps. A plan beyond
  /// them is "too large", so that no stored file exhausts memory or time.
  std::int64_t max_values = std::int64_t{1} << 27;
  std::int64_t max_accesses = std::int64_t{1} << 34;
};

enum class Severity : std::uint8_t { kError, kNote };

enum class FindingKind : std::uint8_t {
  kMalformed,    ///< a rank, block, source or dependency out of range, a block map that does not cover the
                 ///< vector
  kTooLarge,     ///< above CheckOptions::max_values or max_accesses
  kNoLink,       ///< a message between servers that are not neighbours, or by a NIC that does not lead there
  kUnmatched,    ///< a send without receive, a receive without send, two of one name, different block ranges
  kDeadlock,     ///< steps that wait for one another
  kOverlap,      ///< two unordered accesses of one rank to the same elements, at least one of them a write
  kUnwritten,    ///< output or scratch that is read, or left, without having been written
  kLost,         ///< an input that is missing in an output
  kDoubled,      ///< an input that is in an output more than once
  kOwner,        ///< the owner map disagrees with what is computed, or with what the gather sends
  kUnequalLoad,  ///< NIC directions carry different amounts
  kFanIn,        ///< many messages arrive at one NIC in one stage
};
inline constexpr std::size_t kNumFindingKinds = 12;

/// "lost contribution", "deadlock", ...
const char* to_string(FindingKind kind);
constexpr Severity severity_of(FindingKind kind) {
  return kind >= FindingKind::kUnequalLoad ? Severity::kNote : Severity::kError;
}

/// A place in a plan; -1 for what does not apply.
struct PlanPlace {
  Rank rank = -1;
  StepId step = -1;
  std::int32_t lane = -1;
  std::int32_t stage = -1;
  std::int32_t round = -1;
  BlockIdx block = -1;
};

struct Finding {
  FindingKind kind = FindingKind::kMalformed;
  PlanPlace where;
  std::string text;                  ///< one sentence: what is wrong and where
  std::vector<std::string> example;  ///< the shortest counter-example, one line for each step
};

struct CheckReport {
  std::vector<Finding> findings;         ///< errors first; at most max_findings_per_kind of a kind
  std::vector<std::int64_t> num_found =  ///< by kind, including those that are only counted
      std::vector<std::int64_t>(kNumFindingKinds);
  Rank num_ranks = 0;
  BlockIdx num_blocks = 0;
  std::int64_t num_steps = 0;
  std::int64_t num_messages = 0;  ///< without those of empty blocks, which are not sent
  std::int64_t num_credits = 1, num_segments = 1;
  bool in_place = false, out_of_place = false;

  /// No error; there may be notes.
  [[nodiscard]] bool ok() const;
  [[nodiscard]] bool has(FindingKind kind) const { return num_found[static_cast<std::size_t>(kind)] > 0; }
  [[nodiscard]] std::int64_t num_errors() const;
  /// No error was found, but the plan is too large to prove.
  [[nodiscard]] bool only_too_large() const {
    return has(FindingKind::kTooLarge) &&
           num_errors() == num_found[static_cast<std::size_t>(FindingKind::kTooLarge)];
  }
};

/// Proves that a plan terminates and reduces every input exactly once into every block of every rank's
/// output. Otherwise reports what is wrong and where, with the shortest counter-example.
///
/// Hazards and deadlocks are decided on the happens-before order, not on one run:
///
///   a step's segment waits for   the segments of earlier steps that `after` requires (plan.hpp, "Order");
///                                its messages; the segment before it in its step
///   a send also waits for        the send before it in its channel;
///                                the receipt of the message `credits` places before it (plan.hpp,
///                                "Channels")
///   a send's source is read      until its local completion; only `after` of the same rank can
///                                wait for that; the receipt of the message elsewhere does not prove it
///
/// A deadlock is a cycle in this order. Overlaps are decided without the edges of credits, because more
/// credits give less order. A plan without both computes the same in every run, and one run with sets of
/// ranks for values shows what.
///
/// Shapes   any plan, also one from an unchecked file.
/// Cost     time and memory grow with steps + messages + block accesses; 1,024 servers take seconds.
/// Threads  pure; any thread.
/// Errors   all are findings; only std::bad_alloc is thrown.
/// Example  CheckReport report = check(build_all(*builder), {.topology = &topology});
CheckReport check(const Plan& plan, const CheckOptions& options = {});

/// Why check() would find a plan too large, before the programs of all ranks are made; "" if it would not, or
/// if only the programs can show it.
///
/// Cost     two programs.
/// Errors   none.
/// Example  too_large_to_build(*builder) == "20000 ranks with 40000 blocks each; the checker holds ..."
std::string too_large_to_build(const PlanBuilder& builder, const CheckOptions& options = {});

}  // namespace hips::plan
