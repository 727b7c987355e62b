#include "lib/plan/fabric/hop_graph.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "topology/levels.hpp"

namespace hips::plan {
namespace {

/// Of a group of more than twice as many servers not every pair is used.
constexpr std::int64_t kNearest = 16;

}  // namespace

HopGraph::HopGraph(const Topology& topology)
    : topology_(topology), servers_(topology.num_servers()), tiers_(topology::tiers(topology)) {
  add_resources(topology::LinkRates(topology, tiers_));
  if (topology.wiring.value != nullptr) {
    add_hops_of_graph(*topology.wiring.value);
  } else {
    topology.servers_relay ? add_hops_of_levels() : add_hops_of_switches();
  }
}

void HopGraph::add_resources(const topology::LinkRates& rates) {
  for (std::int64_t server = 0; server < servers_; ++server) {
    for (Rail rail = 0; rail < topology_.num_rails; ++rail) rate_.push_back(rates.nic(server, rail));
  }
  for (std::size_t t = 0; t < tiers_.size(); ++t) {
    first_of_tier_.push_back(static_cast<std::int32_t>(rate_.size()));
    for (std::int64_t i = 0; i < tiers_[t].count; ++i)
      rate_.push_back(rates.tier(t, static_cast<std::size_t>(i)));
  }
  fastest_ = 0;
  for (const double rate : rate_) fastest_ = std::max(fastest_, rate);
  for (double& rate : rate_) rate /= fastest_;
}

void HopGraph::add_hop(std::int64_t a, std::int64_t b, Rail a_rail, Rail b_rail) {
  Candidate hop{{a, b, a_rail, b_rail}, {}};
  hop.uses.push_back(static_cast<std::int32_t>(a * topology_.num_rails + a_rail));
  hop.uses.push_back(static_cast<std::int32_t>(b * topology_.num_rails + b_rail));
  const Hop servers{.from = static_cast<Rank>(a), .to = static_cast<Rank>(b), .out = a_rail, .in = b_rail};
  topology::visit_tiers(topology_, tiers_, servers, [&](std::size_t tier, std::size_t index, bool /*out*/) {
    hop.uses.push_back(first_of_tier_[tier] + static_cast<std::int32_t>(index));
  });
  for (const std::int32_t used : hop.uses) {
    if (!(rate_[used] > 0)) return;  // a link of the hop is down
  }
  hops_.push_back(std::move(hop));
}

/// Hops between members of a group that reach each other by `rail`.
void HopGraph::add_group(const std::vector<std::int64_t>& members, Rail rail) {
  add_pairs(members, [&](std::int64_t a, std::int64_t b) { add_hop(a, b, rail, rail); });
}

/// Calls add(a, b) for the pairs of a group between which there may be hops.
template <typename Add>
void HopGraph::add_pairs(const std::vector<std::int64_t>& members, Add&& add) const {
  const auto size = static_cast<std::int64_t>(members.size());
  for (std::int64_t i = 0; i < size; ++i) {
    for (std::int64_t j = i + 1; j < size; ++j) {
      const std::int64_t apart = j - i;
      if (size > 2 * kNearest && apart > kNearest && (apart & (apart - 1)) != 0) continue;
      add(members[i], members[j]);
    }
  }
}

/// BCube and Torus: each group of a level has a switch, or cables to the next server.
void HopGraph::add_hops_of_levels() {
  std::int64_t stride = 1;
  for (const Level& level : topology_.levels) {
    if (level.kind == LevelKind::kNode) continue;
    std::map<std::int64_t, std::vector<std::int64_t>> groups;
    for (std::int64_t server = 0; server < servers_; ++server) {
      const std::int64_t whole = topology_.whole_server(server);
      const std::int64_t digit = whole / stride % level.radix;
      if (!topology::is_of_cables(level)) {
        groups[whole - digit * stride].push_back(server);
        continue;
      }
      if (level.kind == LevelKind::kLine && digit + 1 == level.radix) continue;
      const std::int64_t next = topology_.server_in_use(whole + ((digit + 1) % level.radix - digit) * stride);
      if (next >= 0 && next != server) add_hop(server, next, level.rails[0], level.rails[1]);
    }
    for (const auto& [first, members] : groups) {
      for (const Rail rail : level.rails) add_group(members, rail);
    }
    stride *= level.radix;
  }
}

/// Graphs: cables between servers, and planes of switches.
void HopGraph::add_hops_of_graph(const GraphWiring& wiring) {
  for (const GraphLink& link : wiring.graph.links)
    if (link.up && link.a < servers_ && link.b < servers_) add_hop(link.a, link.b, link.a_port, link.b_port);
  for (std::size_t plane = 0; plane < wiring.members.size(); ++plane) {
    for (Rail rail = 0; rail < topology_.num_rails; ++rail) {
      add_pairs(wiring.members[plane], [&](std::int64_t a, std::int64_t b) {
        if (wiring.plane[wiring.nic(a, rail)] != static_cast<std::int32_t>(plane)) return;
        const auto hop = topology::direct_hop(wiring, a, b, rail);
        if (hop && topology::is_two_way(wiring, *hop)) add_hop(a, b, hop->out, hop->in);
      });
    }
  }
}

/// Racks and trees of switches: any server reaches any other by each of its NICs.
void HopGraph::add_hops_of_switches() {
  std::vector<std::int64_t> all(static_cast<std::size_t>(servers_));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  for (Rail rail = 0; rail < topology_.num_rails; ++rail) add_group(all, rail);
}

}  // namespace hips::plan
