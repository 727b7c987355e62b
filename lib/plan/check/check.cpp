#include "lib/plan/check/check.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lib/plan/check/check_findings.hpp"
#include "lib/plan/check/check_goal.hpp"
#include "lib/plan/check/check_hazards.hpp"
#include "lib/plan/check/check_layout.hpp"
#include "lib/plan/check/check_links.hpp"
#include "lib/plan/check/check_messages.hpp"
#include "lib/plan/check/check_order.hpp"
#include "lib/plan/check/check_structure.hpp"
#include "lib/plan/check/contribution_run.hpp"

namespace hips::plan {
namespace {

/// Memory for partial sums; together with the plan and the order 1,024 servers stay within 2 GiB.
constexpr std::size_t kMaxPoolBytes = std::size_t{768} << 20;

/// Edges that the search for the shortest deadlock visits before it takes the shortest so far.
constexpr std::int64_t kCycleWork = 200'000'000;

const char* reason_of(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kAfter:
      return "comes after";
    case EdgeKind::kChannel:
      return "is sent, in its channel, behind";
    case EdgeKind::kMessage:
      return "receives the message of";
    case EdgeKind::kCredit:
      return "needs the slot that is returned by";
  }
  return "?";
}

void report_deadlock(const StepTable& table, const HappensBefore& order,
                     const HappensBefore::Options& options, Findings& findings) {
  if (!findings.count(FindingKind::kDeadlock)) return;
  const std::vector<HappensBefore::CycleStep> cycle = order.shortest_cycle(kCycleWork);
  const auto name = [&](NodeIdx node) {
    const StepIdx idx = order.step_of(node);
    const std::string segment =
        options.segments == 1 ? "" : fmt::format(", segment {}", order.segment_of(node));
    return fmt::format("{}, {}{}", findings.rank_name(table.rank(idx)),
                       findings.step_name(table.rank(idx), table.id(idx)), segment);
  };
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const HappensBefore::CycleStep& before = cycle[(i + cycle.size() - 1) % cycle.size()];
    lines.push_back(
        fmt::format("{} {} {}", name(cycle[i].node), reason_of(cycle[i].waits_by), name(before.node)));
  }
  const StepIdx idx = cycle.empty() ? 0 : order.step_of(cycle.front().node);
  findings.report(FindingKind::kDeadlock, Findings::place(table.rank(idx), table.id(idx), table.step(idx)),
                  fmt::format("{} steps wait for one another with {} credit{} and {} segment{}", cycle.size(),
                              options.credits, options.credits == 1 ? "" : "s", options.segments,
                              options.segments == 1 ? "" : "s"),
                  std::move(lines));
}

class Checker {
 public:
  Checker(const Plan& plan, const CheckOptions& options, CheckReport& report)
      : plan_(plan), options_(options), report_(report), findings_(plan, options, report) {}

  void run() {
    if (!check_options() || !check_structure(plan_, findings_)) return;
    report_.num_ranks = plan_.shape.num_ranks;
    report_.num_blocks = plan_.shape.blocks.num_blocks;
    for (const Program& program : plan_.programs) {
      report_.num_steps += static_cast<std::int64_t>(program.steps.size());
    }
    const std::optional<std::int64_t> count = element_count();
    if (!count) return;
    const CheckLayout layout(plan_.shape.blocks, *count);
    const StepTable table(plan_);
    const Messages messages(plan_, table, findings_);
    for (const Program& program : plan_.programs) {
      for (const Step& step : program.steps) {
        if (step.op == StepOp::kSend && layout.elements(step.dst) > 0) ++report_.num_messages;
      }
    }
    if (findings_.has(FindingKind::kUnmatched)) return;
    if (options_.topology != nullptr && plan_.shape.neighbours_only) {
      check_links(plan_, table, messages, *options_.topology, findings_);
    }
    if (*count > 0) note_loads(plan_, load_layout(*count), findings_);

    // Whole messages first: the order of steps in which values are followed comes from them.
    if (!check_order(layout, table, messages, 1, true)) return;
    if (options_.segments > 1) check_order(layout, table, messages, options_.segments, false);
  }

 private:
  bool check_options() {
    const auto reject = [&](std::string text) {
      findings_.add(FindingKind::kMalformed, {}, std::move(text));
      return false;
    };
    if (options_.credits < 1)
      return reject(fmt::format("invalid number of credits {} (valid: 1 or more)", options_.credits));
    if (options_.segments < 1)
      return reject(fmt::format("invalid number of segments {} (valid: 1 or more)", options_.segments));
    if (options_.count && *options_.count < 0)
      return reject(fmt::format("invalid number of elements {} (valid: 0 or more)", *options_.count));
    if (options_.topology != nullptr && options_.topology->num_ranks() != plan_.shape.num_ranks) {
      return reject(fmt::format("the plan is for {} ranks, but {} has {}", plan_.shape.num_ranks,
                                options_.topology->name, options_.topology->num_ranks()));
    }
    if (has_root(options_.collective) && (options_.root < 0 || options_.root >= plan_.shape.num_ranks))
      return reject(fmt::format("root {} is out of range [0, {}]", options_.root, plan_.shape.num_ranks - 1));
    return true;
  }

  /// The placements to prove: in place (true), out of place (false).
  [[nodiscard]] std::vector<bool> placements() const {
    const Collective collective = options_.collective;
    if (only_moves(collective)) return {true};
    std::vector<bool> in_place;
    if (options_.in_place) in_place.push_back(true);
    if (options_.out_of_place) in_place.push_back(false);
    return in_place;
  }

  std::optional<std::int64_t> element_count() {
    const BlockMap& map = plan_.shape.blocks;
    // All memory of a rank is one line of elements, whose length must fit a number.
    const std::int64_t copies = 3 + map.num_scratch_blocks / map.num_blocks;
    const std::int64_t most = (std::int64_t{1} << 62) / copies;
    const std::optional<std::int64_t> count =
        options_.count ? options_.count : CheckLayout::least_count(map, options_.segments);
    if (!count || *count > most) {
      findings_.add(
          FindingKind::kTooLarge, {},
          count ? fmt::format("a vector of {} elements (the checker takes at most {})", *count, most)
                : fmt::format(
                      "no vector of up to 2^40 elements gives every block {} elements: shares are too small",
                      options_.segments));
      return std::nullopt;
    }
    return count;
  }

  /// The layout in which loads are compared. In the smallest vector that fills all blocks, rounding is most
  /// of a block.
  [[nodiscard]] CheckLayout load_layout(std::int64_t count) const {
    constexpr std::int64_t kFine = std::int64_t{1} << 16;
    return {plan_.shape.blocks, options_.count ? count : count * kFine};
  }

  /// Checks for deadlock, hazards and, with `follow`, values. False if further checks would make no sense.
  bool check_order(const CheckLayout& layout, const StepTable& table, const Messages& messages,
                   std::int32_t segments, bool follow) {
    if (!HappensBefore::fits(plan_, layout, segments)) {
      findings_.add(
          FindingKind::kTooLarge, {},
          fmt::format("more than {} segments or {} dependencies between segments, the checker's limits",
                      HappensBefore::kMostNodes, HappensBefore::kMostDependencies));
      return false;
    }
    const HappensBefore::Options order_options{.segments = segments, .credits = options_.credits};
    const HappensBefore order(plan_, table, messages, layout, order_options);
    std::vector<NodeIdx> topological = order.topological_order();
    if (topological.size() < order.num_nodes()) {
      report_deadlock(table, order, order_options, findings_);
      return false;
    }
    for (const bool in_place : placements()) {
      check_hazards(plan_, table, layout, order, topological, in_place, findings_);
    }
    if (!follow) return true;
    for (NodeIdx& node : topological) node = order.step_of(node);
    ContributionPool pool(plan_.shape.num_ranks, kMaxPoolBytes);
    const CheckGoal goal(plan_, options_);
    for (const bool in_place : placements()) {
      check_contributions(plan_, goal, table, messages, layout, topological, in_place, pool, findings_);
    }
    return true;
  }

  const Plan& plan_;
  const CheckOptions& options_;
  CheckReport& report_;
  Findings findings_;
};

}  // namespace

CheckReport check(const Plan& plan, const CheckOptions& options) {
  CheckReport report;
  report.num_credits = options.credits;
  report.num_segments = options.segments;
  report.in_place = options.in_place;
  report.out_of_place = options.out_of_place;
  Checker(plan, options, report).run();
  std::stable_sort(report.findings.begin(), report.findings.end(), [](const Finding& a, const Finding& b) {
    return severity_of(a.kind) < severity_of(b.kind);
  });
  return report;
}

}  // namespace hips::plan
