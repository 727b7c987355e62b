#include "lib/exec/compiled_program.hpp"

#include <algorithm>
#include <utility>

namespace hips::exec {
namespace {

/// A channel that a program uses, and this rank's NIC.
struct Used {
  ChannelKey key;
  std::size_t order = 0;  ///< among all; of those that are the same the first one counts
  Rail rail = kNoRail;
  friend auto operator<=>(const Used&, const Used&) = default;
};

/// Merges channels into a sorted list, and their NICs into the one beside it. Those that are there already stay.
void merge(std::vector<Used> more, std::vector<ChannelKey>& keys, std::vector<Rail>& rails) {
  for (std::size_t i = 0; i < more.size(); ++i) more[i].order = keys.size() + i;
  for (std::size_t i = 0; i < keys.size(); ++i) more.push_back({keys[i], i, rails[i]});
  std::ranges::sort(more);
  const auto same = std::ranges::unique(more, {}, &Used::key);
  more.erase(same.begin(), same.end());
  keys.clear();
  rails.clear();
  for (const Used& one : more) {
    keys.push_back(one.key);
    rails.push_back(one.rail);
  }
}

/// Turns counts, of which that of number i stands at i + 1, into the place where the entries of each number begin.
void add_up(std::vector<std::int32_t>& first) {
  for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
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

void ChannelTable::add(const PlanShape& shape, const Program& program) {
  std::vector<Used> receives, sends;
  for (const Step& step : program.steps) {
    if (step.op == StepOp::kSend)
      sends.push_back({{step.peer, step.lane, path_of(shape, by_nic, step.rail)}, 0, step.rail});
    for (const Source& source : program.sources_of(step)) {
      if (source.kind == Source::Kind::kMessage)
        receives.push_back({{source.peer, step.lane, path_of(shape, by_nic, source.rail)}, 0, source.rail});
    }
  }
  merge(std::move(receives), in, in_rails);
  merge(std::move(sends), out, out_rails);
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
  compiled.first_send.assign(channels.out.size() + 1, 0);
  compiled.first_receive.assign(channels.in.size() + 1, 0);
  compiled.first_dependent.assign(program->steps.size() + 1, 0);
  for (StepId id = 0; id < num_steps; ++id) {
    const Step& step = program->steps[id];
    if (step.op == StepOp::kSend) {
      const std::int32_t channel =
          channels.find_out({step.peer, step.lane, path_of(*shape, channels.by_nic, step.rail)});
      compiled.out_channel[id] = channel;
      ++compiled.first_send[channel + 1];
    }
    for (std::int32_t s = step.first_source; s < step.first_source + step.num_sources; ++s) {
      const Source& source = program->sources[s];
      if (source.kind != Source::Kind::kMessage) continue;
      const std::int32_t channel =
          channels.find_in({source.peer, step.lane, path_of(*shape, channels.by_nic, source.rail)});
      compiled.in_channel[s] = channel;
      ++compiled.first_receive[channel + 1];
    }
    for (const StepId dep : program->after(step)) ++compiled.first_dependent[dep + 1];
  }
  add_up(compiled.first_send);
  add_up(compiled.first_receive);
  add_up(compiled.first_dependent);
  compiled.sends.resize(compiled.first_send.back());
  compiled.receives.resize(compiled.first_receive.back());
  // Steps may share an `after` list, so there can be more edges than ids in the pool.
  compiled.dependents.resize(compiled.first_dependent.back());
  auto next_send = compiled.first_send, next_receive = compiled.first_receive,
       next_dependent = compiled.first_dependent;
  for (StepId id = 0; id < num_steps; ++id) {
    const Step& step = program->steps[id];
    if (step.op == StepOp::kSend) compiled.sends[next_send[compiled.out_channel[id]]++] = id;
    for (std::int32_t s = step.first_source; s < step.first_source + step.num_sources; ++s) {
      if (const std::int32_t channel = compiled.in_channel[s]; channel >= 0)
        compiled.receives[next_receive[channel]++] = {id, s};
    }
    for (const StepId dep : program->after(step)) compiled.dependents[next_dependent[dep]++] = id;
  }
  compiled.grants.assign(channels.in.size(), 0);
  for (std::size_t channel = 0; channel < channels.in.size(); ++channel) {
    bool any = false, all = true;
    for (const Receive& receive : compiled.receives_of(channel)) {
      const Step& step = program->steps[receive.step];
      if (step.phase != Phase::kGather) continue;
      any = true;
      all &= takes_direct(step);
    }
    compiled.grants[channel] = any && all ? 1 : 0;
  }
  compiled.shape = std::move(shape);
  compiled.program = std::move(program);
  return compiled;
}

}  // namespace hips::exec
