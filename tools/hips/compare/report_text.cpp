#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "lib/base/counted.hpp"
#include "lib/plan/formats/plan_text.hpp"
#include "tools/hips/common/servers_memory.hpp"
#include "tools/hips/compare/report.hpp"
#include "tools/hips/compare/size_range.hpp"

namespace hips::compare {
namespace {

/// Number of sizes on a line.
constexpr std::size_t kColumns = 11;
constexpr std::size_t kColumnWidth = 9;

std::string percent(double share) {
  const double percent = 100 * share;
  if (percent >= 99.95) return fmt::format("{:.0f} %", percent);
  if (percent >= 1) return fmt::format("{:.1f} %", percent);
  return percent < 0.01 ? "< 0.01 %" : fmt::format("{:.2f} %", percent);
}

/// The name of a plan; for a baseline with its own topology.
std::string label(const PlanCost& plan) {
  return plan.entry.baseline ? fmt::format("{} ({})", plan.entry.name, plan.entry.wiring) : plan.entry.name;
}

/// The marks that legend_text() explains.
std::string marks_of(const PlanCost& plan) {
  std::string marks = plan.entry.baseline ? "  [b]" : "";
  if (plan.relays) marks += "  [r]";
  if (plan.basis == Basis::kSomeServers) marks += "  [1]";
  if (plan.basis == Basis::kClosedForm) marks += "  [2]";
  return marks;
}

std::string busiest_text(const PlanCost& plan) {
  if (plan.busiest.empty()) return "none";
  return fmt::format("{}, {}", plan::bytes_text(plan.sizes.back().busiest_bytes), plan.busiest);
}

void append_plans(const Comparison& comparison, std::size_t width, std::string& out) {
  std::size_t busiest = 0;
  const auto heading = "busiest link at " + size_text(comparison.sizes.back());
  for (const PlanCost& plan : comparison.plans)
    if (plan.basis != Basis::kNone) busiest = std::max(busiest, busiest_text(plan).size());
  busiest = std::max(busiest, heading.size());
  out += fmt::format("  {:<{}}  {:>8}  {:>8}  {:>8}  {:>8}  {:<{}}  {:>8}\n", "plan", width, "steps", "hops",
                     "messages", "fan-in", heading, busiest, "of bound");
  for (const PlanCost& plan : comparison.plans) {
    if (plan.basis == Basis::kNone) {
      out += fmt::format("  {:<{}}  no estimate: {}\n", label(plan), width, plan.reason);
      continue;
    }
    out += fmt::format("  {:<{}}  {:>8}  {:>8}  {:>8}  {:>8}  {:<{}}  {:>8}{}\n", label(plan), width,
                       plan.num_steps, plan.num_hops, plan.num_messages, plan.fan_in, busiest_text(plan),
                       busiest, percent(plan.bandwidth_of_bound), marks_of(plan));
  }
}

void append_times(const Comparison& comparison, std::size_t width, std::string& out) {
  const auto& sizes = comparison.sizes;
  for (std::size_t first = 0; first < sizes.size(); first += kColumns) {
    const std::size_t end = std::min(first + kColumns, sizes.size());
    out += fmt::format("\n  {:<{}}", "time", width);
    for (std::size_t i = first; i < end; ++i)
      out += fmt::format(" {:>{}} ", size_text(sizes[i]), kColumnWidth - 1);
    out += '\n';
    for (std::size_t p = 0; p < comparison.plans.size(); ++p) {
      const PlanCost& plan = comparison.plans[p];
      if (plan.basis == Basis::kNone) continue;
      out += fmt::format("  {:<{}}", label(plan), width);
      for (std::size_t i = first; i < end; ++i) {
        out += fmt::format(" {:>{}}{}", duration_text(plan.sizes[i].seconds), kColumnWidth - 1,
                           comparison.best[i] == p ? '*' : ' ');
      }
      out += '\n';
    }
    out += fmt::format("  {:<{}}", "* of bound", width);
    for (std::size_t i = first; i < end; ++i) {
      const std::size_t best = comparison.best[i];
      out += fmt::format(
          " {:>{}} ",
          best == comparison.plans.size() ? "-" : percent(comparison.plans[best].sizes[i].of_bound),
          kColumnWidth - 1);
    }
    out += '\n';
  }
}

std::string selected_text(const Comparison& comparison) {
  if (comparison.selected.empty()) return "";
  std::string out = "\n  default between nodes: ";
  for (std::size_t i = 0; i < comparison.selected.size(); ++i) {
    const Selected& selected = comparison.selected[i];
    const bool last = selected.up_to_bytes == UINT64_MAX;
    out += selected.plan;
    if (!last) out += fmt::format(" up to {}; ", size_text(selected.up_to_bytes));
    if (last && i > 0) out += " above";
  }
  return out + "\n" + cli::servers_memory_text(comparison.topology);
}

std::string without_trailing_spaces(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') out.erase(out.find_last_not_of(' ') + 1);
    out += c;
  }
  return out;
}

}  // namespace

std::string duration_text(double seconds) {
  for (const auto& [unit, scale] : {std::pair("us", 1e6), std::pair("ms", 1e3), std::pair("s", 1.0)}) {
    const double value = seconds * scale;
    // A value that rounds to 1000 is printed as 1 of the next unit.
    if (value >= 999.5 && scale != 1.0) continue;
    if (value < 9.995) return fmt::format("{:.2f} {}", value, unit);
    if (value < 99.95) return fmt::format("{:.1f} {}", value, unit);
    return fmt::format("{:.0f} {}", value, unit);
  }
  return {};
}

std::string report_text(const Comparison& comparison) {
  const Topology& topology = comparison.topology;
  std::string out = fmt::format("{} ({}): {}, {} a server", topology.name, topology.spec,
                                counted(topology.num_ranks(), "rank"), counted(topology.num_rails, "NIC"));
  if (topology.num_servers() > 1) {
    out += fmt::format(
        ".\nNo allreduce of {} takes less than {} there: what {} send and receive at least, at full rate",
        size_text(comparison.sizes.back()),
        duration_text(comparison.bound.seconds(static_cast<double>(comparison.sizes.back()))),
        comparison.bound.cut().name);
  }
  out += "\n\n";
  std::size_t width = std::string_view("* of bound").size();
  for (const PlanCost& plan : comparison.plans) width = std::max(width, label(plan).size());
  append_plans(comparison, width, out);
  append_times(comparison, width, out);
  return without_trailing_spaces(out) + selected_text(comparison);
}

std::string legend_text(std::span<const Comparison> comparisons) {
  const auto any = [&](auto&& is) {
    return std::ranges::any_of(
        comparisons, [&](const Comparison& comparison) { return std::ranges::any_of(comparison.plans, is); });
  };
  std::string out =
      "Times are estimates of the model, for servers that are separate nodes: latency of the hops, the busiest link at\n"
      "the topology's rates (10 % more for incast), and 0.5 us for each message. \"of bound\" is the lower bound on the\n"
      "time of any algorithm, divided by the time of the plan's busiest link (above) or by its whole time (below).\n";
  if (any([](const PlanCost& plan) { return plan.basis != Basis::kNone && plan.entry.baseline; }))
    out +=
        "[b] baseline, on the topology in parentheses; its \"of bound\" is relative to the bound of that topology, not to\n"
        "    that of the first line; never marked as the best\n";
  if (any([](const PlanCost& plan) { return plan.basis != Basis::kNone && plan.relays; }))
    out += "[r] servers would have to forward its messages: selected only by jobs that measure the network\n";
  if (any([](const PlanCost& plan) { return plan.basis == Basis::kSomeServers; }))
    out += "[1] from the programs of three servers, which represent all\n";
  if (any([](const PlanCost& plan) { return plan.basis == Basis::kClosedForm; }))
    out += "[2] from a closed form\n";
  return out;
}

}  // namespace hips::compare
