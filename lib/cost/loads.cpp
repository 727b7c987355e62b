#include "lib/cost/loads.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "topology/walk.hpp"

namespace hips::cost {

namespace {

/// Loads are stored by stage, so an invalid stage of a stored plan must not exhaust the memory.
constexpr std::int32_t kMaxStages = 1 << 16;

void check_shape(const Topology& topology, const PlanShape& shape) {
  if (shape.num_ranks == topology.num_ranks()) return;
  throw Error(
      Status::error(Code::kInvalidArgument,
                    fmt::format("cost: the plan \"{}\" is for {} ranks, but the topology {} has {}",
                                shape.algorithm, shape.num_ranks, topology.spec, topology.num_ranks())));
}

/// Adds the traffic of a stage to the total.
void add_to(Traffic& sum, const Traffic& part) {
  sum.out_bytes += part.out_bytes;
  sum.in_bytes += part.in_bytes;
}

}  // namespace

LoadCounter::LoadCounter(const Topology& topology, const PlanShape& shape, Volume volume)
    : topology_(topology), shape_(shape), volume_(volume), all_servers_(true) {
  check_shape(topology, shape);
  loads_.num_servers = topology.num_servers();
  loads_.num_rails = topology.num_rails;
  loads_.tiers = topology::tiers(topology);
  for (BlockIdx block = 0; block <= shape.blocks.num_blocks; ++block) {
    boundaries_.push_back(shape.blocks.boundary(block, volume.count));
  }
}

LoadCounter::LoadCounter(const Topology& topology, const PlanShape& shape, Volume volume, std::int64_t server)
    : topology_(topology), shape_(shape), volume_(volume), all_servers_(false) {
  check_shape(topology, shape);
  loads_.first_server = server;
  loads_.num_servers = 1;
  loads_.num_rails = topology.num_rails;
  loads_.complete = shape.neighbours_only || !topology.servers_relay;
}

Loads::Stage LoadCounter::empty_stage() const {
  Loads::Stage stage;
  stage.nics.resize(static_cast<std::size_t>(loads_.num_servers * loads_.num_rails));
  for (const topology::Tier& tier : loads_.tiers)
    stage.tiers.emplace_back(static_cast<std::size_t>(tier.count));
  return stage;
}

Loads::Stage& LoadCounter::stage(std::int32_t index) {
  while (loads_.num_stages() <= index) loads_.stages.push_back(empty_stage());
  return loads_.stages[static_cast<std::size_t>(index)];
}

std::int64_t LoadCounter::elements(BlockRange range) const {
  if (boundaries_.empty() || range.first < 0 || range.end() > shape_.blocks.num_blocks) {
    return shape_.blocks.elements(range, volume_.count);
  }
  return boundaries_[static_cast<std::size_t>(range.end())] -
         boundaries_[static_cast<std::size_t>(range.first)];
}

std::int64_t LoadCounter::bytes(const BufferRange& range) const {
  if (range.buffer != Buffer::kScratch) return elements(range.blocks) * volume_.element_bytes;
  const BlockIdx num_blocks = shape_.blocks.num_blocks;
  // Scratch repeats the sizes of the vector's blocks. A range of it is a number of whole vectors and a rest,
  // which may wrap.
  if (range.blocks.count == 0 || num_blocks == 0) return 0;
  std::int64_t total = range.blocks.count / num_blocks * volume_.count;
  const BlockIdx first = range.blocks.first % num_blocks;
  const BlockIdx rest = range.blocks.count % num_blocks;
  const BlockIdx before_wrap = std::min(rest, num_blocks - first);
  total += elements({first, before_wrap});
  total += elements({0, rest - before_wrap});
  return total * volume_.element_bytes;
}

void LoadCounter::check_rank(Rank rank, const char* what) const {
  if (rank >= 0 && rank < shape_.num_ranks) return;
  throw Error(Status::error(
      Code::kInvalidArgument,
      fmt::format("cost: {} is rank {}, which is out of range [0, {}]", what, rank, shape_.num_ranks - 1)));
}

void LoadCounter::check_step(const Program& program, const Step& step) const {
  const auto reject = [&](const char* what, std::int64_t value, std::int64_t end) {
    throw Error(Status::error(Code::kInvalidArgument,
                              fmt::format("cost: rank {} has invalid {} {} on {} (valid: 0 to {})",
                                          program.rank, what, value, topology_.spec, end - 1)));
  };
  const auto check_rail = [&](Rail rail) {
    if (rail != kNoRail && (rail < 0 || rail >= topology_.num_rails))
      reject("NIC", rail, topology_.num_rails);
  };
  if (step.stage < 0 || step.stage >= kMaxStages) reject("stage", step.stage, kMaxStages);
  if (step.op == StepOp::kSend) check_rail(step.rail);
  for (const Source& source : program.sources_of(step)) {
    if (source.kind == Source::Kind::kMessage) check_rail(source.rail);
  }
}

void LoadCounter::add_send(Rank from, const Step& step) {
  check_rank(step.peer, "the receiver of a message");
  const std::int64_t size = bytes(step.dst);
  if (size == 0) return;
  const std::int64_t local = topology_.ranks_per_server;
  topology::walk(topology_, from, step.peer, step.rail, [&](const Hop& hop) {
    if (hop.out == kNoRail) return;
    if (hop.from < 0 || hop.to < 0) {
      throw Error(Status::error(
          Code::kInvalidArgument,
          fmt::format("cost: rank {} sends to rank {} over a server that is not in use", from, step.peer)));
    }
    const std::int64_t out_server = hop.from / local;
    const std::int64_t in_server = hop.to / local;
    Loads::Stage& here = stage(step.stage);
    if (!all_servers_) {
      // add_arrivals() counts the receiving side.
      if (out_server == loads_.first_server) here.nics[loads_.index(out_server, hop.out)].out_bytes += size;
      return;
    }
    here.nics[loads_.index(out_server, hop.out)].out_bytes += size;
    here.nics[loads_.index(in_server, hop.in)].in_bytes += size;
    const Hop servers{.from = static_cast<Rank>(out_server),
                      .to = static_cast<Rank>(in_server),
                      .out = hop.out,
                      .in = hop.in};
    topology::visit_tiers(topology_, loads_.tiers, servers,
                          [&](std::size_t tier, std::size_t index, bool out) {
                            Traffic& traffic = here.tiers[tier][index];
                            (out ? traffic.out_bytes : traffic.in_bytes) += size;
                          });
  });
}

void LoadCounter::add_arrivals(const Program& program, const Step& step) {
  const std::int64_t size = bytes(step.dst);
  if (size == 0) return;
  const std::int64_t local = topology_.ranks_per_server;
  for (const Source& source : program.sources_of(step)) {
    if (source.kind != Source::Kind::kMessage) continue;
    check_rank(source.peer, "the sender of a message");
    if (source.peer / local == program.rank / local) continue;
    Rail rail = source.rail;
    if (rail == kNoRail) {
      topology::walk(topology_, source.peer, program.rank, kNoRail, [&](const Hop& hop) { rail = hop.in; });
    }
    stage(step.stage).nics[loads_.index(program.rank / local, rail)].in_bytes += size;
  }
}

void LoadCounter::add(const Program& program) {
  check_rank(program.rank, "a program");
  if (!all_servers_ && program.rank / topology_.ranks_per_server != loads_.first_server) {
    throw Error(Status::error(Code::kInvalidArgument,
                              fmt::format("cost: rank {} is not on server {}, whose NICs are counted",
                                          program.rank, loads_.first_server)));
  }
  std::int64_t reduced = 0;
  for (const Step& step : program.steps) {
    check_step(program, step);
    if (step.op == StepOp::kSend) {
      add_send(program.rank, step);
      continue;
    }
    if (step.op == StepOp::kReduce && step.num_sources > 1)
      reduced += (step.num_sources - 1) * bytes(step.dst);
    if (!all_servers_) add_arrivals(program, step);
  }
  loads_.reduced_bytes = std::max(loads_.reduced_bytes, reduced);
}

Loads LoadCounter::take() {
  loads_.total = empty_stage();
  for (const Loads::Stage& stage : loads_.stages) {
    for (std::size_t i = 0; i < stage.nics.size(); ++i) add_to(loads_.total.nics[i], stage.nics[i]);
    for (std::size_t t = 0; t < stage.tiers.size(); ++t) {
      for (std::size_t i = 0; i < stage.tiers[t].size(); ++i)
        add_to(loads_.total.tiers[t][i], stage.tiers[t][i]);
    }
  }
  return std::move(loads_);
}

}  // namespace hips::cost
