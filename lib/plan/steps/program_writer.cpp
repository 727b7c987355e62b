#include "lib/plan/steps/program_writer.hpp"

#include <algorithm>

namespace hips::plan {
namespace {

std::uint64_t hash_of(std::span<const StepId> steps) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a over whole ids
  for (const StepId step : steps) hash = (hash ^ static_cast<std::uint32_t>(step)) * 0x100000001b3u;
  return hash;
}

}  // namespace

ProgramWriter::After ProgramWriter::after(std::span<const StepId> steps) {
  if (steps.empty()) return {};
  const std::uint64_t hash = hash_of(steps);
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (std::ranges::equal(steps_of(lists_[it->second]), steps)) return {it->second};
  }
  const auto index = static_cast<std::int32_t>(lists_.size());
  lists_.push_back({static_cast<std::int32_t>(kept_.size()), static_cast<std::int32_t>(steps.size())});
  kept_.insert(kept_.end(), steps.begin(), steps.end());
  by_hash_.emplace(hash, index);
  return {index};
}

StepId ProgramWriter::add(Step step, std::span<const Source> sources, After after) {
  step.first_source = static_cast<std::int32_t>(program_.sources.size());
  step.num_sources = static_cast<std::int32_t>(sources.size());
  step.first_dep = step.num_deps = 0;
  if (after.list >= 0) {
    List& list = lists_[after.list];
    if (list.in_program < 0) {
      list.in_program = static_cast<std::int32_t>(program_.deps.size());
      const std::span<const StepId> steps = steps_of(list);
      program_.deps.insert(program_.deps.end(), steps.begin(), steps.end());
    }
    step.first_dep = list.in_program;
    step.num_deps = list.count;
  }
  program_.sources.insert(program_.sources.end(), sources.begin(), sources.end());
  program_.steps.push_back(step);
  return static_cast<StepId>(program_.steps.size()) - 1;
}

}  // namespace hips::plan
