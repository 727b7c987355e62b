#include "topology/discover/draft.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/discover/recognise.hpp"
#include "topology/families/family.hpp"
#include "topology/formats/parse.hpp"
#include "topology/formats/server_names.hpp"
#include "topology/rates.hpp"

namespace hips::topology {
namespace {

/// The most names in one sentence.
constexpr std::size_t kMostNamed = 8;

std::string some_of(std::vector<std::string> names) {
  const std::size_t count = names.size();
  names.resize(std::min(count, kMostNamed));
  return fmt::format("{}{}", fmt::join(names, ", "),
                     count > kMostNamed ? fmt::format(" and {} more", count - kMostNamed) : "");
}

class Drafter {
 public:
  explicit Drafter(const Observation& seen) : seen_(seen), segments_(segments_of(seen)) {}

  Result<Draft> draft() {
    if (auto usable = check(); !usable) return fail(usable.error());
    return draft_as(recognise());
  }

  Result<Draft> draft(ToldTopology told) {
    if (auto usable = check(); !usable) return fail(usable.error());
    draft_.remarks = std::move(told.remarks);
    draft_.notes = std::move(told.notes);
    is_told_ = true;
    return draft_as({std::move(told.topology), std::move(told.placement), {}});
  }

 private:
  Result<Draft> draft_as(Match match) {
    draft_.placement = std::move(match.placement);
    auto topology = with_ranks(match.topology.spec);
    if (!topology) return fail(topology.error());
    draft_.file.topology = *std::move(topology);
    add_rates();
    add_links();
    add_names();
    add_devices();
    add_left_out();
    return std::move(draft_);
  }

  Topology& topology() { return draft_.file.topology; }
  [[nodiscard]] std::size_t num_servers() const { return seen_.servers.size(); }

  void guess(DraftLine line, std::string text, std::size_t index = 0) {
    draft_.remarks.push_back({line, index, std::move(text), true});
  }
  void know(DraftLine line, std::string text, std::size_t index = 0) {
    draft_.remarks.push_back({line, index, std::move(text), false});
  }

  [[nodiscard]] Result<void> check() const {
    if (seen_.servers.empty()) return fail(Code::kInvalidArgument, "discover: no server was observed");
    const bool has_nics =
        std::ranges::any_of(seen_.servers, [](const SeenServer& one) { return !one.nics.empty(); });
    if (!has_nics) {
      return fail(Code::kInvalidArgument,
                  fmt::format("discover: {} has no NIC with an address; add an address to an interface (ip "
                              "address add), or name the interfaces in HIPS_SOCKET_IFNAME",
                              seen_.servers.front().host));
    }
    return {};
  }

  Match recognise() {
    const Segments& segments = segments_.segments;
    if (num_servers() == 1) {
      guess(DraftLine::kShape, "one server was seen; start a rank on each: mpirun --map-by ppr:1:node");
      return alone();
    }
    std::optional<Match> match = match_rack(segments);
    // Two servers with crossed cables are a ring rather than a rack with NICs in another order.
    const auto& nic_of = match ? match->placement.nic_of : draft_.placement.nic_of;
    const bool crossed =
        std::ranges::any_of(nic_of, [&](const auto& nics) { return nics != nic_of.front(); });
    if (match && crossed && num_servers() == 2) {
      if (auto ring = match_server_centric(segments)) match = std::move(ring);
    }
    if (match && !match->topology.servers_relay) {
      know_shape(*match);
      guess(DraftLine::kSwitches, "one for each subnet; several switches of a subnet look like one");
      return *std::move(match);
    }
    if (!match) match = match_server_centric(segments);
    if (!match) match = match_server_centric(without_spanning(segments));
    if (match) {
      know_shape(*match);
      const bool cables = is_of_cables(match->topology.levels.front());
      guess(DraftLine::kSwitches, cables ? "assuming that subnets of two NICs are cables"
                                         : "one for each subnet; several switches of a subnet look like one");
      guess(DraftLine::kRelay, "not observed whether servers forward for others");
      return *std::move(match);
    }
    match = match_bcube_part(segments);
    if (!match) match = match_bcube_part(without_spanning(segments));
    if (match) {
      guess(DraftLine::kShape,
            "the smallest that has these servers; servers outside the job are not visible");
      guess(DraftLine::kSwitches, "one for each subnet; several switches of a subnet look like one");
      return *std::move(match);
    }
    match = match_tree(seen_);
    if (match) {
      know(DraftLine::kShape, "seen: by the hops between subnets of equal size");
      guess(DraftLine::kSwitches, "tiers above the switches of the subnets are not visible");
      return *std::move(match);
    }
    match = match_routed_rack(seen_);
    if (match) {
      guess(DraftLine::kShape,
            "NICs of one number reach each other through routers of unknown wiring; drawn as one switch");
      guess(DraftLine::kSwitches, "one for all NICs of one number");
      return *std::move(match);
    }
    draft_.fits = false;
    guess(DraftLine::kShape, fmt::format("no family matches these {} subnets; this is the nearest rack",
                                         segments.members.size()));
    guess(DraftLine::kSwitches, "as the shape needs");
    return nearest_rack(segments);
  }

  void know_shape(const Match& match) {
    std::string text;
    if (!match.equals.empty()) text = fmt::format("; {} has the same wiring", fmt::join(match.equals, ", "));
    if (segments_.num_reached == 0) {
      guess(DraftLine::kShape, "by the subnets alone; connectivity was not observed" + text);
    } else {
      know(DraftLine::kShape,
           fmt::format(
               "seen: {} pairs of NICs reach each other{}{}", segments_.num_reached,
               segments_.num_untried > 0 ? fmt::format(", {} were not tried", segments_.num_untried) : "",
               text));
    }
  }

  /// A single server: every NIC is a rail.
  Match alone() {
    Match match;
    const auto rails = std::min<std::size_t>(seen_.servers[0].nics.size(), kMaxRails);
    match.topology =
        value_or_throw(parse(rails == 1 ? std::string("switch:1") : fmt::format("rail:1,{}", rails)));
    match.placement.server_of = {0};
    auto& nics = match.placement.nic_of.emplace_back();
    for (std::size_t nic = 0; nic < rails; ++nic) nics.push_back(static_cast<std::int32_t>(nic));
    return match;
  }

  Result<Topology> with_ranks(const std::string& spec) {
    std::int32_t least = seen_.servers.front().ranks, most = least;
    for (const SeenServer& server : seen_.servers) {
      least = std::min(least, server.ranks);
      most = std::max(most, server.ranks);
    }
    if (least != most)
      guess(DraftLine::kRanks,
            fmt::format("servers had {} to {} ranks; a file has one number for all", least, most));
    return parse(least > 1 ? fmt::format("{}/{}", spec, least) : spec);
  }

  /// The NIC of a rail; null if there is none.
  [[nodiscard]] const SeenNic* nic(std::size_t server, std::size_t rail) const {
    const std::int32_t number = draft_.placement.nic_of[server][rail];
    if (number < 0) return nullptr;
    const auto& nics = seen_.servers[draft_.placement.server_of[server]].nics;
    return static_cast<std::size_t>(number) < nics.size() ? &nics[static_cast<std::size_t>(number)] : nullptr;
  }
  /// 0: not known, or outside the range of a file.
  [[nodiscard]] double rate_of(std::size_t server, std::size_t rail) const {
    const SeenNic* const one = nic(server, rail);
    if (one == nullptr || one->bandwidth_bytes_per_s <= 0) return 0;
    return read_rate(rate_text(one->bandwidth_bytes_per_s)) ? one->bandwidth_bytes_per_s : 0;
  }

  void add_rates() {
    const auto first = static_cast<std::size_t>(first_network_level(topology()));
    for (std::size_t i = first; i < topology().levels.size(); ++i) {
      Level& level = topology().levels[i];
      std::map<double, std::size_t> counts;
      std::size_t unknown = 0;
      for (std::size_t server = 0; server < num_servers(); ++server) {
        for (const Rail rail : level.rails) {
          const double rate = rate_of(server, static_cast<std::size_t>(rail));
          ++(rate > 0 ? counts[rate] : unknown);
        }
      }
      const auto most = std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; });
      if (most == counts.end()) {
        guess(DraftLine::kLevel, "rate, unknown to the system", i - first);
      } else {
        level.bandwidth_bytes_per_s = most->first;
        if (level.kind == LevelKind::kTree && i > first)
          guess(DraftLine::kLevel, "rate, assumed to be that of the NICs", i - first);
        if (unknown > 0)
          guess(DraftLine::kLevel, fmt::format("rate of {} NICs, assumed to be that of the others", unknown),
                i - first);
      }
      if (const double latency_ns = latency_of(level); latency_ns > 0) {
        level.latency_ns = latency_ns;
        know(DraftLine::kLevel, "seen: latency, half a round trip", i - first);
      } else {
        guess(DraftLine::kLevel, "latency, not measured (hips-allreduce-perf --fit measures it)", i - first);
      }
    }
  }

  /// The median over the paths of a level's NICs; 0 if none was measured.
  [[nodiscard]] double latency_of(const Level& level) const {
    std::set<NicId> nics;
    for (std::size_t server = 0; server < num_servers(); ++server) {
      for (const Rail rail : level.rails) {
        const std::int32_t number = draft_.placement.nic_of[server][static_cast<std::size_t>(rail)];
        if (number >= 0) nics.insert({draft_.placement.server_of[server], static_cast<std::size_t>(number)});
      }
    }
    std::vector<double> measured;
    for (const SeenPath& path : seen_.paths)
      if (path.reached && path.latency_ns > 0 && nics.contains({path.a, path.a_nic}) &&
          nics.contains({path.b, path.b_nic}))
        measured.push_back(path.latency_ns);
    if (measured.empty()) return 0;
    const auto middle = measured.begin() + static_cast<std::ptrdiff_t>(measured.size() / 2);
    std::ranges::nth_element(measured, middle);
    // More digits would be noise.
    constexpr double kStepNs = 10, kMostNs = 1e10;
    const double rounded = std::max(kStepNs, std::round(*middle / kStepNs) * kStepNs);
    return rounded < kMostNs ? rounded : 0;
  }

  /// Adds NICs that have another rate, reach no other NIC, or are missing.
  void add_links() {
    const Segments family = segments_of(topology());
    for (std::size_t server = 0; server < num_servers(); ++server) {
      const bool has_other_path = std::ranges::any_of(
          rails_of(server), [&](std::size_t rail) { return !is_down(server, rail).has_value(); });
      for (const std::size_t rail : rails_of(server)) {
        const Level& level = level_of(rail);
        // A cable is listed once, at its "+" end, with the worse rate and state of both ends.
        if (is_of_cables(level) && static_cast<std::size_t>(level.rails.front()) != rail) continue;
        if (num_servers() > 1 && family.of[server][rail] == Segments::kNone) continue;
        std::vector<NicId> ends{{server, rail}};
        if (is_of_cables(level)) ends = family.members[static_cast<std::size_t>(family.of[server][rail])];
        add_link(server, rail, level, ends, has_other_path);
      }
      if (!has_other_path && num_servers() > 1) {
        draft_.notes.push_back(fmt::format("{} was reached by none of its NICs; it is drawn as if all worked",
                                           seen_.servers[draft_.placement.server_of[server]].host));
      }
    }
  }

  void add_link(std::size_t server, std::size_t rail, const Level& level, const std::vector<NicId>& ends,
                bool has_other_path) {
    // An end whose rate is not known does not limit the other.
    double rate = 0;
    std::optional<std::string> down;
    for (const auto& [end, end_rail] : ends) {
      if (const double own = rate_of(end, end_rail); own > 0) rate = rate > 0 ? std::min(rate, own) : own;
      if (const auto why = is_down(end, end_rail)) down = why;
    }
    if (!has_other_path) down.reset();
    if (rate == 0) rate = level.bandwidth_bytes_per_s;
    if (!down && rate == level.bandwidth_bytes_per_s) return;
    const std::size_t index = topology().overrides.size();
    topology().overrides.push_back({.server = static_cast<std::int64_t>(server),
                                    .rail = static_cast<Rail>(rail),
                                    .lower = {},
                                    .upper = {},
                                    .bandwidth_bytes_per_s = rate,
                                    .up = !down});
    know(DraftLine::kLink, "seen: " + down.value_or("rate reported by the system"), index);
  }

  [[nodiscard]] std::vector<std::size_t> rails_of(std::size_t server) const {
    std::vector<std::size_t> rails(draft_.placement.nic_of[server].size());
    for (std::size_t rail = 0; rail < rails.size(); ++rail) rails[rail] = rail;
    return rails;
  }
  [[nodiscard]] const Level& level_of(std::size_t rail) {
    for (const Level& level : network_levels(topology()))
      if (std::ranges::find(level.rails, static_cast<Rail>(rail)) != level.rails.end()) return level;
    return alone_;
  }
  /// Why a rail does not work; none if it works.
  [[nodiscard]] std::optional<std::string> is_down(std::size_t server, std::size_t rail) const {
    const std::int32_t number = draft_.placement.nic_of[server][rail];
    if (number < 0)
      return is_told_ ? "LLDP has heard no switch of this level"
                      : "this NIC is missing, or is in another subnet";
    if (segments_.down.contains({draft_.placement.server_of[server], static_cast<std::size_t>(number)}))
      return "it reaches no NIC of its subnet";
    return std::nullopt;
  }

  void add_names() {
    std::vector<std::string> names;
    std::set<std::string> known;
    for (const std::size_t server : draft_.placement.server_of) {
      const std::string& host = seen_.servers[server].host;
      // A topology file would read a hostlist as several names.
      if (!is_plain_name(host) || !known.insert(host).second) {
        draft_.notes.push_back(
            fmt::format("servers have no names, because {} is not the name of one server only", host));
        return;
      }
      names.push_back(host);
    }
    if (!std::ranges::is_sorted(draft_.placement.server_of))
      draft_.notes.push_back(
          "servers are not in the order of the observing ranks: start ranks in the order of names");
    draft_.file.server_names = std::move(names);
  }

  void add_devices() {
    std::map<std::vector<std::string>, std::size_t> counts;
    std::vector<std::vector<std::string>> devices;
    bool in_order = true;
    for (std::size_t server = 0; server < num_servers(); ++server) {
      auto& names = devices.emplace_back();
      std::int32_t last = -1;
      for (const std::size_t rail : rails_of(server)) {
        const SeenNic* const one = nic(server, rail);
        // The name of a device that serves several rails occurs once.
        const bool named = one != nullptr && std::ranges::find(names, one->name) == names.end();
        names.push_back(named ? one->name : "");
        if (one == nullptr) continue;
        in_order = in_order && draft_.placement.nic_of[server][rail] > last;
        last = draft_.placement.nic_of[server][rail];
      }
      ++counts[names];
    }
    draft_.file.devices =
        std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; })->first;
    for (std::size_t server = 0; server < num_servers(); ++server)
      if (devices[server] != draft_.file.devices)
        draft_.file.other_devices[static_cast<std::int64_t>(server)] = devices[server];
    if (!in_order) {
      draft_.notes.push_back(
          "NICs are not in the default order of HiPS: list each server's devices in the order of this file "
          "in "
          "HIPS_IB_HCA (HIPS_SOCKET_IFNAME for interfaces)");
    }
  }

  /// Notes the networks without a NIC in the draft.
  void add_left_out() {
    std::set<NicId> used;
    for (std::size_t server = 0; server < num_servers(); ++server)
      for (const std::int32_t number : draft_.placement.nic_of[server])
        if (number >= 0) used.insert({draft_.placement.server_of[server], static_cast<std::size_t>(number)});
    std::map<std::string, std::vector<std::string>> left;  // by subnet
    for (std::size_t server = 0; server < num_servers(); ++server) {
      const auto& nics = seen_.servers[server].nics;
      for (std::size_t i = 0; i < nics.size(); ++i)
        if (!used.contains({server, i}) && !nics[i].subnet.empty())
          left[nics[i].subnet].push_back(fmt::format("{} of {}", nics[i].name, seen_.servers[server].host));
    }
    std::size_t listed = 0;
    for (auto& [subnet, nics] : left) {
      if (++listed > kMostNamed) {
        draft_.notes.push_back(fmt::format("left out: {} more subnets", left.size() - kMostNamed));
        break;
      }
      const bool all = nics.size() >= num_servers() && num_servers() > 1;
      draft_.notes.push_back(fmt::format("left out: {}{}: {}", subnet,
                                         all ? ", which joins all servers like a management network" : "",
                                         some_of(nics)));
    }
    if (segments_.num_routed > 0)
      draft_.notes.push_back(
          fmt::format("{} pairs of NICs of one subnet have a router between them", segments_.num_routed));
  }

  const Observation& seen_;
  SeenSegments segments_;
  Draft draft_;
  bool is_told_ = false;
  /// The level of a single server, whose shape has none.
  Level alone_{.name = {},
               .radix = 1,
               .kind = LevelKind::kSwitch,
               .rails = {},
               .bandwidth_bytes_per_s = kDefaultBandwidthBytesPerS,
               .latency_ns = kDefaultLatencyNs};
};

}  // namespace

Result<Draft> draft_told(const Observation& seen, ToldTopology told) {
  return Drafter(seen).draft(std::move(told));
}

Result<Draft> draft_topology(const Observation& seen) {
  return Drafter(seen).draft();
}

}  // namespace hips::topology
