#include "topology/discover/recognise.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/formats/parse.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

/// The server that a cable from a NIC leads to; none if there is no cable, or it ends at a NIC other than
/// `end`.
std::optional<std::size_t> along(const Segments& seen, std::size_t server, std::size_t nic, std::size_t end) {
  if (nic >= seen.of[server].size() || seen.of[server][nic] == Segments::kNone) return std::nullopt;
  const auto& members = seen.members[static_cast<std::size_t>(seen.of[server][nic])];
  if (members.size() != 2) return std::nullopt;
  const NicId& far = members[0] == NicId{server, nic} ? members[1] : members[0];
  return far.second == end ? std::optional(far.first) : std::nullopt;
}

/// The length of the ring or line of server 0, if NIC `plus` leads forward and `plus` + 1 back.
std::size_t side_along(const Segments& seen, std::size_t plus) {
  std::size_t side = 1;
  auto at = along(seen, 0, plus, plus + 1);
  for (; at && *at != 0 && side <= seen.num_servers(); at = along(seen, *at, plus, plus + 1)) ++side;
  if (at) return side;  // a ring
  at = along(seen, 0, plus + 1, plus);
  for (; at && side <= seen.num_servers(); at = along(seen, *at, plus + 1, plus)) ++side;
  return side;
}

/// Lists `number` as products of `count` descending factors of at most `most`.
void factor(std::size_t number, std::size_t count, std::size_t most, std::vector<std::size_t>& factors,
            std::vector<std::string>& out) {
  if (count == 0) {
    if (number == 1) out.push_back(fmt::format("{}", fmt::join(factors, "x")));
    return;
  }
  for (std::size_t side = std::min(number, most); side >= 2; --side) {
    if (number % side != 0) continue;
    factors.push_back(side);
    factor(number / side, count - 1, side, factors, out);
    factors.pop_back();
  }
}

struct Degrees {
  std::size_t least = SIZE_MAX, most = 0;
};

Degrees degrees_of(const Segments& seen) {
  Degrees degrees;
  for (std::size_t server = 0; server < seen.num_servers(); ++server) {
    degrees.least = std::min(degrees.least, seen.degree(server));
    degrees.most = std::max(degrees.most, seen.degree(server));
  }
  return degrees;
}

/// The specs that the numbers of servers, NICs and segments allow.
std::vector<std::string> candidates(const Segments& seen, NicOrder order) {
  std::vector<std::string> specs;
  const std::size_t servers = seen.num_servers();
  const auto [least, most] = degrees_of(seen);
  if (least == 0) return specs;
  const bool cables = std::ranges::all_of(seen.members, [](const auto& one) { return one.size() == 2; });
  const auto sides = [&](std::size_t count) {
    std::vector<std::string> all;
    if (order == NicOrder::kAny) {
      std::vector<std::size_t> factors;
      factor(servers, count, servers, factors, all);
      return all;
    }
    std::vector<std::size_t> walked;
    std::size_t product = 1;
    for (std::size_t d = 0; d < count; ++d) {
      walked.push_back(side_along(seen, 2 * d));
      product *= walked.back();
    }
    if (product == servers && std::ranges::all_of(walked, [](std::size_t side) { return side > 1; }))
      all.push_back(fmt::format("{}", fmt::join(walked, "x")));
    return all;
  };
  if (cables && least == most && most % 2 == 0)
    for (const std::string& side : sides(most / 2)) specs.push_back("torus:" + side);
  // A corner has one NIC for each dimension.
  if (cables)
    for (const std::string& side : sides(least)) specs.push_back("mesh:" + side);
  if (least == most && most >= 2) {
    std::vector<std::size_t> radices;
    for (const std::int32_t segment : seen.of.front())
      if (segment != Segments::kNone)
        radices.push_back(seen.members[static_cast<std::size_t>(segment)].size());
    std::size_t product = 1;
    for (const std::size_t radix : radices) product = product > servers ? product : product * radix;
    if (product == servers) specs.push_back(fmt::format("bcube:{}", fmt::join(radices, "x")));
  }
  return specs;
}

/// A rack in which NIC `rails[j]` of every server is rail j; cut to the most NICs of a server.
Match rack_of(std::size_t servers, std::vector<std::size_t> rails) {
  Match match;
  rails.resize(std::min(rails.size(), static_cast<std::size_t>(kMaxRails)));
  match.topology =
      value_or_throw(parse(rails.size() == 1 ? fmt::format("switch:{}", servers)
                                             : fmt::format("rail:{},{}", servers, rails.size())));
  for (std::size_t server = 0; server < servers; ++server) {
    match.placement.server_of.push_back(server);
    match.placement.nic_of.emplace_back(rails.begin(), rails.end());
  }
  return match;
}

}  // namespace

Compressed compress(const Segments& seen) {
  std::set<std::size_t> used;
  for (const auto& members : seen.members)
    for (const auto& [server, nic] : members) used.insert(nic);
  Compressed result;
  result.nics.assign(used.begin(), used.end());
  for (const auto& nics : seen.of) {
    auto& row = result.segments.of.emplace_back();
    for (const std::size_t nic : result.nics) row.push_back(nic < nics.size() ? nics[nic] : Segments::kNone);
  }
  result.segments.compact();
  return result;
}

void restore(Placement& placement, const std::vector<std::size_t>& nics) {
  for (auto& rails : placement.nic_of)
    for (std::int32_t& nic : rails)
      if (nic >= 0) nic = static_cast<std::int32_t>(nics[static_cast<std::size_t>(nic)]);
}

Segments without_spanning(const Segments& seen) {
  Segments rest = seen;
  for (const auto& members : seen.members) {
    std::set<std::size_t> servers;
    for (const NicId& member : members) servers.insert(member.first);
    if (servers.size() < seen.num_servers()) continue;
    for (const auto& [server, nic] : members) rest.of[server][nic] = Segments::kNone;
  }
  rest.compact();
  return rest;
}

std::optional<Match> match_rack(const Segments& seen) {
  const std::size_t servers = seen.num_servers();
  // Several NICs of a server may lead to one switch: the number of the NIC then distinguishes rails.
  std::map<std::size_t, std::vector<std::set<std::size_t>>> rails_of;  // by segment: NICs of each server
  for (std::size_t i = 0; i < seen.members.size(); ++i) {
    auto& by_server = rails_of[i];
    by_server.resize(servers);
    for (const auto& [server, nic] : seen.members[i]) by_server[server].insert(nic);
    for (const auto& nics : by_server)
      if (nics.empty() || nics.size() != by_server.front().size()) return std::nullopt;
  }
  if (rails_of.empty()) return std::nullopt;
  Match match;
  std::vector<std::pair<std::size_t, std::size_t>> rails;  // NIC of server 0, segment
  for (const auto& [segment, by_server] : rails_of)
    for (const std::size_t nic : by_server.front()) rails.emplace_back(nic, segment);
  std::ranges::sort(rails);
  rails.resize(std::min(rails.size(), static_cast<std::size_t>(kMaxRails)));
  match = rack_of(servers, std::vector<std::size_t>(rails.size()));
  for (std::size_t server = 0; server < servers; ++server) {
    std::map<std::size_t, std::set<std::size_t>> left;  // by segment
    for (const auto& [segment, by_server] : rails_of) left.emplace(segment, by_server[server]);
    for (std::size_t rail = 0; rail < rails.size(); ++rail) {
      auto& nics = left[rails[rail].second];
      // The number as at server 0, if this NIC is in the segment.
      auto at = nics.find(rails[rail].first);
      if (at == nics.end()) at = nics.begin();
      match.placement.nic_of[server][rail] = static_cast<std::int32_t>(*at);
      nics.erase(at);
    }
  }
  return match;
}

std::optional<Match> match_server_centric(const Segments& seen) {
  if (seen.members.empty()) return std::nullopt;
  const Compressed compressed = compress(seen);
  for (const NicOrder order : {NicOrder::kAsNumbered, NicOrder::kAny}) {
    std::optional<Match> found;
    for (const std::string& spec : candidates(compressed.segments, order)) {
      auto topology = parse(spec);
      if (!topology || topology->num_links > static_cast<std::int64_t>(kMostAdjacent)) continue;
      auto placement = place(segments_of(*topology), compressed.segments, order);
      if (!placement) continue;
      if (found) {
        found->equals.push_back(topology->spec);
        continue;
      }
      restore(*placement, compressed.nics);
      found = Match{*std::move(topology), *std::move(placement), {}};
    }
    if (found) return found;
  }
  return std::nullopt;
}

Match nearest_rack(const Segments& seen) {
  const std::size_t servers = seen.num_servers();
  std::size_t num_nics = 1;
  for (const auto& nics : seen.of) num_nics = std::max(num_nics, nics.size());
  std::vector<std::size_t> rails;
  std::vector<std::int32_t> segment_of;
  std::set<std::size_t> covered;
  for (std::size_t nic = 0; nic < num_nics && rails.size() < static_cast<std::size_t>(kMaxRails); ++nic) {
    std::map<std::int32_t, std::size_t> sizes;
    for (const auto& nics : seen.of)
      if (nic < nics.size() && nics[nic] != Segments::kNone) ++sizes[nics[nic]];
    const auto largest = std::ranges::max_element(sizes, {}, [](const auto& one) { return one.second; });
    if (largest == sizes.end() || 2 * largest->second <= servers) continue;
    rails.push_back(nic);
    segment_of.push_back(largest->first);
    for (std::size_t server = 0; server < servers; ++server)
      if (nic < seen.of[server].size() && seen.of[server][nic] == largest->first) covered.insert(server);
  }
  // A server on no rail could not reach the others: then everything is guessed.
  if (covered.size() < servers) return rack_of(servers, {0});
  Match match = rack_of(servers, rails);
  for (std::size_t server = 0; server < servers; ++server) {
    for (std::size_t rail = 0; rail < rails.size(); ++rail) {
      const auto& nics = seen.of[server];
      if (rails[rail] >= nics.size() || nics[rails[rail]] != segment_of[rail])
        match.placement.nic_of[server][rail] = -1;
    }
  }
  return match;
}

}  // namespace hips::topology
