#include "topology/clusters/slurm_torus.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/clusters/hostlist.hpp"
#include "topology/clusters/level_rates.hpp"
#include "topology/formats/parse.hpp"
#include "topology/formats/part.hpp"
#include "topology/formats/server_names.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

std::int64_t places(const SlurmTriple& dims) {
  return dims[0] * dims[1] * dims[2];
}

}  // namespace

tl::unexpected<Status> SlurmToruses::bad(std::size_t line, std::string_view problem, Code code) const {
  return fail(code, fmt::format("{}: {}", file_.where(line), problem));
}

/// Expands a hostlist, within the limit of names of the file.
Result<std::vector<std::string>> SlurmToruses::names(const SlurmRegion& region) {
  const auto list = Hostlist::parse(region.nodes);
  if (!list) return bad(region.line, fmt::format("nodes: {}", list.error().message));
  auto expanded = expander_.expand(*list);
  if (!expanded)
    return bad(region.line, fmt::format("nodes {} {}", in_quotes(region.nodes), expanded.error().message));
  return expanded;
}

Result<void> SlurmToruses::add(const SlurmUnit& unit) {
  if (unit.name.empty()) return bad(unit.line, fmt::format("the {} has an empty name; give it one", kind_));
  if (const auto [first, is_new] = line_of_.emplace(unit.name, unit.line); !is_new) {
    return bad(unit.line, fmt::format("{} {} occurs twice, first in {}; names must be unique", kind_,
                                      in_quotes(unit.name), file_.where(first->second)));
  }
  if (unit.dims[0] > 0 && places(unit.dims) > static_cast<std::int64_t>(kMaxServerNames)) {
    return bad(unit.line, fmt::format("{} {} has {} places (valid: up to {})", kind_, in_quotes(unit.name),
                                      places(unit.dims), kMaxServerNames));
  }
  Unit made{unit.name, unit.line, unit.dims, {}};
  for (const SlurmRegion& region : unit.regions) {
    if (auto added = add_region(region, made); !added) return added;
  }
  units_.push_back(std::move(made));
  return {};
}

Result<void> SlurmToruses::add_region(const SlurmRegion& region, Unit& unit) {
  const auto hosts = names(region);
  if (!hosts) return fail(hosts.error());
  SlurmTriple dims = region.dims;
  if (unit.dims[0] == 0) unit.dims[0] = dims[0] = static_cast<std::int64_t>(hosts->size());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (region.anchor[d] + dims[d] <= unit.dims[d]) continue;
    return bad(region.line, fmt::format("the region from {} and {} long in {} exceeds the torus, which has "
                                        "{} there; regions do not wrap",
                                        region.anchor[d], dims[d], "xyz"[d], unit.dims[d]));
  }
  const auto wanted = places(dims);
  if (static_cast<std::int64_t>(hosts->size()) != wanted) {
    return bad(region.line, fmt::format("nodes: {} names for {} places ({}); write a name for each",
                                        hosts->size(), wanted, fmt::join(dims, "x")));
  }
  for (std::int64_t i = 0; i < wanted; ++i) {
    const std::string& host = (*hosts)[static_cast<std::size_t>(i)];
    if (!hosts_.insert(host).second) {
      return bad(
          region.line,
          fmt::format("nodes: {} occurs twice in the topology; a node must have one place", in_quotes(host)));
    }
    const SlurmTriple at{region.anchor[0] + i % dims[0], region.anchor[1] + i / dims[0] % dims[1],
                         region.anchor[2] + i / (dims[0] * dims[1])};
    const std::int64_t place = at[0] + unit.dims[0] * (at[1] + unit.dims[1] * at[2]);
    const auto [other, is_new] = unit.nodes.emplace(place, host);
    if (!is_new) {
      return bad(region.line, fmt::format("nodes: {} and {} are both at ({}); regions must not overlap",
                                          in_quotes(other->second), in_quotes(host), fmt::join(at, ",")));
    }
  }
  return {};
}

/// The only unit with all nodes of the job; null: none, several or no job.
const SlurmToruses::Unit* SlurmToruses::unit_of(const std::vector<std::string>& job) const {
  const HostNames wanted(job);
  const Unit* found = nullptr;
  for (const Unit& unit : units_) {
    std::size_t count = 0;
    for (const auto& [place, host] : unit.nodes) count += wanted.has(host) ? 1 : 0;
    if (count == 0 || count < wanted.size()) continue;
    if (found != nullptr) return nullptr;
    found = &unit;
  }
  return found;
}

Result<ClusterTopology> SlurmToruses::finish(std::string_view which, const SlurmOptions& options,
                                             std::vector<std::string> notes) {
  const auto shown = [&] {
    constexpr std::size_t kMostShown = 8;
    std::vector<std::string> all;
    for (const Unit& unit : units_) {
      if (all.size() == kMostShown) break;
      all.push_back(in_quotes(unit.name));
    }
    return fmt::format("{}{}", fmt::join(all, ", "), units_.size() > kMostShown ? ", ..." : "");
  };
  auto chosen = which.empty() ? units_.begin() : std::ranges::find(units_, which, &Unit::name);
  const Unit* const of_job = which.empty() ? unit_of(options.job) : nullptr;
  if (of_job != nullptr) chosen = units_.begin() + (of_job - units_.data());
  if (chosen == units_.end()) {
    return bad(units_.front().line,
               fmt::format("unknown {} {}; expected one of {}", kind_, in_quotes(which), shown()));
  }
  if (which.empty() && of_job == nullptr && units_.size() > 1) {
    return bad(
        units_[1].line,
        fmt::format(
            "no cable joins the {1}s {0}; choose one by --slurm-topology {2}, of a topology.yaml TOPOLOGY:{2}",
            shown(), kind_, chosen->name),
        Code::kUnsupported);
  }
  ClusterTopology made;
  std::vector<std::int64_t> used;
  for (const auto& [place, name] : chosen->nodes) {
    used.push_back(place);
    made.nodes.push_back(name);
  }
  std::string spec = "switch:1";  // a single node has no cable
  if (places(chosen->dims) > 1) {
    spec = fmt::format("torus:{}", fmt::join(chosen->dims, "x"));
    if (static_cast<std::int64_t>(used.size()) < places(chosen->dims))
      spec += fmt::format("[{}]", part_text(used));
  }
  auto topology = parse(spec);
  if (!topology) return bad(chosen->line, topology.error().message);
  made.topology = std::move(*topology);
  made.notes = std::move(notes);
  if (places(chosen->dims) > 1) {
    made.notes.push_back(
        fmt::format("{}: Slurm does not define which NIC leads where; assuming NIC 0 for x+, NIC 1 "
                    "for x-, and so on; compare with hips topo -v",
                    file_.where(chosen->line)));
  }
  if (std::ranges::count(chosen->dims, 2) > 0) {
    made.notes.push_back(
        fmt::format("{}: assuming two cables, + and -, for a side of 2; if there is one, use mesh:",
                    file_.where(chosen->line)));
  }
  if (auto given = give_level_rates(made, file_.name, options.tier_rates); !given) return fail(given.error());
  return made;
}

}  // namespace hips::topology
