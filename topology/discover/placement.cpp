#include "topology/discover/placement.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

namespace hips::topology {
namespace {

constexpr std::size_t kUnplaced = SIZE_MAX;

/// A server that shares segments with another one.
struct Neighbour {
  std::size_t server = 0;
  std::uint64_t kind = 0;  ///< a hash of all segments that the two share
};

using Adjacency = std::vector<std::vector<Neighbour>>;

/// A hash of the size of a shared segment and, with NicOrder::kAsNumbered, of the NICs at both ends. Hashes
/// are added, since two servers may share several segments.
std::uint64_t kind_of(std::size_t size, std::size_t own_nic, std::size_t other_nic, NicOrder order) {
  std::uint64_t word = size;
  if (order == NicOrder::kAsNumbered) word = word << 16U | own_nic << 8U | other_nic;
  // Mix the bits, so that sums of different kinds differ.
  word = (word + 1) * 0x9e3779b97f4a7c15U;
  return (word ^ word >> 29U) * 0xbf58476d1ce4e5b9U;
}

std::optional<Adjacency> adjacency_of(const Segments& segments, NicOrder order) {
  std::size_t pairs = 0;
  for (const auto& members : segments.members) pairs += members.size() * members.size();
  if (pairs > kMostAdjacent) return std::nullopt;
  Adjacency adjacency(segments.num_servers());
  for (std::size_t server = 0; server < segments.num_servers(); ++server) {
    std::map<std::size_t, std::uint64_t> kinds;
    for (std::size_t nic = 0; nic < segments.of[server].size(); ++nic) {
      const std::int32_t segment = segments.of[server][nic];
      if (segment == Segments::kNone) continue;
      const auto& members = segments.members[static_cast<std::size_t>(segment)];
      for (const auto& [other, other_nic] : members)
        if (other != server) kinds[other] += kind_of(members.size(), nic, other_nic, order);
    }
    for (const auto& [other, kind] : kinds) adjacency[server].push_back({other, kind});
  }
  return adjacency;
}

/// The distance of each server from the first server of its component.
std::vector<std::size_t> distances_in(const Adjacency& family) {
  std::vector<std::size_t> distances(family.size(), kUnplaced), front;
  for (std::size_t start = 0; start < family.size(); ++start) {
    if (distances[start] != kUnplaced) continue;
    distances[start] = 0;
    front.assign(1, start);
    for (std::size_t i = 0; i < front.size(); ++i) {
      for (const Neighbour& neighbour : family[front[i]]) {
        if (distances[neighbour.server] != kUnplaced) continue;
        distances[neighbour.server] = distances[front[i]] + 1;
        front.push_back(neighbour.server);
      }
    }
  }
  return distances;
}

/// The order in which the family's servers are placed: each with as many neighbours before it as possible, of
/// which one is its anchor. Of equal ones, the nearest to the first server is first: the squares around it
/// close at once and fix the directions, while a long ring would fit along many wrong paths.
struct Order {
  std::vector<std::size_t> servers;
  std::vector<std::size_t> anchors;  ///< by position in `servers`; kUnplaced: none
};

Order order_of(const Adjacency& family) {
  Order order;
  std::vector<std::size_t> placed(family.size());  // neighbours before it
  std::vector<std::size_t> anchor(family.size(), kUnplaced);
  std::vector<bool> done(family.size());
  const std::vector<std::size_t> distances = distances_in(family);
  using Entry = std::pair<std::size_t, std::size_t>;  // placed neighbours, server
  const auto later = [&](const Entry& a, const Entry& b) {
    if (a.first != b.first) return a.first < b.first;
    const std::size_t of_a = distances[a.second], of_b = distances[b.second];
    return of_a != of_b ? of_a > of_b : a.second > b.second;
  };
  std::priority_queue<Entry, std::vector<Entry>, decltype(later)> next(later);
  for (std::size_t server = 0; server < family.size(); ++server) next.emplace(0, server);
  while (!next.empty()) {
    const auto [count, server] = next.top();
    next.pop();
    if (done[server] || count != placed[server]) continue;
    done[server] = true;
    order.servers.push_back(server);
    order.anchors.push_back(anchor[server]);
    for (const Neighbour& neighbour : family[server]) {
      if (done[neighbour.server]) continue;
      if (anchor[neighbour.server] == kUnplaced) anchor[neighbour.server] = server;
      next.emplace(++placed[neighbour.server], neighbour.server);
    }
  }
  return order;
}

class Search {
 public:
  Search(const Adjacency& family, const Adjacency& seen)
      : family_(family),
        seen_(seen),
        order_(order_of(family)),
        image_(family.size(), kUnplaced),
        origin_(seen.size(), kUnplaced) {}

  std::optional<std::vector<std::size_t>> run() {
    // Enough for every graph of a family; others would take too long.
    constexpr std::size_t kBaseSteps = 200'000;
    const std::size_t most = kBaseSteps + 64 * family_.size();
    std::vector<std::size_t> tried(family_.size());
    std::size_t at = 0, steps = 0;
    while (at < order_.servers.size()) {
      const std::size_t server = order_.servers[at];
      bool found = false;
      while (const auto candidate = candidate_of(at, tried[at])) {
        ++tried[at];
        if (++steps > most) return std::nullopt;
        if (!fits(server, *candidate)) continue;
        image_[server] = *candidate;
        origin_[*candidate] = server;
        found = true;
        break;
      }
      if (found) {
        ++at;
        continue;
      }
      tried[at] = 0;
      if (at == 0) return std::nullopt;
      const std::size_t before = order_.servers[--at];
      origin_[image_[before]] = kUnplaced;
      image_[before] = kUnplaced;
    }
    return image_;
  }

 private:
  /// The n-th server to try: the one with the same number, then the neighbours of the anchor's server.
  [[nodiscard]] std::optional<std::size_t> candidate_of(std::size_t at, std::size_t n) const {
    if (n == 0) return order_.servers[at];
    const std::size_t anchor = order_.anchors[at];
    if (anchor == kUnplaced) return n - 1 < seen_.size() ? std::optional(n - 1) : std::nullopt;
    const auto& near = seen_[image_[anchor]];
    return n - 1 < near.size() ? std::optional(near[n - 1].server) : std::nullopt;
  }

  /// Do both have the same placed neighbours, through segments of the same kind?
  [[nodiscard]] bool fits(std::size_t server, std::size_t candidate) const {
    if (origin_[candidate] != kUnplaced || family_[server].size() != seen_[candidate].size()) return false;
    std::size_t num_placed = 0;
    for (const Neighbour& neighbour : family_[server]) {
      const std::size_t image = image_[neighbour.server];
      if (image == kUnplaced) continue;
      ++num_placed;
      const auto& near = seen_[candidate];
      const auto found = std::ranges::lower_bound(near, image, {}, &Neighbour::server);
      if (found == near.end() || found->server != image || found->kind != neighbour.kind) return false;
    }
    const auto also = std::ranges::count_if(
        seen_[candidate], [&](const Neighbour& one) { return origin_[one.server] != kUnplaced; });
    return static_cast<std::size_t>(also) == num_placed;
  }

  const Adjacency& family_;
  const Adjacency& seen_;
  Order order_;
  std::vector<std::size_t> image_;   ///< by the family's server
  std::vector<std::size_t> origin_;  ///< by the seen server
};

/// Places the NICs of placed servers. None if a segment of the family is not an observed segment.
std::optional<Placement> place_nics(const Segments& family, const Segments& seen,
                                    std::vector<std::size_t> server_of, NicOrder order) {
  Placement placement{std::move(server_of), {}};
  for (const auto& rails : family.of) placement.nic_of.emplace_back(rails.size(), -1);
  std::set<std::int32_t> taken;
  for (const auto& members : family.members) {
    // Any segment of the first member may match; the one at the NIC with the rail's number is tried first.
    const auto [first, first_rail] = members.front();
    const auto& segments = seen.of[placement.server_of[first]];
    std::vector<std::size_t> nics;
    if (first_rail < segments.size()) nics.push_back(first_rail);
    for (std::size_t nic = 0; nic < segments.size() && order == NicOrder::kAny; ++nic) nics.push_back(nic);
    bool found = false;
    for (const std::size_t nic : nics) {
      const std::int32_t segment = segments[nic];
      if (segment == Segments::kNone || taken.contains(segment)) continue;
      const auto& images = seen.members[static_cast<std::size_t>(segment)];
      std::map<std::size_t, std::size_t> nic_at;
      for (const auto& [server, its_nic] : images) nic_at[server] = its_nic;
      if (nic_at.size() != members.size() || images.size() != members.size()) continue;
      found = std::ranges::all_of(members, [&](const NicId& member) {
        const auto at = nic_at.find(placement.server_of[member.first]);
        return at != nic_at.end() && (order == NicOrder::kAny || at->second == member.second);
      });
      if (!found) continue;
      for (const auto& [server, rail] : members)
        placement.nic_of[server][rail] = static_cast<std::int32_t>(nic_at[placement.server_of[server]]);
      taken.insert(segment);
      break;
    }
    if (!found) return std::nullopt;
  }
  return placement;
}

}  // namespace

std::optional<Placement> place(const Segments& family, const Segments& seen, NicOrder order) {
  if (family.num_servers() != seen.num_servers() || family.members.size() != seen.members.size())
    return std::nullopt;
  const auto family_adjacency = adjacency_of(family, order), seen_adjacency = adjacency_of(seen, order);
  if (!family_adjacency || !seen_adjacency) return std::nullopt;
  auto server_of = Search(*family_adjacency, *seen_adjacency).run();
  if (!server_of) return std::nullopt;
  return place_nics(family, seen, *std::move(server_of), order);
}

}  // namespace hips::topology
