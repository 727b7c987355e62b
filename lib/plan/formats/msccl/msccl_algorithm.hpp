#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <hips/plan.hpp>

#include "lib/base/result.hpp"

namespace hips::plan {

/// A step of a thread block as MSCCL's files have it, and what the conversion finds out about it.
struct MscclStep {
  std::size_t line = 0;
  bool receives = false, sends = false, reduces = false, copies = false;
  bool stores = false;  ///< otherwise its sum is only passed on
  BlockRange chunks;
  Buffer from = Buffer::kOutput;  ///< what it reads; in an algorithm in place, the output stands for both
  std::int32_t dep_block = -1, dep_step = -1;

  std::vector<BlockIdx> cuts;           ///< where its pieces begin, ascending; the first chunk is the first
  std::int32_t scratch_row = -1;        ///< where a sum is stored that is only passed on
  const MscclStep* receiver = nullptr;  ///< the step that receives what this one sends
  const MscclStep* sender = nullptr;    ///< the step that sends what this one receives
  bool done = false;                    ///< it has a place in the order in which all steps can run
  /// The number, in its channel, of the first piece that is received, and of the first that is sent.
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
  std::vector<At> order;  ///< all steps, each after those that it waits for

  MscclStep& step(At at) { return blocks[at.first].steps[at.second]; }
};

struct MscclAlgorithm {
  std::string name;
  std::int64_t num_chunks = 0;
  std::int32_t num_channels = 1;
  bool in_place = false;
  std::vector<MscclGpu> gpus;
};

/// Converts an algorithm whose steps are in order to a plan.
///
/// Errors   kInvalidArgument: the two ends of a channel do not match; names the lines of both.
Result<Plan> plan_of(MscclAlgorithm& algorithm);

}  // namespace hips::plan
