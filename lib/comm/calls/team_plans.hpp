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

/// Selects the team's program for each call. The programs of other collectives are pruned from the allreduce
/// plans at their first use (lib/plan/prune), locally and alike on all ranks.
///
/// Cost     first call of a collective and root: this rank's program is built; a stored plan takes a few passes
///          over the steps of all ranks. Later calls: a table lookup. The program of every root used is kept.
/// Threads  one at a time.
class TeamPlans {
 public:
  /// `choices` are the team's first programs, in this order.
  TeamPlans(std::vector<Design::Choice> choices, Rank rank) : choices_(std::move(choices)), rank_(rank) {}

  struct Use {
    std::int32_t program = 0;
    /// Set for reduce_scatter and allgather, unless by_allreduce.
    std::shared_ptr<const Arrangement> arrangement;
    /// The program is an allreduce, because no plan can be pruned to the collective: not every rank owns a
    /// block, or the plan moves ranges of which a rank has only a part.
    bool by_allreduce = false;
  };
  /// Errors   those of plan::pruned_program() except kUnsupported.
  Result<Use> of(const CallArgs& args, exec::Team& team);
  /// True if the user chose no plan for vectors of this size.
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
  /// The pruned program of a stored plan, checked.
  Result<Program> pruned_stored(const Key& key);
  /// The programs of all ranks. Small plans are cached: a user may call with every root in turn.
  std::shared_ptr<const Plan> whole(std::size_t choice);
  /// The owner of each block of a choice's plan; empty if some rank owns no block.
  const std::vector<Rank>& owners_of(std::size_t choice);
  std::shared_ptr<const Arrangement> arrangement_of(std::size_t choice, const Sections& sections);

  std::vector<Design::Choice> choices_;
  Rank rank_;
  std::map<Key, std::int32_t> programs_;
  std::map<std::size_t, std::shared_ptr<const Plan>> small_wholes_;  ///< by choice
  std::set<Key> unsupported_;
  std::map<std::size_t, std::vector<Rank>> owners_;
  std::vector<Known> arrangements_;  ///< most recently used first
};

}  // namespace hips::comm
