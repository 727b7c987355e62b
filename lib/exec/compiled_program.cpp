#include "lib/exec/compiled_program.hpp"

#include <algorithm>

namespace hips::exec {
namespace {

void sort_unique(std::vector<ChannelKey>& keys) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

std::int32_t find(const std::vector<ChannelKey>& keys, ChannelKey key) {
  const auto it = std::lower_bound(keys.begin(), keys.end(), key);
  return it != keys.end() && *it == key ? static_cast<std::int32_t>(it - keys.begin()) : -1;
}

ChannelTable::Numbers of_peer(const std::vector<ChannelKey>& keys, Rank peer) {
  const auto range = std::ranges::equal_range(keys, peer, {}, &ChannelKey::peer);
  return {static_cast<std::int32_t>(range.begin() - keys.begin()),
          static_cast<std::int32_t>(range.end() - keys.begin())};
}

}  // namespace

bool takes_direct(const Step& step) {
  return step.phase == Phase::kGather && step.op == StepOp::kCopy && step.num_sources == 1 &&
         step.dst.buffer == Buffer::kOutput;
}

std::int32_t path_of(const PlanShape& shape, bool by_nic, Rail nic) {
  if (by_nic) return nic;
  return shape.algorithm == "trees" ? 1 : shape.algorithm == "double-tree" ? 2 : 0;
}

ChannelTable ChannelTable::of(bool by_nic, std::span<const std::shared_ptr<const PlanShape>> shapes,
                              std::span<const std::shared_ptr<const Program>> programs) {
  ChannelTable table;
  table.by_nic = by_nic;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const auto& program = programs[i];
    const PlanShape& shape = *shapes[i];
    for (const Step& step : program->steps) {
      if (step.op == StepOp::kSend)
        table.out.push_back({step.peer, step.lane, path_of(shape, by_nic, step.rail)});
      for (const Source& source : program->sources_of(step)) {
        if (source.kind == Source::Kind::kMessage)
          table.in.push_back({source.peer, step.lane, path_of(shape, by_nic, source.rail)});
      }
    }
  }
  sort_unique(table.in);
  sort_unique(table.out);
  return table;
}

std::int32_t ChannelTable::find_in(ChannelKey key) const {
  return find(in, key);
}
std::int32_t ChannelTable::find_out(ChannelKey key) const {
  return find(out, key);
}
ChannelTable::Numbers ChannelTable::in_of(Rank peer) const {
  return of_peer(in, peer);
}
ChannelTable::Numbers ChannelTable::out_of(Rank peer) const {
  return of_peer(out, peer);
}

CompiledProgram CompiledProgram::of(std::shared_ptr<const PlanShape> shape,
                                    std::shared_ptr<const Program> program, const ChannelTable& channels) {
  CompiledProgram compiled;
  const auto num_steps = static_cast<StepId>(program->steps.size());
  compiled.out_channel.assign(program->steps.size(), -1);
  compiled.in_channel.assign(program->sources.size(), -1);
  compiled.sends.resize(channels.out.size());
  compiled.receives.resize(channels.in.size());
  compiled.first_dependent.assign(program->steps.size() + 1, 0);
  for (StepId id = 0; id < num_steps; ++id) {
    const Step& step = program->steps[id];
    if (step.op == StepOp::kSend) {
      const std::int32_t channel =
          channels.find_out({step.peer, step.lane, path_of(*shape, channels.by_nic, step.rail)});
      compiled.out_channel[id] = channel;
      compiled.sends[channel].push_back(id);
    }
    for (std::int32_t s = step.first_source; s < step.first_source + step.num_sources; ++s) {
      const Source& source = program->sources[s];
      if (source.kind != Source::Kind::kMessage) continue;
      const std::int32_t channel =
          channels.find_in({source.peer, step.lane, path_of(*shape, channels.by_nic, source.rail)});
      compiled.in_channel[s] = channel;
      compiled.receives[channel].push_back({id, s});
    }
    for (const StepId dep : program->after(step)) ++compiled.first_dependent[dep + 1];
  }
  for (StepId id = 0; id < num_steps; ++id) compiled.first_dependent[id + 1] += compiled.first_dependent[id];
  compiled.grants.assign(channels.in.size(), 0);
  for (std::size_t channel = 0; channel < channels.in.size(); ++channel) {
    bool any = false, all = true;
    for (const Receive& receive : compiled.receives[channel]) {
      const Step& step = program->steps[receive.step];
      if (step.phase != Phase::kGather) continue;
      any = true;
      all &= takes_direct(step);
    }
    compiled.grants[channel] = any && all ? 1 : 0;
  }
  // Steps may share an `after` list, so there can be more edges than ids in the pool.
  compiled.dependents.resize(compiled.first_dependent.back());
  std::vector<std::int32_t> next(compiled.first_dependent.begin(), compiled.first_dependent.end() - 1);
  for (StepId id = 0; id < num_steps; ++id) {
    for (const StepId dep : program->after(program->steps[id])) compiled.dependents[next[dep]++] = id;
  }
  compiled.shape = std::move(shape);
  compiled.program = std::move(program);
  return compiled;
}

}  // namespace hips::exec
