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

/// Where the elements of a step live. Input and output share one index space (block b of the input and block
/// b of the output are the same elements, and the same memory in an in-place call); scratch has its own.
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

/// How a vector of any number of elements is cut into the plan's blocks.
///
/// A part holds consecutive blocks and the share [begin, end) of the vector. Lanes of equal shares make one
/// part together, so that a block's boundary is floor(block * count / num_blocks); lanes of unequal shares
/// are a part each: the lane's start is floored, then the blocks inside it.
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
  /// Never overflows: 128-bit products.
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
  kReduce,  ///< dst = fold of srcs in the order given, left to right, element by element
  kCopy,    ///< dst = srcs[0]
};

/// An operand of a step: a local range, or the message of a peer.
struct Source {
  enum class Kind : std::uint8_t { kLocal, kMessage };
  Kind kind = Kind::kLocal;
  BufferRange local;  ///< kLocal: same number of elements as the step's dst
  Rank peer = -1;     ///< kMessage: who sends it; it has the lane, stage and round of the step that takes it
  Rail rail = kNoRail;  ///< kMessage: the NIC it arrives by
  friend bool operator==(const Source&, const Source&) = default;
};

/// One transfer or reduction of one rank.
///
/// A message is named by (sender, receiver, lane, stage, round); a step with that name sends it, and one
/// source of one kReduce or kCopy step takes it. Both ends name the same range of blocks.
///
/// **Order.** A step works through its range in ascending order, segment by segment; a segment is a fixed
/// number of elements counted from the start of the step's range, the same on all ranks. `after` lists
/// earlier steps of the same rank. Where B comes after A and their ranges (dst of kReduce and kCopy, source
/// of kSend) overlap in one index space, B's segment over elements X waits until A has finished A's part of
/// X; where they do not overlap, or either is in scratch, B waits for all of A. A send has finished a
/// segment when the source may be overwritten (local completion), the others when dst is written.
///
/// **Channels.** All messages of a rank to one peer in one lane form a channel. They are sent in the order in
/// which their steps stand in the program, segments ascending, empty messages left out. The receiver has
/// `credits` slots per channel, gives them back in the same order, and a sender with no credit waits.
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

/// What one rank does. Steps stand in an order in which they could run one after the other.
struct Program {
  Rank rank = -1;
  std::vector<Step> steps;
  std::vector<Source> sources;    ///< pooled: a step's are [first_source, first_source + num_sources)
  std::vector<StepId> deps;       ///< pooled `after` lists; steps may share one
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

/// A share of the vector with its own order of levels and its own rail in each.
struct LaneInfo {
  BlockRange blocks;
  std::int32_t direction = +1;  ///< of rings: +1 or -1
  std::vector<StageInfo> stages;
  friend bool operator==(const LaneInfo&, const LaneInfo&) = default;
};

/// What all ranks have in common; with `Program` of each rank it is the plan.
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

/// A plan with the program of every rank; only tools make it.
struct Plan {
  PlanShape shape;
  std::vector<Program> programs;
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// Patterns of one level: of its scatter and of its gather.
struct LevelPattern {
  Pattern scatter = Pattern::kMesh;
  Pattern gather = Pattern::kMesh;
  std::int32_t num_leaders = 0;  ///< kPs: leaders per group, 1..radix
  friend bool operator==(const LevelPattern&, const LevelPattern&) = default;
};

/// What to build.
struct PlanRequest {
  std::string algorithm = "hips";
  /// Empty: mesh on switches, ring on cables. One entry: for every level. Else one entry per level, the node
  /// level left out.
  std::vector<LevelPattern> patterns{};
  /// flat-ps: number of servers that lead. 0: one.
  std::int32_t num_leaders = 0;
  /// flat-ring: over how many NICs of each server. 0: all that the topology allows.
  std::int32_t num_rings = 0;
};

/// A builder: makes the common shape once and the program of any one rank from arithmetic alone.
///
/// Cost     shape: K * levels. program: K * sum of radices for HiPS, the number of its messages for flat
///          algorithms; never the number of ranks of the whole plan.
/// Threads  const calls from any thread.
class PlanBuilder {
 public:
  virtual ~PlanBuilder() = default;
  [[nodiscard]] virtual const PlanShape& shape() const = 0;
  /// Program of `rank`, 0 <= rank < shape().num_ranks.
  [[nodiscard]] virtual Program program(Rank rank) const = 0;
};

}  // namespace hips
