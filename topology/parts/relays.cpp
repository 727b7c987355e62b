#include "topology/parts/relays.hpp"

#include <algorithm>
#include <compare>
#include <functional>
#include <queue>
#include <set>
#include <utility>

#include "topology/union_find.hpp"

namespace hips::topology {
namespace {

/// What a way costs, and how it is compared.
struct Length {
  std::int64_t relays = 0;
  std::int64_t cables = 0;
  auto operator<=>(const Length&) const = default;
};

/// Finds the servers outside a job that connect it, and the cables that they use.
///
/// Every node belongs to the region of the job's server that is closest. Where a cable leads from one region to another, both ways
/// to their servers with this cable are a way between these servers. The shortest of them that join all servers are taken, as
/// Kruskal does. As no two ways join the same components, the NICs of a server that led to different networks still do.
class RelaySearch {
 public:
  RelaySearch(const Graph& whole, std::span<const std::int64_t> servers)
      : whole_(whole),
        cables_(whole.nodes.size()),
        ways_(whole.nodes.size()),
        in_job_(whole.nodes.size(), false),
        is_relay_(whole.nodes.size(), false),
        is_used_(whole.links.size(), false) {
    for (std::size_t link = 0; link < whole.links.size(); ++link) {
      if (!whole.links[link].up) continue;
      cables_[index(whole.links[link].a)].push_back(link);
      cables_[index(whole.links[link].b)].push_back(link);
    }
    for (const std::int64_t server : servers) in_job_[index(server)] = true;
    find_regions(servers);
    connected_ = join(servers.size());
  }

  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] bool is_relay(std::size_t node) const { return is_relay_[node]; }
  /// Is it a cable of a relay that the job needs?
  [[nodiscard]] bool is_used(std::size_t link) const { return is_used_[link]; }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  /// The way from a node to the closest server of the job.
  struct Way {
    std::size_t server = kNone;
    std::size_t link = kNone;  ///< the first cable; of that server none
    Length length;             ///< with the node itself
  };

  static std::size_t index(std::int64_t node) { return static_cast<std::size_t>(node); }
  [[nodiscard]] std::size_t across(std::size_t link, std::size_t node) const {
    const GraphLink& one = whole_.links[link];
    return index(index(one.a) == node ? one.b : one.a);
  }
  [[nodiscard]] bool is_outside(std::size_t node) const {
    return !whole_.nodes[node].is_switch && !in_job_[node];
  }

  void find_regions(std::span<const std::int64_t> servers) {
    using Entry = std::pair<Length, std::size_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    for (const std::int64_t server : servers) {
      ways_[index(server)].server = index(server);
      queue.emplace(Length{}, index(server));
    }
    while (!queue.empty()) {
      const auto [length, node] = queue.top();
      queue.pop();
      if (length != ways_[node].length) continue;
      for (const std::size_t link : cables_[node]) {
        const std::size_t other = across(link, node);
        const Length longer{length.relays + (is_outside(other) ? 1 : 0), length.cables + 1};
        Way& known = ways_[other];
        if (known.server != kNone && known.length <= longer) continue;
        known = {.server = ways_[node].server, .link = link, .length = longer};
        queue.emplace(longer, other);
      }
    }
  }

  /// Returns whether all servers of the job are joined.
  bool join(std::size_t num_servers) {
    std::vector<std::pair<Length, std::size_t>> bridges;
    for (std::size_t link = 0; link < whole_.links.size(); ++link) {
      const Way& a = ways_[index(whole_.links[link].a)];
      const Way& b = ways_[index(whole_.links[link].b)];
      if (!whole_.links[link].up || a.server == kNone || a.server == b.server) continue;
      bridges.push_back({{a.length.relays + b.length.relays, a.length.cables + b.length.cables}, link});
    }
    std::ranges::sort(bridges);
    UnionFind joined(whole_.nodes.size());
    std::size_t components = num_servers;
    for (const auto& [length, link] : bridges) {
      const std::size_t a = index(whole_.links[link].a), b = index(whole_.links[link].b);
      if (joined.find(ways_[a].server) == joined.find(ways_[b].server)) continue;
      joined.join(ways_[a].server, ways_[b].server);
      --components;
      is_used_[link] = true;
      use_way(a);
      use_way(b);
    }
    return components == 1;
  }

  void use_way(std::size_t node) {
    while (ways_[node].link != kNone) {
      if (is_outside(node)) is_relay_[node] = true;
      is_used_[ways_[node].link] = true;
      node = across(ways_[node].link, node);
    }
  }

  const Graph& whole_;
  std::vector<std::vector<std::size_t>> cables_;  ///< by node, those that are up
  std::vector<Way> ways_;                         ///< by node
  std::vector<bool> in_job_, is_relay_;           ///< by node
  std::vector<bool> is_used_;                     ///< by link
  bool connected_ = false;
};

/// Makes the graph of the nodes that are kept.
class JobCut {
 public:
  JobCut(const Graph& whole, std::span<const std::int64_t> servers, const RelaySearch* relays)
      : whole_(whole), servers_(servers), relays_(relays), number_(whole.nodes.size(), -1) {}

  JobWiring run(std::span<const std::string> names) {
    for (const std::int64_t server : servers_) add(static_cast<std::size_t>(server));
    std::vector<bool> has_cable(whole_.nodes.size(), false);
    for (std::size_t link = 0; link < whole_.links.size(); ++link) {
      if (!keeps(link)) continue;
      has_cable[static_cast<std::size_t>(whole_.links[link].a)] = true;
      has_cable[static_cast<std::size_t>(whole_.links[link].b)] = true;
    }
    std::set<std::string> taken;
    for (std::size_t node = 0; node < whole_.nodes.size(); ++node) {
      if (!whole_.nodes[node].is_switch || !has_cable[node]) continue;
      taken.insert(whole_.nodes[node].name);
      add(node);
    }
    for (std::size_t node = 0; node < whole_.nodes.size(); ++node) {
      if (!is_relay(node)) continue;
      made_.relays.push_back(static_cast<std::int64_t>(node));
      GraphNode& added = add(node);
      if (node < names.size()) added.name = names[node];
      while (!taken.insert(added.name).second) added.name += " (server)";
    }
    add_links();
    return std::move(made_);
  }

 private:
  [[nodiscard]] bool is_relay(std::size_t node) const {
    return relays_ != nullptr && relays_->is_relay(node);
  }
  [[nodiscard]] bool in_job(std::int64_t node) const { return std::ranges::binary_search(servers_, node); }
  [[nodiscard]] bool keeps(std::size_t link) const {
    const auto stays = [&](std::int64_t node) {
      return whole_.nodes[static_cast<std::size_t>(node)].is_switch || in_job(node);
    };
    return (stays(whole_.links[link].a) && stays(whole_.links[link].b)) ||
           (relays_ != nullptr && relays_->is_used(link));
  }

  GraphNode& add(std::size_t node) {
    number_[node] = static_cast<std::int64_t>(made_.graph.nodes.size());
    GraphNode& added = made_.graph.nodes.emplace_back(whole_.nodes[node]);
    added.is_switch = !in_job(static_cast<std::int64_t>(node));
    added.id = number_[node] - (added.is_switch ? static_cast<std::int64_t>(servers_.size()) : 0);
    return added;
  }

  void add_links() {
    const auto servers = static_cast<std::int64_t>(servers_.size());
    for (std::size_t i = 0; i < whole_.links.size(); ++i) {
      if (!keeps(i)) continue;
      GraphLink link = whole_.links[i];
      link.a = number_[static_cast<std::size_t>(link.a)];
      link.b = number_[static_cast<std::size_t>(link.b)];
      if (link.a >= servers) link.a_port = kNoRail;
      if (link.b >= servers) link.b_port = kNoRail;
      // The end at a server comes first.
      if (link.a >= servers && link.b < servers) {
        std::swap(link.a, link.b);
        std::swap(link.a_port, link.b_port);
      }
      made_.graph.links.push_back(link);
    }
  }

  const Graph& whole_;
  std::span<const std::int64_t> servers_;
  const RelaySearch* relays_;
  std::vector<std::int64_t> number_;  ///< by node of the whole; -1: it is left out
  JobWiring made_;
};

/// Do switches and cables between servers of the job join all of them?
bool connected_without_relays(const Graph& whole, std::span<const std::int64_t> servers) {
  const auto stays = [&](std::int64_t node) {
    return whole.nodes[static_cast<std::size_t>(node)].is_switch || std::ranges::binary_search(servers, node);
  };
  UnionFind joined(whole.nodes.size());
  for (const GraphLink& link : whole.links)
    if (link.up && stays(link.a) && stays(link.b))
      joined.join(static_cast<std::size_t>(link.a), static_cast<std::size_t>(link.b));
  return std::ranges::all_of(servers, [&](std::int64_t server) {
    return joined.find(static_cast<std::size_t>(server)) == joined.find(static_cast<std::size_t>(servers[0]));
  });
}

}  // namespace

JobWiring cut_out(const Graph& whole, std::span<const std::int64_t> servers,
                  std::span<const std::string> names) {
  if (connected_without_relays(whole, servers)) return JobCut(whole, servers, nullptr).run(names);
  const RelaySearch search(whole, servers);
  return JobCut(whole, servers, search.connected() ? &search : nullptr).run(names);
}

}  // namespace hips::topology
