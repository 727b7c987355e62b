#include "tools/hips/picture/page.hpp"

#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/plan/formats/plan_json.hpp"
#include "lib/plan/formats/plan_text.hpp"
#include "tools/hips/picture/drawable.hpp"
#include "tools/hips/picture/drawing.hpp"
#include "tools/hips/picture/layout.hpp"
#include "tools/hips/picture/page_data.hpp"
#include "tools/hips/picture/page_parts.hpp"
#include "topology/families/family.hpp"
#include "topology/names.hpp"
#include "topology/rates.hpp"

namespace hips::picture {
namespace {

/// Escapes JSON for a script element: "<", which occurs only inside strings, could end the element.
std::string in_script(std::string json) {
  for (std::size_t at = 0; (at = json.find('<', at)) != std::string::npos;) json.replace(at, 1, "\\u003c");
  return json;
}

std::string plan_json(const Plan& plan, const nlohmann::ordered_json& notes) {
  std::ostringstream out;
  plan::PlanJsonWriter writer(out, plan.shape, notes);
  for (const Program& program : plan.programs) writer.add(program);
  writer.finish();
  return std::move(out).str();
}

std::string duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

std::string figures(const cost::Cost& cost, const cost::Timeline& timeline) {
  std::string text;
  const auto figure = [&](const char* name, const std::string& value) {
    text += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, xml_text(value));
  };
  figure("Vector", plan::bytes_text(cost.volume.bytes()));
  figure("Steps in a row", fmt::format("{}", cost.num_steps));
  figure("Latency", duration(cost.latency_seconds));
  figure("Busiest link", duration(cost.bandwidth_seconds));
  figure("Lower bound", duration(cost.bound_seconds));
  figure("Share of the bound", cost.ratio > 0 ? fmt::format("{:.1f} %", 100 / cost.ratio) : "-");
  figure("Whole messages", duration(static_cast<double>(timeline.end_ns) * 1e-9));
  return text;
}

std::string levels(const Topology& topology) {
  if (topology.levels.empty()) return "";
  std::string text =
      "<div class=\"rows\"><table><thead><tr><th>level</th><th>radix</th><th>kind</th><th>NICs</th>"
      "<th>rate of a NIC</th><th>latency</th></tr></thead><tbody>\n";
  for (const Level& level : topology.levels) {
    const bool wires = level.kind != LevelKind::kNode;
    text +=
        fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                    xml_text(level.name), level.radix, to_string(level.kind), fmt::join(level.rails, ", "),
                    wires ? topology::rate_text(level.bandwidth_bytes_per_s) : "",
                    wires ? fmt::format("{:g} us", level.latency_ns / 1000) : "");
  }
  return text + "</tbody></table></div>";
}

/// The template with the values filled in, in one pass: names inside values are not replaced.
std::string filled(std::string_view page,
                   const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string text;
  while (!page.empty()) {
    const std::size_t at = page.find('@');
    text += page.substr(0, at);
    if (at == std::string_view::npos) break;
    page.remove_prefix(at);
    bool found = false;
    for (const auto& [name, value] : values) {
      if (!page.starts_with(name)) continue;
      text += value;
      page.remove_prefix(name.size());
      found = true;
      break;
    }
    if (!found) {
      text += '@';
      page.remove_prefix(1);
    }
  }
  return text;
}

}  // namespace

Result<std::string> plan_page(const topology::TopologyFile& file, const PlanBuilder& builder,
                              const nlohmann::ordered_json& notes, const cost::Cost& cost) {
  const Topology& topology = file.topology;
  const auto drawing = draw(file);
  if (!drawing) return fail(drawing.error());
  Plan plan{builder.shape(), {}};
  std::int64_t num_steps = 0;
  for (Rank rank = 0; rank < plan.shape.num_ranks; ++rank) {
    plan.programs.push_back(builder.program(rank));
    num_steps += static_cast<std::int64_t>(plan.programs.back().steps.size());
    if (num_steps <= kMostDrawnSteps) continue;
    return fail(
        Code::kUnsupported,
        fmt::format("the plan \"{}\" on \"{}\" has more than {} steps, the maximum of a page; draw fewer "
                    "servers, or only the wiring with hips topo --format svg",
                    plan.shape.algorithm, topology.spec, kMostDrawnSteps));
  }
  const auto timeline = cost::timeline(topology, plan, cost.volume);
  if (!timeline) return fail(timeline.error());
  const auto sums = holdings(plan, *timeline);
  if (!sums) return fail(sums.error());
  return filled(kPage,
                {{"@TITLE@", xml_text(fmt::format("{} on {}", plan.shape.algorithm, topology.name))},
                 {"@NAME@", xml_text(topology.name)},
                 {"@DESCRIPTION@", xml_text(fmt::format("{}; {}", plan.shape.description, topology.spec))},
                 {"@DRAWING_STYLE@", std::string(kDrawingStyle)},
                 {"@STYLE@", std::string(kPageStyle)},
                 {"@FIGURES@", figures(cost, *timeline)},
                 {"@WIDTH@", fmt::format("{:.0f}", drawing->width)},
                 {"@TOP@", fmt::format("{:.0f}", kTitleHeight)},
                 {"@HEIGHT@", fmt::format("{:.0f}", drawing->height - kTitleHeight)},
                 {"@WIRING@", drawing->elements},
                 {"@LEVELS@", levels(topology)},
                 {"@VIEW@", in_script(page_data(file, plan, *timeline, *sums))},
                 {"@PLAN@", in_script(plan_json(plan, notes))},
                 {"@SCRIPT@", std::string(kPageScript)}});
}

}  // namespace hips::picture
