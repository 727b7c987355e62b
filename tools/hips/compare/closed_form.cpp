#include "tools/hips/compare/closed_form.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lib/plan/steps/peer_link.hpp"
#include "topology/tiers.hpp"

namespace hips::compare {
namespace {

/// A level with more than one server.
struct Digit {
  const Level* level = nullptr;
  double below = 1;  ///< number of servers that differ only in lower digits
};

class Counter {
 public:
  explicit Counter(const Topology& topology)
      : topology_(topology),
        servers_(static_cast<double>(topology.num_servers())),
        local_(static_cast<double>(topology.ranks_per_server)) {
    double below = 1;
    for (const Level& level : topology.levels) {
      if (level.kind == LevelKind::kNode || level.radix == 1) continue;
      digits_.push_back({&level, below});
      below *= static_cast<double>(level.radix);
    }
  }

  /// R rings that follow the wiring: all NICs of a ring send the same amount, and so does the uplink of a
  /// switch.
  ClosedForm ring(double rings) {
    const double ranks = servers_ * local_;
    const double share = 2 * (ranks - 1) / (ranks * rings);
    nic(digits_.front().level->rails.front(), share);
    for (const topology::Tier& tier : topology::tiers(topology_))
      link(tier.one, share, tier.bandwidth_bytes_per_s);
    form_.fan_in = 1;
    return form_;
  }

  /// Every rank sends a piece to every other rank and gets one back, each along its route.
  ClosedForm mesh() {
    for (const Digit& digit : digits_) {
      const auto radix = static_cast<double>(digit.level->radix);
      // All pairs that differ in the digit use a NIC of its level. On a ring of cables a message uses one NIC
      // for each hop, at most half the ring.
      double share = 2 * local_ * (topology_.servers_relay ? (1 - 1 / radix) : (1 - 1 / servers_));
      if (digit.level->kind == LevelKind::kRing) share = 2 * local_ * hops_by_plus(*digit.level) / radix;
      if (takes_turns()) share = 2 * local_ * static_cast<double>(busiest_nic().peers) / servers_;
      nic(takes_turns() ? busiest_nic().nic : digit.level->rails.front(), share);
    }
    for (const topology::Tier& tier : topology::tiers(topology_)) {
      const auto below = static_cast<double>(tier.servers_below);
      link(tier.one, 2 * local_ * below * (1 - below / servers_), tier.bandwidth_bytes_per_s);
    }
    form_.fan_in = takes_turns() ? busiest_nic().peers * topology_.ranks_per_server : senders_by_one_nic();
    return form_;
  }

  /// The leaders' links: the pieces of all ranks in, and the results out.
  std::optional<ClosedForm> ps(double leaders) {
    if (topology_.servers_relay) {
      if (leaders > 1) return std::nullopt;
      for (const Digit& digit : digits_) {
        // Messages to the leader arrive through the highest digit that differs, results leave through the
        // lowest.
        const auto radix = static_cast<double>(digit.level->radix);
        const double senders = peers_by_plus(*digit.level);
        nic(digit.level->rails.front(), local_ * digit.below * senders);
        nic(digit.level->rails.front(), local_ * servers_ / (digit.below * radix) * senders);
      }
    } else {
      nic(digits_.front().level->rails.front(), leaders_share(local_, leaders));
      for (const topology::Tier& tier : topology::tiers(topology_)) {
        link(tier.one, leaders_share(local_ * static_cast<double>(tier.servers_below), leaders),
             tier.bandwidth_bytes_per_s);
      }
    }
    form_.fan_in = senders_by_one_nic();
    return form_;
  }

  /// HiPS with one leader on one level: every NIC has a lane, and lanes have different leaders.
  std::optional<ClosedForm> hips_ps(std::int64_t leaders) {
    if (leaders != 1 || digits_.size() > 1 || digits_.front().level->kind == LevelKind::kRing)
      return std::nullopt;
    const std::int64_t nics = topology_.num_rails, servers = topology_.num_servers();
    nic(digits_.front().level->rails.front(), (servers_ - 1) / static_cast<double>(nics));
    form_.fan_in = servers - 1;
    const std::int64_t led = (nics + servers - 1) / servers;
    form_.num_messages = led * (servers - 1) + nics - led;
    return form_;
  }

  /// HiPS with NICs that serve all levels, or with a single level: NICs and switches are at their bound.
  std::optional<ClosedForm> hips(bool meshes) {
    const bool one_nic = topology_.num_rails == 1;
    if (digits_.size() > 1 && !one_nic) return std::nullopt;
    nic(digits_.front().level->rails.front(),
        2 * (1 - 1 / servers_) / static_cast<double>(topology_.num_rails));
    for (const topology::Tier& tier : topology::tiers(topology_)) {
      link(tier.one, 2 * (1 - static_cast<double>(tier.servers_below) / servers_),
           tier.bandwidth_bytes_per_s);
    }
    form_.fan_in = 1;
    for (const Digit& digit : digits_)
      if (meshes) form_.fan_in = std::max(form_.fan_in, digit.level->radix - 1);
    return form_;
  }

 private:
  struct BusiestNic {
    Rail nic = 0;
    std::int64_t peers = 0;  ///< servers that it leads to
  };
  /// The NICs of a server take turns by the distance of the peer in the circle of servers.
  [[nodiscard]] bool takes_turns() const {
    return plan::nics_lead_everywhere(topology_) && topology_.num_rails > 1;
  }
  [[nodiscard]] BusiestNic busiest_nic() const {
    const std::int64_t servers = topology_.num_servers(), nics = topology_.num_rails, farthest = servers / 2;
    BusiestNic busiest;
    for (Rail nic = 0; nic < nics; ++nic) {
      // The distances from 1 to the farthest that are nic, nic + nics, ...
      const std::int64_t distances = (farthest - nic + nics) / nics - (nic == 0 ? 1 : 0);
      const bool has_single = servers % 2 == 0 && farthest % nics == nic;
      const std::int64_t peers = 2 * std::max<std::int64_t>(0, distances) - (has_single ? 1 : 0);
      if (peers > busiest.peers) busiest = {nic, peers};
    }
    return busiest;
  }

  /// For groups of `members` ranks with one uplink each: the traffic of the first group's uplink in one
  /// direction, which is the pieces of all ranks outside and the results of the leaders outside.
  [[nodiscard]] double leaders_share(double members, double leaders) const {
    const double inside = std::min(members, leaders);
    return (inside * (servers_ * local_ - members) + members * (leaders - inside)) / leaders;
  }

  /// The servers of a group whose messages arrive through one NIC of the level: half a ring, all of a switch.
  static double peers_by_plus(const Level& level) {
    return static_cast<double>(level.kind == LevelKind::kRing ? level.radix / 2 : level.radix - 1);
  }
  /// The number of hops in direction "+" from one server to the others of its ring, including the opposite
  /// one.
  static double hops_by_plus(const Level& level) {
    const auto half = static_cast<double>(level.radix / 2);
    return half * (half + 1) / 2;
  }

  [[nodiscard]] std::int64_t senders_by_one_nic() const {
    if (!topology_.servers_relay) return topology_.num_ranks() - topology_.ranks_per_server;
    double most = 0;
    for (const Digit& digit : digits_) most = std::max(most, digit.below * peers_by_plus(*digit.level));
    return static_cast<std::int64_t>(most * local_);
  }

  void nic(Rail rail, double share) {
    link(fmt::format("NIC {}", rail), share,
         topology::rail_bandwidths(topology_)[static_cast<std::size_t>(rail)]);
  }
  void link(std::string name, double share, double bandwidth) {
    if (share / bandwidth <= form_.seconds_per_byte) return;
    form_.busiest = std::move(name);
    form_.busiest_share = share;
    form_.seconds_per_byte = share / bandwidth;
  }

  const Topology& topology_;
  double servers_, local_;
  std::vector<Digit> digits_;
  ClosedForm form_;
};

}  // namespace

std::optional<ClosedForm> closed_form(const Topology& topology, const PlanShape& shape,
                                      const PlanRequest& request) {
  if (topology.num_servers() == 1) return std::nullopt;
  Counter counter(topology);
  if (shape.algorithm == "flat-ring") return counter.ring(static_cast<double>(shape.lanes.size()));
  if (shape.algorithm == "flat-mesh") return counter.mesh();
  if (shape.algorithm == "flat-ps") return counter.ps(std::max(1, request.num_leaders));
  if (shape.algorithm != "hips" || !shape.neighbours_only) return std::nullopt;
  bool meshes = false;
  for (const LaneInfo& lane : shape.lanes) {
    for (const StageInfo& stage : lane.stages) {
      if (topology.levels[static_cast<std::size_t>(stage.level)].kind == LevelKind::kNode) continue;
      if (stage.pattern == Pattern::kPs) return counter.hips_ps(stage.num_leaders);
      meshes = meshes || stage.pattern == Pattern::kMesh;
    }
  }
  return counter.hips(meshes);
}

}  // namespace hips::compare
