#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <hips/export.hpp>
#include <hips/status.hpp>
#include <hips/topology.hpp>

namespace hips {

using BlockIdx = std::int64_t;
using StepId = std::int32_t;

/// Where the elements of a step are. Input and output share one index space: block b of both means the same
/// elements, and the same memory in an in-place call. Scratch has an index space of its own.
enum class Buffer : std::uint8_t { kInput, kOutput, kScratch };

/// Consecutive blocks [first, first + count).
struct BlockRange {
  BlockIdx first = 0;
  BlockIdx count = 0;
  [[nodiscard]] BlockIdx end() const { return first + count; }
  friend bool operator==(const BlockRange&, const BlockRange&) = default;
};

struct BufferRange {
  Buffer buffer = Buffer::kOutput;
  BlockRange blocks;
  friend bool operator==(const BufferRange&, const BufferRange&) = default;
};

/// A reduced fraction, 0 <= num/den <= 1.
struct Fraction {
  std::int64_t num = 0;
  std::int64_t den = 1;
  friend bool operator==(const Fraction&, const Fraction&) = default;
};

/// How a vector of any number of elements is divided into the plan's blocks.
///
/// A part holds consecutive blocks and the share [begin, end) of the vector. Lanes of equal shares form one
/// part, so that the boundary of a block is floor(block * count / num_blocks). Lanes of unequal shares are
/// one part each: first the lane's start is rounded down, then the boundaries of the blocks inside it.
struct HIPS_EXPORT BlockMap {
  struct Part {
    BlockRange blocks;
    Fraction begin, end;
    friend bool operator==(const Part&, const Part&) = default;
  };
  std::vector<Part> parts;              ///< ascending; begin of the first is 0, end of the last is 1
  BlockIdx num_blocks = 0;              ///< of input and output
  std::int64_t num_scratch_blocks = 0;  ///< scratch block s has the size of block s % num_blocks

  /// First element of block `block` in a vector of `count` elements; boundary(num_blocks) == count.
  /// It does not overflow: products have 128 bits.
  [[nodiscard]] std::int64_t boundary(BlockIdx block, std::int64_t count) const;
  /// Elements in a range of blocks.
  [[nodiscard]] std::int64_t elements(BlockRange range, std::int64_t count) const {
    return boundary(range.end(), count) - boundary(range.first, count);
  }
  friend bool operator==(const BlockMap&, const BlockMap&) = default;
};

enum class Phase : std::uint8_t { kScatter, kGather };

enum class StepOp : std::uint8_t {
  kSend,    ///< sends srcs[0], a local range, to `peer` over `rail`
  kReduce,  ///< dst = reduction of srcs in the order given, left to right, element by element
  kCopy,    ///< dst = srcs[0]
};

/// An operand of a step: a local range, or a message from a peer.
struct Source {
  enum class Kind : std::uint8_t { kLocal, kMessage };
  Kind kind = Kind::kLocal;
  BufferRange local;  ///< kLocal: same number of elements as the step's dst
  Rank peer = -1;  ///< kMessage: the sender; the message has the lane, stage and round of the receiving step
  Rail rail = kNoRail;  ///< kMessage: the NIC by which it arrives
  friend bool operator==(const Source&, const Source&) = default;
};

/// One transfer or reduction of one rank.
///
/// A message is named by (sender, receiver, lane, stage, round). One step with that name sends it, and one
/// source of one kReduce or kCopy step receives it. Both ends name the same range of blocks.
///
/// **Order.** A step processes its range in ascending order, segment by segment. A segment is a fixed number
/// of elements, counted from the start of the step's range, the same on all ranks. `after` lists earlier
/// steps of the same rank. If B comes after A and their ranges (dst of kReduce and kCopy, source of kSend)
/// overlap in one index space, B's segment over elements X waits until A has finished A's part of X. If they
/// do not overlap, or one of them is in scratch, B waits for all of A. A send has finished a segment when the
/// source may be overwritten (local completion), the other operations when dst is written.
///
/// **Channels.** All messages of a rank to one peer in one lane form a channel. They are sent in the order of
/// their steps in the program, segments ascending; empty messages are not sent. The receiver has `credits`
/// slots per channel and returns them in the same order. A sender without a credit waits.
struct Step {
  StepOp op = StepOp::kSend;
  Phase phase = Phase::kScatter;
  std::int32_t lane = 0;
  std::int32_t stage = 0;  ///< of the lane: 0..L-1 scatter, L..2L-1 gather for a lane of L levels
  std::int32_t level = 0;  ///< of the topology; -1 in plans that have no levels
  std::int32_t round = 0;  ///< within the stage: 0 in mesh and PS, 0..n-2 in a ring
  Rank peer = -1;          ///< kSend only
  Rail rail = kNoRail;     ///< kSend only
  BufferRange dst;         ///< kSend: the blocks that are sent, as the receiver names them
  std::int32_t first_source = 0, num_sources = 0;  ///< in Program::sources
  std::int32_t first_dep = 0, num_deps = 0;        ///< in Program::deps
  friend bool operator==(const Step&, const Step&) = default;
};

/// The steps of one rank, in an order in which they could run one after the other.
struct Program {
  Rank rank = -1;
  std::vector<Step> steps;
  std::vector<Source> sources;    ///< pooled: a step's are [first_source, first_source + num_sources)
  std::vector<StepId> deps;       ///< pooled `after` lists; steps may share a list
  std::vector<BlockRange> owned;  ///< blocks whose final value this rank computes, ascending

  [[nodiscard]] std::span<const Source> sources_of(const Step& step) const {
    return {sources.data() + step.first_source, static_cast<std::size_t>(step.num_sources)};
  }
  [[nodiscard]] std::span<const StepId> after(const Step& step) const {
    return {deps.data() + step.first_dep, static_cast<std::size_t>(step.num_deps)};
  }
  friend bool operator==(const Program&, const Program&) = default;
};

enum class Pattern : std::uint8_t { kMesh, kRing, kPs };

/// One (position, phase) of a lane.
struct StageInfo {
  Phase phase = Phase::kScatter;
  std::int32_t level = 0;
  Pattern pattern = Pattern::kMesh;
  std::int32_t num_leaders = 0;  ///< kPs: P; otherwise the radix
  friend bool operator==(const StageInfo&, const StageInfo&) = default;
};

/// A share of the vector with its own order of levels and its own rail in each level.
struct LaneInfo {
  BlockRange blocks;
  std::int32_t direction = +1;  ///< of rings: +1 or -1
  std::vector<StageInfo> stages;
  friend bool operator==(const LaneInfo&, const LaneInfo&) = default;
};

/// The part of a plan that all ranks have in common. The plan is the shape and the `Program` of each rank.
struct PlanShape {
  std::string algorithm;    ///< "hips", "flat-ring", ...
  std::string description;  ///< one line: "HiPS, 2 lanes, mesh on both levels"
  Rank num_ranks = 0;
  BlockMap blocks;
  std::vector<LaneInfo> lanes;
  std::int32_t num_steps = 0;    ///< longest chain of messages, one after the other
  bool neighbours_only = false;  ///< every message is one hop
  friend bool operator==(const PlanShape&, const PlanShape&) = default;
};

/// A plan with the program of every rank. Tools and tests build it; a stored plan is read as one.
struct Plan {
  PlanShape shape;
  std::vector<Program> programs;
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// The patterns of one level, for its scatter and its gather.
struct LevelPattern {
  Pattern scatter = Pattern::kMesh;
  Pattern gather = Pattern::kMesh;
  std::int32_t num_leaders = 0;  ///< kPs: leaders per group, 1..radix
  friend bool operator==(const LevelPattern&, const LevelPattern&) = default;
};

}  // namespace hips
