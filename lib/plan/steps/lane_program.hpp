#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <hips/plan.hpp>

#include "lib/pattern/ps.hpp"
#include "lib/pattern/ring.hpp"
#include "lib/plan/steps/peer_link.hpp"
#include "lib/plan/steps/program_writer.hpp"

namespace hips::plan {

/// The group with which a rank exchanges at one position of a lane, seen from that rank.
struct Position {
  std::int32_t level = -1;  ///< of the topology; -1 in flat plans
  std::int64_t index = 0;   ///< this rank's place in the group; in a hierarchy its digit
  Pattern scatter = Pattern::kMesh;
  Pattern gather = Pattern::kMesh;
  pattern::Ps leaders;                         ///< its size is the group's; mesh and ring: all members lead
  std::int32_t direction = 1;                  ///< of rings
  std::function<PeerLink(std::int64_t)> link;  ///< to the member with that place

  [[nodiscard]] std::int64_t size() const { return leaders.size; }
  [[nodiscard]] pattern::Ring ring() const { return {leaders.size, direction}; }
};

/// The program of one rank in one lane of a hierarchy: scatter through the positions, gather back.
///
/// With P_i the leaders at position i, u_i(r) the index of r among them and w_i = P_{i+1} * P_{i+2} * ...:
///
///   R_i(r) = [base + sum_{j<=i} u_j(r) * w_j, + w_i)      R_{-1} is the whole lane
///
///   scatter at i: the group starts with partial sums of R_{i-1}; its leaders end with R_i each
///   gather at i:  the leaders start with the final R_i; the group ends with R_{i-1}
///
/// A rank that does not lead at position i is idle at later positions.
///
/// Stages   scatter at position i is stage i, gather at position i is stage 2L-1-i of L positions.
/// Order    mesh and PS reduce by place in the group, a ring's piece j in the order j+1, j+2, ..., j.
/// Cost     steps and sources: the sum of the groups' sizes; dependency lists: L times that at most.
/// Threads  none: use one object from one thread.
/// Source   Geng et al., "HiPS", NetAI 2018, doi:10.1145/3229543.3229544.
class LaneProgram {
 public:
  /// `positions` and `writer` must outlive this object. `base` is the lane's first block.
  LaneProgram(std::int32_t lane, BlockIdx base, const std::vector<Position>& positions,
              ProgramWriter& writer);

  [[nodiscard]] std::int32_t num_stages() const { return 2 * num_positions(); }

  /// Appends the steps of a stage. Stages are emitted in ascending order, each once.
  void emit_stage(std::int32_t stage);

  /// R_last if the rank leads at all positions; otherwise empty.
  [[nodiscard]] BlockRange owned() const;

 private:
  [[nodiscard]] std::int32_t num_positions() const { return static_cast<std::int32_t>(positions_.size()); }
  [[nodiscard]] BlockRange piece(std::int32_t position, std::int64_t leader_index) const;
  [[nodiscard]] Step step(StepOp op, Phase phase, std::int32_t position, std::int64_t round,
                          BlockRange dst) const;
  [[nodiscard]] Source local(BlockRange blocks) const { return {Source::Kind::kLocal, {current_, blocks}}; }
  StepId send(Phase phase, std::int32_t position, std::int64_t round, std::int64_t to, BlockRange blocks,
              ProgramWriter::After after);

  void scatter_direct(std::int32_t position);
  void scatter_ring(std::int32_t position);
  void gather_direct(std::int32_t position);
  void gather_ring(std::int32_t position);

  std::int32_t lane_;
  const std::vector<Position>& positions_;
  ProgramWriter& writer_;
  std::vector<BlockRange> live_;      ///< live_[i] = R_{i-1}
  std::vector<std::int64_t> weight_;  ///< w_i
  std::int32_t num_active_ = 0;       ///< positions at which this rank is not idle

  Buffer current_ = Buffer::kInput;        ///< where the rank's partial sums are
  std::vector<StepId> ready_;              ///< the steps that compute them
  std::vector<std::vector<StepId>> sent_;  ///< [position][leader index]: the scatter's send of that piece
};

}  // namespace hips::plan
