#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/discover/recognise.hpp"
#include "topology/formats/parse.hpp"
#include "topology/formats/part.hpp"
#include "topology/spec.hpp"
#include "topology/union_find.hpp"

// A part of a BCube: the servers of a job, which may be any of the whole.

namespace hips::topology {
namespace {

/// By server, one digit for each NIC number.
using Digits = std::vector<std::vector<std::int64_t>>;

/// Computes digits from connectivity: two servers have the same digit l if they are joined without NICs l, as
/// only these change digit l. Values are numbered in the order of servers.
Digits digits_of(const Segments& seen, std::size_t levels) {
  Digits digits(seen.num_servers(), std::vector<std::int64_t>(levels));
  for (std::size_t level = 0; level < levels; ++level) {
    UnionFind joined(seen.num_servers());
    for (const auto& members : seen.members)
      if (members.front().second != level)
        for (const NicId& member : members) joined.join(member.first, members.front().first);
    std::map<std::size_t, std::int64_t> values;
    for (std::size_t server = 0; server < seen.num_servers(); ++server)
      digits[server][level] =
          values.try_emplace(joined.find(server), static_cast<std::int64_t>(values.size())).first->second;
  }
  return digits;
}

/// Checks that exactly the servers that differ only in digit l share a segment of NICs l.
bool is_part(const Segments& seen, const Digits& digits, std::size_t levels) {
  if (std::set(digits.begin(), digits.end()).size() < digits.size()) return false;
  for (std::size_t level = 0; level < levels; ++level) {
    std::map<std::vector<std::int64_t>, std::set<std::int32_t>> groups;
    std::set<std::int32_t> segments;
    for (std::size_t server = 0; server < digits.size(); ++server) {
      auto others = digits[server];
      others[level] = 0;
      groups[others].insert(seen.of[server][level]);
      segments.insert(seen.of[server][level]);
    }
    // A group of one server has no segment.
    segments.erase(Segments::kNone);
    std::size_t num_joined = 0;
    for (const auto& [others, its] : groups) {
      if (its.size() != 1) return false;
      num_joined += its.contains(Segments::kNone) ? 0 : 1;
    }
    if (num_joined != segments.size()) return false;
    // Those without a segment are all alone in their groups.
    std::map<std::vector<std::int64_t>, std::size_t> alone;
    for (std::size_t server = 0; server < digits.size(); ++server) {
      if (seen.of[server][level] != Segments::kNone) continue;
      auto others = digits[server];
      others[level] = 0;
      if (++alone[others] > 1) return false;
    }
  }
  return true;
}

bool is_connected(const Segments& seen) {
  UnionFind joined(seen.num_servers());
  for (const auto& members : seen.members)
    for (const NicId& member : members) joined.join(member.first, members.front().first);
  for (std::size_t server = 1; server < seen.num_servers(); ++server)
    if (joined.find(server) != joined.find(0)) return false;
  return true;
}

}  // namespace

std::optional<Match> match_bcube_part(const Segments& all) {
  const Compressed compressed = compress(all);
  const Segments& seen = compressed.segments;
  const std::size_t levels = compressed.nics.size();
  if (levels < 2 || !is_connected(seen)) return std::nullopt;
  for (const auto& members : seen.members)
    for (const NicId& member : members)
      if (member.second != members.front().second) return std::nullopt;
  const Digits digits = digits_of(seen, levels);
  if (!is_part(seen, digits, levels)) return std::nullopt;
  std::vector<std::int64_t> radices(levels, 1);
  std::int64_t whole = 1;
  for (std::size_t level = 0; level < levels; ++level) {
    for (const auto& each : digits) radices[level] = std::max(radices[level], each[level] + 1);
    if (radices[level] < 2 || whole > kMaxRanks / radices[level]) return std::nullopt;
    whole *= radices[level];
  }
  std::map<std::int64_t, std::size_t> places;
  for (std::size_t server = 0; server < digits.size(); ++server) {
    std::int64_t number = 0;
    for (std::size_t level = levels; level-- > 0;) number = number * radices[level] + digits[server][level];
    places[number] = server;
  }
  std::vector<std::int64_t> part;
  Match match;
  for (const auto& [number, server] : places) {
    part.push_back(number);
    match.placement.server_of.push_back(server);
    match.placement.nic_of.emplace_back(levels);
    std::iota(match.placement.nic_of.back().begin(), match.placement.nic_of.back().end(), 0);
  }
  auto topology = parse(fmt::format("bcube:{}[{}]", fmt::join(radices, "x"), part_text(part)));
  if (!topology) return std::nullopt;
  match.topology = *std::move(topology);
  restore(match.placement, compressed.nics);
  return match;
}

}  // namespace hips::topology
