#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hips/plan.hpp>

namespace hips::plan {

/// Appends steps to a program and fills its pools.
///
/// Each distinct `after` list is in the pool once, in the order in which steps first use them; steps with the
/// same list share it. The n-1 sends of a stage that wait for the same n-1 copies then cost n-1 entries, not
/// their square, and a program that is written to JSON and read back is equal to itself.
class ProgramWriter {
 public:
  /// A list of steps to wait for; by default empty.
  struct After {
    std::int32_t list = -1;
  };

  explicit ProgramWriter(Rank rank) { program_.rank = rank; }

  /// Stores a list, or finds an equal one.
  After after(std::span<const StepId> steps);
  After after(std::initializer_list<StepId> steps) { return after(std::span(steps.begin(), steps.size())); }

  /// Appends a step and sets its first_source, num_sources, first_dep and num_deps.
  StepId add(Step step, std::span<const Source> sources, After after);
  StepId add(Step step, std::initializer_list<Source> sources, After after) {
    return add(step, std::span(sources.begin(), sources.size()), after);
  }

  /// Adds blocks whose final value the rank computes; ascending.
  void own(BlockRange blocks) {
    if (blocks.count > 0) program_.owned.push_back(blocks);
  }

  [[nodiscard]] Program take() { return std::move(program_); }

 private:
  struct List {
    std::int32_t first, count;     ///< in kept_
    std::int32_t in_program = -1;  ///< its start in Program::deps, once a step has used it
  };
  [[nodiscard]] std::span<const StepId> steps_of(const List& list) const {
    return {kept_.data() + list.first, static_cast<std::size_t>(list.count)};
  }

  Program program_;
  std::vector<StepId> kept_;
  std::vector<List> lists_;
  std::unordered_multimap<std::uint64_t, std::int32_t> by_hash_;
};

}  // namespace hips::plan
