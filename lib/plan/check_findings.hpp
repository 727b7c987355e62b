#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/plan/check.hpp"

namespace hips::plan {

/// Collects what the parts of the checker find, and names things for people.
class Findings {
 public:
  Findings(const Plan& plan, const CheckOptions& options, CheckReport& report)
      : plan_(plan), options_(options), report_(report) {}

  /// Counts a finding; true when it is still to be told, so that its text is worth making.
  bool count(FindingKind kind) {
    return ++report_.num_found[static_cast<std::size_t>(kind)] <=
           static_cast<std::int64_t>(options_.max_findings_per_kind);
  }
  void tell(FindingKind kind, Place where, std::string text, std::vector<std::string> example = {});
  /// count() and tell() where the text costs little.
  void add(FindingKind kind, Place where, std::string text, std::vector<std::string> example = {}) {
    if (count(kind)) tell(kind, where, std::move(text), std::move(example));
  }
  [[nodiscard]] bool has_errors() const { return report_.num_errors() > 0; }
  [[nodiscard]] bool has(FindingKind kind) const { return report_.has(kind); }
  [[nodiscard]] bool full(FindingKind kind) const {
    return report_.num_found[static_cast<std::size_t>(kind)] >=
           static_cast<std::int64_t>(options_.max_findings_per_kind);
  }

  [[nodiscard]] const CheckOptions& options() const { return options_; }
  [[nodiscard]] CheckReport& report() { return report_; }

  /// "server <02>", or "rank 2" where no topology is known.
  [[nodiscard]] std::string rank_name(Rank rank) const;
  /// "servers <10>, <11> and 3 more"
  [[nodiscard]] std::string rank_names(std::span<const Rank> ranks) const;
  /// "step 12 (send to server <02>, lane 0, scatter stage 1, round 0, blocks 3-5)"
  [[nodiscard]] std::string step_name(Rank rank, StepId step) const;
  /// "lane 0, scatter stage 1, round 0"
  [[nodiscard]] static std::string stage_name(const Step& step);
  [[nodiscard]] static Place place(Rank rank, StepId id, const Step& step, BlockIdx block = -1);

 private:
  [[nodiscard]] bool named_by_address() const;

  const Plan& plan_;
  const CheckOptions& options_;
  CheckReport& report_;
};

/// "blocks 3-5", "block 7", "scratch block 7"
std::string range_name(const BufferRange& range);

}  // namespace hips::plan
