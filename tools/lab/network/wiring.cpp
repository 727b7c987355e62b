#include "tools/lab/network/wiring.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "topology/levels.hpp"

namespace hips::lab {
namespace {

/// A /24 holds the servers of a segment, and nobody has memory for more guests.
constexpr std::int64_t kMaxServers = 250;

std::string mac(std::int64_t server, std::int64_t nic) {
  return fmt::format("02:48:50:{:02x}:{:02x}:{:02x}", server >> 8, server & 0xff, nic);
}

/// Disjoint sets: which bridges are joined, which rails are.
class Sets {
 public:
  explicit Sets(std::size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0); }
  std::size_t find(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) {
    parent_[std::max(find(a), find(b))] = std::min(find(a), find(b));
  }

  /// For each member the number of its set; sets are numbered by their first members.
  std::vector<std::int64_t> numbers() {
    std::vector<std::int64_t> number(parent_.size(), -1), result;
    std::int64_t next = 0;
    for (std::size_t i = 0; i < parent_.size(); ++i) {
      std::int64_t& own = number[find(i)];
      if (own < 0) own = next++;
      result.push_back(own);
    }
    return result;
  }

 private:
  std::vector<std::size_t> parent_;
};

struct LinkEnd {
  std::int64_t bridge = 0;
  std::string interface;
};

constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();

using Neighbours = std::vector<std::vector<LinkEnd>>;

/// Hops from each bridge to the nearest of `targets`.
std::vector<std::int64_t> distances(const Neighbours& neighbours, const std::vector<std::int64_t>& targets) {
  std::vector<std::int64_t> distance(neighbours.size(), kFar);
  std::deque<std::int64_t> queue(targets.begin(), targets.end());
  for (const auto target : targets) distance[static_cast<std::size_t>(target)] = 0;
  while (!queue.empty()) {
    const std::int64_t at = queue.front();
    queue.pop_front();
    for (const LinkEnd& next : neighbours[static_cast<std::size_t>(at)]) {
      auto& there = distance[static_cast<std::size_t>(next.bridge)];
      if (there != kFar) continue;
      there = distance[static_cast<std::size_t>(at)] + 1;
      queue.push_back(next.bridge);
    }
  }
  return distance;
}

/// Fixed tables of the segments that have trunks.
void add_tables(Wiring& wiring) {
  Neighbours neighbours(wiring.bridges.size());
  for (const Trunk& trunk : wiring.trunks) {
    neighbours[static_cast<std::size_t>(trunk.a)].push_back({trunk.b, trunk.a_end});
    neighbours[static_cast<std::size_t>(trunk.b)].push_back({trunk.a, trunk.b_end});
  }
  std::vector<std::int64_t> with_servers;
  for (const Port& port : wiring.ports) with_servers.push_back(port.bridge);
  const auto tier = distances(neighbours, with_servers);
  for (const Port& port : wiring.ports) {
    if (!wiring.fixed[static_cast<std::size_t>(port.segment)]) continue;
    wiring.tables.push_back({port.mac, port.tap});
    const auto distance = distances(neighbours, {port.bridge});
    for (std::size_t bridge = 0; bridge < neighbours.size(); ++bridge) {
      if (distance[bridge] == kFar || distance[bridge] == 0) continue;
      std::vector<const LinkEnd*> nearer;
      for (const LinkEnd& next : neighbours[bridge]) {
        if (distance[static_cast<std::size_t>(next.bridge)] < distance[bridge]) nearer.push_back(&next);
      }
      // An edge switch goes by the first digit of the destination, a switch above it by the second, ...
      auto choice = port.server;
      const auto ways = static_cast<std::int64_t>(nearer.size());
      for (std::int64_t i = 0; i < tier[bridge]; ++i) choice /= ways;
      wiring.tables.push_back({port.mac, nearer[static_cast<std::size_t>(choice % ways)]->interface});
    }
  }
}

}  // namespace

std::vector<Port> Wiring::ports_of(std::int64_t server) const {
  std::vector<Port> found;
  for (const Port& port : ports) {
    if (port.server == server) found.push_back(port);
  }
  return found;
}

Result<Wiring> wire(const Topology& topology) {
  if (topology.num_servers() > kMaxServers) {
    return fail(Code::kUnsupported,
                fmt::format("lab: \"{}\" has {} servers; the lab has addresses for {} guests", topology.spec,
                            topology.num_servers(), kMaxServers));
  }
  const Graph graph = topology.graph();
  Wiring wiring;
  std::vector<std::int64_t> bridge_of(graph.nodes.size(), -1);
  const auto add_bridge = [&](const std::string& name) {
    wiring.bridge_names.push_back(name);
    wiring.bridges.push_back(fmt::format("b{}", wiring.bridges.size()));
    return static_cast<std::int64_t>(wiring.bridges.size()) - 1;
  };
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    if (graph.nodes[node].is_switch) bridge_of[node] = add_bridge(graph.nodes[node].name);
  }
  const auto plug = [&](std::int64_t server, Rail rail, std::int64_t bridge) {
    wiring.ports.push_back({.server = server,
                            .rail = rail,
                            .tap = fmt::format("s{}n{}", server, rail),
                            .mac = mac(server, rail),
                            .bridge = bridge,
                            .ip = {}});
  };
  for (const GraphLink& link : graph.links) {
    const auto& a = graph.nodes[static_cast<std::size_t>(link.a)];
    const auto& b = graph.nodes[static_cast<std::size_t>(link.b)];
    if (a.is_switch && b.is_switch) {
      const auto number = wiring.trunks.size();
      wiring.trunks.push_back({.a = bridge_of[static_cast<std::size_t>(link.a)],
                               .b = bridge_of[static_cast<std::size_t>(link.b)],
                               .a_end = fmt::format("t{}a", number),
                               .b_end = fmt::format("t{}b", number)});
      continue;
    }
    const std::int64_t bridge = a.is_switch   ? bridge_of[static_cast<std::size_t>(link.a)]
                                : b.is_switch ? bridge_of[static_cast<std::size_t>(link.b)]
                                              : add_bridge("");
    if (!a.is_switch) plug(a.id, link.a_port, bridge);
    if (!b.is_switch) plug(b.id, link.b_port, bridge);
  }
  std::sort(wiring.ports.begin(), wiring.ports.end(), [](const Port& x, const Port& y) {
    return std::pair(x.server, x.rail) < std::pair(y.server, y.rail);
  });

  Sets joined(wiring.bridges.size());
  for (const Trunk& trunk : wiring.trunks) {
    joined.join(static_cast<std::size_t>(trunk.a), static_cast<std::size_t>(trunk.b));
  }
  const auto segment_of = joined.numbers();
  wiring.fixed.resize(wiring.bridges.size(), false);
  for (const Trunk& trunk : wiring.trunks) {
    wiring.fixed[static_cast<std::size_t>(segment_of[static_cast<std::size_t>(trunk.a)])] = true;
  }
  for (Port& port : wiring.ports) {
    port.segment = segment_of[static_cast<std::size_t>(port.bridge)];
    port.ip = fmt::format("10.{}.{}.{}", 100 + port.segment / 256, port.segment % 256, port.server + 1);
  }
  add_tables(wiring);
  return wiring;
}

std::vector<std::int64_t> shared_devices(const Topology& topology) {
  Sets rails(static_cast<std::size_t>(topology.num_rails));
  for (const Level& level : topology.levels) {
    if (!topology::is_of_cables(level)) continue;
    for (const Rail rail : level.rails) {
      rails.join(static_cast<std::size_t>(rail), static_cast<std::size_t>(level.rails.front()));
    }
  }
  return rails.numbers();
}

std::string management_ip(std::int64_t server) {
  return fmt::format("10.99.{}.{}", (server + 1) / 256, (server + 1) % 256);
}

std::string management_mac(std::int64_t server) {
  return mac(server, 0xff);
}

}  // namespace hips::lab
