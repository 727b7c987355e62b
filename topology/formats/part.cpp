#include "topology/formats/part.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "topology/families/family.hpp"
#include "topology/spec.hpp"
#include "topology/walk.hpp"

namespace hips::topology {
namespace {

/// The number of cables between servers of the part, to switches, and between switches.
std::int64_t links_of_part(const Topology& topology, std::int64_t links_of_whole) {
  const auto used = static_cast<std::int64_t>(topology.part.size());
  if (topology.family != Family::kTorus && topology.family != Family::kMesh) {
    const std::int64_t ends = topology.num_rails;
    return links_of_whole - (topology.num_whole_servers() - used) * ends;
  }
  std::int64_t links = 0;
  for (Rank rank = 0; rank < topology.num_servers(); ++rank) {
    visit_neighbours(topology, rank, [&](const Hop& hop) {
      const Level& level = topology.levels[static_cast<std::size_t>(hop.level)];
      if (hop.out == level.rails.front()) ++links;
    });
  }
  return links;
}

}  // namespace

std::string part_text(std::span<const std::int64_t> servers) {
  std::string text;
  for (std::size_t i = 0; i < servers.size();) {
    std::size_t end = i + 1;
    while (end < servers.size() && servers[end] == servers[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(servers[i]);
    if (end - i > 1) text += fmt::format("-{}", servers[end - 1]);
    i = end;
  }
  return text;
}

Result<void> take_part(std::string_view spec, std::string_view text, Topology& topology) {
  const std::int64_t whole = topology.num_whole_servers();
  std::vector<std::int64_t> servers;
  for (const std::string_view range : split(text, ',')) {
    const std::size_t dash = range.find('-');
    const auto first = read_number(spec, "a server in use", range.substr(0, dash), 0, whole - 1);
    if (!first) return fail(first.error());
    auto last = *first;
    if (dash != std::string_view::npos) {
      const auto read =
          read_number(spec, "the last of a range of servers", range.substr(dash + 1), *first, whole - 1);
      if (!read) return fail(read.error());
      last = *read;
    }
    // Ranges may overlap. This limits the memory for hostile specs with many ranges.
    if (static_cast<std::int64_t>(servers.size()) + last - *first >= whole)
      return bad_spec(spec,
                      fmt::format("more servers are listed than the {} that exist; list each once", whole));
    for (std::int64_t server = *first; server <= last; ++server) servers.push_back(server);
  }
  std::ranges::sort(servers);
  if (const auto twice = std::ranges::adjacent_find(servers); twice != servers.end())
    return bad_spec(spec, fmt::format("server {} is listed twice; list each once", *twice));
  if (static_cast<std::int64_t>(servers.size()) == whole) return {};
  topology.part = std::move(servers);
  topology.num_links = links_of_part(topology, topology.num_links);
  topology.spec += fmt::format("[{}]", part_text(topology.part));
  topology.name += fmt::format(", {} of {} servers", topology.part.size(), whole);
  return {};
}

}  // namespace hips::topology
