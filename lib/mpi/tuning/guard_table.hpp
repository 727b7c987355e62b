#pragma once

#include <compare>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/mpi/tuning/guard.hpp"

namespace hips::mpi {

/// Which communicators a decision holds for: those with equal values here are equally fast.
struct TuningScope {
  std::string nodes;      ///< "2x4,1x2": two nodes of 4 ranks, then one of 2; `hosts` in the file
  std::string transport;  ///< HiPS' data path: "memory", "shm,verbs"
  std::string native;     ///< native MPI: "Open_MPI_v4.1.4"; `mpi` in the file
  friend auto operator<=>(const TuningScope&, const TuningScope&) = default;
};

/// "2x4,1x2" from the node of each rank, in rank order: nodes in order of their first ranks, neighbours of
/// equal size together.
std::string nodes_text(const std::vector<std::string>& node_of_rank);

/// Tuning decisions of earlier runs, as text of one line each. The file is guard_table_file.hpp's.
///
/// Owns     its lines.
/// Threads  as a value.
class GuardTable {
 public:
  using Key = std::pair<TuningScope, CallClass>;

  /// Reads what text() wrote; errors name `name`.
  ///
  /// Errors   kInvalidArgument: file, line, the text found and what would be right.
  static Result<GuardTable> parse(std::string_view text, std::string_view name);
  [[nodiscard]] std::string text() const;

  [[nodiscard]] const std::map<Key, TuningDecision>& decisions() const { return decisions_; }
  void add(const Key& key, const TuningDecision& decision) { decisions_[key] = decision; }

 private:
  std::map<Key, TuningDecision> decisions_;
};

}  // namespace hips::mpi
