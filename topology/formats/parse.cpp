#include "topology/formats/parse.hpp"

#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/families/family.hpp"
#include "topology/formats/part.hpp"
#include "topology/formats/topology_file.hpp"
#include "topology/rates.hpp"

namespace hips::topology {

namespace {

/// One example of each family: "bcube:3,1, torus:4x4, ... or switch:8".
std::string examples() {
  std::vector<std::string_view> all;
  for (const FamilyEntry* entry : families()) all.push_back(entry->example);
  return fmt::format("{} or {}", fmt::join(all.begin(), all.end() - 1, ", "), all.back());
}

/// Removes "<separator><rest>" from the end of `text`. False if there is no separator.
bool cut_suffix(std::string_view& text, char separator, std::string_view& suffix) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return false;
  suffix = text.substr(at + 1);
  text = text.substr(0, at);
  return true;
}

std::string ranks_text(std::int64_t ranks) {
  return fmt::format(", {} ranks per server", ranks);
}

/// Reads the rate of a spec, in bytes per second.
Result<double> read_rate_of(std::string_view spec, std::string_view text) {
  if (text.empty())
    return bad_spec(spec, fmt::format("the rate after \"@\" is missing; it must be {}", kRightRate));
  if (const auto rate = read_rate(text)) return *rate;
  return bad_spec(spec, fmt::format("the rate is {}; it must be {}", in_quotes(text), kRightRate));
}

Result<const FamilyEntry*> family_of(std::string_view spec, std::string_view keyword) {
  for (const FamilyEntry* entry : families()) {
    if (entry->keyword == keyword) return entry;
  }
  // What has no ":" may be meant as the name of a file.
  const bool is_name =
      spec.find(':') == std::string_view::npos || keyword.find('.') != std::string_view::npos;
  return bad_spec(
      spec, fmt::format("unknown family {}{}; write a spec such as {}", in_quotes(is_name ? spec : keyword),
                        is_name ? ", and no file of that name" : "", examples()));
}

/// Sets the rate of a spec, none for the default, and the default latency on all levels.
Result<void> set_rates(std::string_view spec, std::optional<std::string_view> rate, Topology& topology) {
  double bytes_per_s = kDefaultBandwidthBytesPerS;
  if (rate) {
    const auto read = read_rate_of(spec, *rate);
    if (!read) return fail(read.error());
    // A topology has one canonical spec: it omits the default rate, and the rate of a topology without
    // levels.
    if (*read != bytes_per_s && !topology.levels.empty()) topology.spec += "@" + rate_text(*read);
    bytes_per_s = *read;
  }
  for (Level& level : topology.levels) {
    level.bandwidth_bytes_per_s = bytes_per_s;
    level.latency_ns = kDefaultLatencyNs;
  }
  return {};
}

}  // namespace

// The ranks of a server are the innermost digit: their traffic stays in the server.
Result<void> add_node_level(std::string_view spec, std::string_view suffix, Topology& topology) {
  const std::int64_t servers = topology.num_servers();
  const auto ranks = read_number(spec, "the number of ranks on each server", suffix, 1, kMaxRanks);
  if (!ranks) return fail(ranks.error());
  if (*ranks > kMaxRanks / servers) {
    return bad_spec(spec, fmt::format("{} ranks on each of {} servers are too many ranks (valid: up to {})",
                                      *ranks, servers, kMaxRanks));
  }
  if (*ranks == 1) return {};
  Level node;
  node.name = "node";
  node.radix = *ranks;
  node.kind = LevelKind::kNode;
  topology.levels.insert(topology.levels.begin(), std::move(node));
  topology.ranks_per_server = static_cast<std::int32_t>(*ranks);
  topology.spec += fmt::format("/{}", *ranks);
  topology.name += ranks_text(*ranks);
  return {};
}

Topology without_node_level(Topology topology) {
  const auto cut = [](std::string& text, const std::string& end) {
    if (text.ends_with(end)) text.resize(text.size() - end.size());
  };
  cut(topology.spec, fmt::format("/{}", topology.ranks_per_server));
  cut(topology.name, ranks_text(topology.ranks_per_server));
  topology.levels.erase(topology.levels.begin());
  topology.ranks_per_server = 1;
  return topology;
}

Result<Topology> parse(std::string_view text) {
  if (text.empty())
    return bad_spec(text, fmt::format("the spec is empty; write a spec such as {}", examples()));
  if (const auto path = file_spec(text)) {
    auto file = read_file_spec(*path);
    if (!file) return fail(file.error());
    return std::move(file->topology);
  }
  Spec spec;
  spec.text = text;
  std::string_view rest = text;
  std::string_view ranks, rate;
  const bool has_ranks = cut_suffix(rest, '/', ranks);
  const bool has_rate = cut_suffix(rest, '@', rate);
  std::string_view in_use;
  const bool has_part = cut_suffix(rest, '[', in_use);

  const std::size_t colon = rest.find(':');
  spec.family = rest.substr(0, colon);
  const auto found = family_of(text, spec.family);
  if (!found) return fail(found.error());
  const FamilyEntry* const family = *found;
  spec.usage = family->usage;
  if (colon == std::string_view::npos) {
    return bad_spec(text,
                    fmt::format("a \":\" and numbers must follow {}; write {}", spec.family, spec.usage));
  }
  spec.args = rest.substr(colon + 1);
  if (spec.args.empty()) {
    return bad_spec(text, fmt::format("nothing follows \"{}:\"; write {}", spec.family, spec.usage));
  }
  if (has_ranks && ranks.find('@') != std::string_view::npos) {
    return bad_spec(text, "the rate is after the ranks; write it before them, as in bcube:3,1@25Gb/2");
  }

  Result<Topology> topology = family->make(spec);
  if (!topology) return topology;
  topology->family = family->family;

  if (has_part) {
    if (!in_use.ends_with(']'))
      return bad_spec(text, "the list of servers has no closing \"]\"; write it as in bcube:3,1[0-3,7]");
    in_use.remove_suffix(1);
    if (auto taken = take_part(text, in_use, *topology); !taken) return fail(taken.error());
  }

  const auto given_rate = has_rate ? std::optional(rate) : std::nullopt;
  if (auto set = set_rates(text, given_rate, *topology); !set) return fail(set.error());
  if (has_ranks) {
    if (auto added = add_node_level(text, ranks, *topology); !added) return fail(added.error());
  }
  return topology;
}

}  // namespace hips::topology

namespace hips {

Topology parse_topology(std::string_view spec) {
  return value_or_throw(topology::parse(spec));
}

}  // namespace hips
