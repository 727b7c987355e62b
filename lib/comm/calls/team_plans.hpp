#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <hips/status.hpp>

#include "lib/comm/calls/arrangement.hpp"
#include "lib/comm/calls/call_args.hpp"
#include "lib/comm/setup/design.hpp"
#include "lib/exec/team.hpp"

namespace hips::comm {

/// Which program of a team carries which call. Programs of other collectives than allreduce are pruned from
/// the plans of allreduce when they are first asked for (lib/plan/prune): local, and the same on all ranks.
///
/// Cost     the first call of a collective, of a root: the rank's own program; of a stored plan a few passes
/// over
///          the steps of all ranks. Later ones: a look into a table. A program for each root that was used
///          stays.
/// Threads  one at a time.
class TeamPlans {
 public:
  /// The choices of `design` are the team's programs, in this order.
  TeamPlans(std::vector<Design::Choice> choices, Rank rank) : choices_(std::move(choices)), rank_(rank) {}

  struct Use {
    std::int32_t program = 0;
    /// Of reduce_scatter and allgather, unless by_allreduce.
    std::shared_ptr<const Arrangement> arrangement;
    /// The collective cannot be cut out of any plan - not all ranks have sections of their own, or a rank
    /// would hold parts of what it passes on: the program is one of allreduce.
    bool by_allreduce = false;
  };
  /// Errors: those of plan::pruned_program() but kUnsupported.
  Result<Use> of(const CallArgs& args, exec::Team& team);
  /// Did nobody choose the plan for vectors of this size?
  [[nodiscard]] bool is_automatic(std::uint64_t bytes) const { return choices_[choice_for(bytes)].automatic; }

 private:
  struct Key {
    std::size_t choice = 0;
    Collective collective = Collective::kAllreduce;
    Rank root = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Known {
    std::size_t choice = 0;
    Sections sections;
    std::shared_ptr<const Arrangement> arrangement;
  };

  [[nodiscard]] std::size_t choice_for(std::uint64_t bytes) const;
  Result<std::int32_t> program_of(const Key& key, exec::Team& team);
  /// What is left of a stored plan, proved.
  Result<Program> pruned_stored(const Key& key);
  /// The programs of all ranks. Few of them stay for the next call: a program may go through all roots.
  std::shared_ptr<const Plan> whole(std::size_t choice);
  /// The owner of each block of a choice's plan; empty where there is none.
  const std::vector<Rank>& owners_of(std::size_t choice);
  std::shared_ptr<const Arrangement> arrangement_of(std::size_t choice, const Sections& sections);

  std::vector<Design::Choice> choices_;
  Rank rank_;
  std::map<Key, std::int32_t> programs_;
  std::map<std::size_t, std::shared_ptr<const Plan>> small_wholes_;  ///< by choice
  std::set<Key> unsupported_;
  std::map<std::size_t, std::vector<Rank>> owners_;
  std::vector<Known> arrangements_;  ///< the last ones used first
};

}  // namespace hips::comm
