#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/plan/check/check.hpp"

namespace hips::plan {

/// Collects the findings of the parts of the checker, and names steps and ranks for messages.
class Findings {
 public:
  Findings(const Plan& plan, const CheckOptions& options, CheckReport& report)
      : plan_(plan), options_(options), report_(report) {}

  /// Counts a finding. True if it is to be reported with details, so that its text is needed.
  bool count(FindingKind kind) {
    return ++report_.num_found[static_cast<std::size_t>(kind)] <=
           static_cast<std::int64_t>(options_.max_findings_per_kind);
  }
  void report(FindingKind kind, PlanPlace where, std::string text, std::vector<std::string> example = {});
  /// count() and report(), for texts that cost little.
  void add(FindingKind kind, PlanPlace where, std::string text, std::vector<std::string> example = {}) {
    if (count(kind)) report(kind, where, std::move(text), std::move(example));
  }
  [[nodiscard]] bool has_errors() const { return report_.num_errors() > 0; }
  [[nodiscard]] bool has(FindingKind kind) const { return report_.has(kind); }
  [[nodiscard]] bool full(FindingKind kind) const {
    return report_.num_found[static_cast<std::size_t>(kind)] >=
           static_cast<std::int64_t>(options_.max_findings_per_kind);
  }

  [[nodiscard]] const CheckOptions& options() const { return options_; }
  [[nodiscard]] CheckReport& report() { return report_; }

  /// "server <02>", or "rank 2" without a topology.
  [[nodiscard]] std::string rank_name(Rank rank) const;
  /// "servers <10>, <11> and 3 more"
  [[nodiscard]] std::string rank_names(std::span<const Rank> ranks) const;
  /// "step 12 (send to server <02>, lane 0, scatter stage 1, round 0, blocks 3-5)"
  [[nodiscard]] std::string step_name(Rank rank, StepId step) const;
  /// "lane 0, scatter stage 1, round 0"
  [[nodiscard]] static std::string stage_name(const Step& step);
  [[nodiscard]] static PlanPlace place(Rank rank, StepId id, const Step& step, BlockIdx block = -1);

 private:
  [[nodiscard]] bool named_by_address() const;

  const Plan& plan_;
  const CheckOptions& options_;
  CheckReport& report_;
};

/// "blocks 3-5", "block 7", "scratch block 7"
std::string range_name(const BufferRange& range);

}  // namespace hips::plan
