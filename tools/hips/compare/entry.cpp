#include "tools/hips/compare/entry.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/plan/builder.hpp"
#include "topology/levels.hpp"
#include "topology/rates.hpp"
#include "topology/spec.hpp"

namespace hips::compare {
namespace {

constexpr LevelPattern kMesh{.scatter = Pattern::kMesh, .gather = Pattern::kMesh};
constexpr LevelPattern kRing{.scatter = Pattern::kRing, .gather = Pattern::kRing};
constexpr LevelPattern kPsOne{.scatter = Pattern::kPs, .gather = Pattern::kPs, .num_leaders = 1};

/// Does a mesh of the default plan cause incast? This is the condition of cost::select() for trying rings.
bool has_incast(const Topology& topology) {
  // Parts of a topology use trees instead of meshes.
  if (!topology.part.empty() || topology.family == Family::kGraph) return false;
  return std::ranges::any_of(topology.levels, [](const Level& level) {
    return level.kind != LevelKind::kNode && !topology::is_of_cables(level) && level.radix > 2;
  });
}

/// Is an algorithm meant for other kinds of wiring? Then "all" omits it; naming it shows the reason.
bool is_inapplicable(const plan::Algorithm& algorithm, const Topology& topology) {
  const bool has_rings =
      std::ranges::any_of(topology.levels, [](const Level& level) { return level.kind == LevelKind::kRing; });
  const bool part_of_grid = !topology.part.empty() && topology.servers_relay;
  return (algorithm.torus_only && !has_rings) || (algorithm.needs_cycle && topology::has_lines(topology)) ||
         (part_of_grid && !algorithm.takes_any_graph);
}

/// Parses the number of leaders or rings after the colon.
Result<std::int32_t> read_count(std::string_view entry, std::string_view value, std::string_view what) {
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < 1) {
    return fail(Code::kInvalidArgument,
                fmt::format("--algorithms: {}: invalid number {} of {}; write 1 or more",
                            topology::in_quotes(entry), topology::in_quotes(value), what));
  }
  return number;
}

Result<Entry> parse_entry(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  Entry entry;
  entry.name = std::string(text);
  entry.request.algorithm = std::string(name);
  std::vector<std::string_view> names;
  for (const plan::Algorithm& algorithm : plan::algorithms()) names.push_back(algorithm.name);
  if (std::ranges::find(names, name) == names.end()) {
    return fail(Code::kInvalidArgument,
                fmt::format("--algorithms: unknown algorithm {}; expected all or any of {}",
                            topology::in_quotes(name), fmt::join(names, ", ")));
  }
  if (colon == std::string_view::npos) return entry;
  const std::string_view value = text.substr(colon + 1);
  if (name == "hips") {
    auto patterns = plan::parse_patterns(value);
    if (!patterns) {
      return fail(Code::kInvalidArgument,
                  fmt::format("--algorithms: {}: {}", topology::in_quotes(text), patterns.error().message));
    }
    entry.request.patterns = std::move(*patterns);
  } else if (name == "flat-ps") {
    const auto leaders = read_count(text, value, "leaders");
    if (!leaders) return fail(leaders.error());
    entry.request.num_leaders = *leaders;
  } else if (name == "flat-ring") {
    const auto rings = read_count(text, value, "rings");
    if (!rings) return fail(rings.error());
    entry.request.num_rings = *rings;
  } else {
    return fail(
        Code::kInvalidArgument,
        fmt::format("--algorithms: {}: {} has no parameter; hips takes a pattern, flat-ps a number of "
                    "leaders, flat-ring a number of rings",
                    topology::in_quotes(text), name));
  }
  return entry;
}

}  // namespace

Result<std::vector<Entry>> parse_entries(std::string_view text, const Topology& topology) {
  std::vector<Entry> entries;
  const auto add = [&](Entry entry) {
    entry.wiring = topology.spec;
    entries.push_back(std::move(entry));
  };
  const auto is_listed = [&](std::string_view name) {
    return std::ranges::any_of(entries, [&](const Entry& other) { return other.name == name; });
  };
  const auto add_all = [&] {
    for (const plan::Algorithm& algorithm : plan::algorithms()) {
      const std::string name(algorithm.name);
      if (is_inapplicable(algorithm, topology)) continue;
      if (!is_listed(name)) add({.name = name, .request = {.algorithm = name}});
      if (name == "hips" && has_incast(topology) && !is_listed("hips:ring"))
        add({.name = "hips:ring", .request = {.patterns = {kRing}}});
    }
  };
  const auto parts = topology::split(text, ',');
  for (const std::string_view part : parts) {
    if (part == "all") {
      add_all();
      continue;
    }
    auto entry = parse_entry(part);
    if (!entry) return fail(entry.error());
    const bool among_all = std::ranges::find(parts, "all") != parts.end();
    if (is_listed(entry->name)) {
      if (among_all) continue;
      return fail(Code::kInvalidArgument,
                  fmt::format("--algorithms: {} occurs twice; remove one", topology::in_quotes(part)));
    }
    add(std::move(*entry));
  }
  return entries;
}

std::vector<Entry> baseline_entries(const Topology& topology) {
  // With its rate and ranks.
  const auto levels = topology::network_levels(topology);
  std::string rates;
  if (!levels.empty() && levels.front().bandwidth_bytes_per_s != kDefaultBandwidthBytesPerS)
    rates = "@" + topology::rate_text(levels.front().bandwidth_bytes_per_s);
  if (topology.ranks_per_server > 1) rates += fmt::format("/{}", topology.ranks_per_server);
  std::vector<Entry> entries;
  const auto add = [&](std::string_view name, Rail nics, PlanRequest request) {
    entries.push_back({.name = fmt::format("{}, {} NIC{}", name, nics, nics == 1 ? "" : "s"),
                       .request = std::move(request),
                       .baseline = true,
                       .wiring = nics == 1
                                     ? fmt::format("switch:{}{}", topology.num_servers(), rates)
                                     : fmt::format("rail:{},{}{}", topology.num_servers(), nics, rates)});
  };
  const Rail nics = std::max<Rail>(1, topology.num_rails);
  add("flat-ring", 1, {.algorithm = "flat-ring"});
  if (nics > 1) add("flat-ring", nics, {.algorithm = "flat-ring", .num_rings = nics});
  add("flat-mesh", 1, {.algorithm = "flat-mesh"});
  if (nics > 1) add("flat-mesh", nics, {.patterns = {kMesh}});
  add("flat-ps", 1, {.algorithm = "flat-ps"});
  if (nics > 1) add("flat-ps", nics, {.patterns = {kPsOne}});
  return entries;
}

}  // namespace hips::compare
