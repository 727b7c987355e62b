#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <hips/plan.hpp>

#include "lib/base/result.hpp"

namespace hips::plan {

/// A step of a thread block, as MSCCL's files have it, and what is found out of it beside.
struct MscclStep {
  std::size_t line = 0;
  bool receives = false, sends = false, reduces = false, copies = false;
  bool stores = false;  ///< else a sum that is only passed on
  BlockRange chunks;
  Buffer from = Buffer::kOutput;  ///< what is read here; of an algorithm in place the output stands for both
  std::int32_t dep_block = -1, dep_step = -1;

  std::vector<BlockIdx> cuts;        ///< where pieces of it begin, ascending, the first chunk among them
  std::int32_t scratch_row = -1;     ///< where a sum stands that is only passed on
  const MscclStep* taker = nullptr;  ///< the step that receives what this one sends
  const MscclStep* giver = nullptr;  ///< the step that sends what this one receives
  bool done = false;                 ///< it has its place in the order in which all steps can run
  /// Number of the first piece that is received, and of the first that is sent, among those of their channel.
  std::int32_t receive_round = 0, send_round = 0;
};

struct MscclBlock {
  Rank send = -1, recv = -1;
  std::int32_t lane = 0;
  std::vector<MscclStep> steps;
};

struct MscclGpu {
  using At = std::pair<std::int32_t, std::int32_t>;  ///< thread block, step
  std::vector<MscclBlock> blocks;
  std::vector<At> order;  ///< of all steps: each after those that it waits for

  MscclStep& step(At at) { return blocks[at.first].steps[at.second]; }
};

struct MscclAlgorithm {
  std::string name;
  std::int64_t num_chunks = 0;
  std::int32_t num_channels = 1;
  bool in_place = false;
  std::vector<MscclGpu> gpus;
};

/// Makes a plan of an algorithm whose steps are in order.
///
/// Errors   kInvalidArgument: ends of a channel that do not fit each other, with the lines of both.
Result<Plan> plan_of(MscclAlgorithm& algorithm);

}  // namespace hips::plan
