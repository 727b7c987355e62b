#include "topology/wiring/fit.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/formats/parse.hpp"
#include "topology/formats/part.hpp"
#include "topology/levels.hpp"
#include "topology/most_common.hpp"
#include "topology/rates.hpp"

namespace hips::topology {
namespace {

/// Larger graphs than this are not compared.
constexpr std::int64_t kMostLinks = std::int64_t{1} << 21;

/// Longer lists are cut in notes.
constexpr std::size_t kMostNamed = 6;

constexpr std::size_t kMissing = SIZE_MAX;       ///< the wiring does not have the cable
constexpr std::size_t kNotInUse = SIZE_MAX - 1;  ///< nor the server or the switch that it belongs to

class LayoutComparison {
 public:
  LayoutComparison(std::string_view name, const ServerWiring& wiring, const FamilyLayout& layout)
      : name_(name), wiring_(wiring), layout_(layout), whole_(layout.whole) {}

  std::optional<FamilyFit> run() {
    if (whole_.num_links > kMostLinks) return std::nullopt;
    Topology marked = whole_;
    // A rate of its own for each level tells which level a link of the graph belongs to.
    for (std::size_t level = 0; level < marked.levels.size(); ++level)
      marked.levels[level].bandwidth_bytes_per_s = static_cast<double>(level) + 1;
    graph_ = marked.graph();
    if (!match_cables()) return std::nullopt;
    set_levels();
    add_overrides();
    return finish();
  }

 private:
  [[nodiscard]] std::int64_t seen(std::int64_t node) const {
    return layout_.seen[static_cast<std::size_t>(node)];
  }
  [[nodiscard]] bool is_server(std::int64_t node) const { return node < whole_.num_whole_servers(); }

  static std::uint64_t pair_key(std::size_t a, std::size_t b) {
    return (static_cast<std::uint64_t>(std::min(a, b)) << 32U) | std::max(a, b);
  }

  /// Finds the cable of the wiring for each link of the graph.
  bool match_cables() {
    std::unordered_map<std::uint64_t, std::vector<std::size_t>> between;
    for (std::size_t i = wiring_.cables.size(); i-- > 0;)
      between[pair_key(wiring_.cables[i].a, wiring_.cables[i].b)].push_back(i);
    // Switches of which no server is in use are not in use either.
    std::vector<bool> has_server(graph_.nodes.size(), false), below(graph_.nodes.size(), false);
    for (const GraphLink& link : graph_.links) {
      if (!is_server(link.a) || is_server(link.b)) continue;
      has_server[static_cast<std::size_t>(link.b)] = true;
      if (seen(link.a) >= 0) below[static_cast<std::size_t>(link.b)] = true;
    }
    const auto in_use = [&](std::int64_t node) {
      const auto at = static_cast<std::size_t>(node);
      return seen(node) >= 0 || (!is_server(node) && (below[at] || !has_server[at]));
    };
    std::size_t matched = 0, missing = 0;
    for (const GraphLink& link : graph_.links) {
      cable_of_.push_back(kMissing);
      if (!in_use(link.a) || !in_use(link.b)) {
        cable_of_.back() = kNotInUse;
        continue;
      }
      auto found = between.end();
      if (seen(link.a) >= 0 && seen(link.b) >= 0)
        found = between.find(
            pair_key(static_cast<std::size_t>(seen(link.a)), static_cast<std::size_t>(seen(link.b))));
      if (found == between.end() || found->second.empty()) {
        ++missing;
        continue;
      }
      cable_of_.back() = found->second.back();
      found->second.pop_back();
      ++matched;
    }
    missing_ = static_cast<std::int64_t>(missing);
    return matched == wiring_.cables.size() &&
           missing <= std::max(static_cast<std::size_t>(kMostMissing), matched / 100);
  }

  [[nodiscard]] std::size_t level_of(const GraphLink& link) const {
    return static_cast<std::size_t>(link.bandwidth_bytes_per_s) - 1;
  }

  /// Gives each level the rate and the latency of most of its cables.
  void set_levels() {
    std::vector<MostCommon<double>> rates(whole_.levels.size()), latencies(whole_.levels.size());
    bool latencies_differ = false;
    for (std::size_t i = 0; i < graph_.links.size(); ++i) {
      if (cable_of_[i] >= kNotInUse || whole_.levels.empty()) continue;
      const WiredCable& cable = wiring_.cables[cable_of_[i]];
      rates[level_of(graph_.links[i])].add(cable.bandwidth_bytes_per_s);
      latencies[level_of(graph_.links[i])].add(cable.latency_ns);
    }
    for (std::size_t level = 0; level < whole_.levels.size(); ++level) {
      whole_.levels[level].bandwidth_bytes_per_s = rates[level].value_or(kDefaultBandwidthBytesPerS);
      whole_.levels[level].latency_ns = latencies[level].value_or(kDefaultLatencyNs);
    }
    for (std::size_t i = 0; i < graph_.links.size(); ++i) {
      if (cable_of_[i] >= kNotInUse || whole_.levels.empty()) continue;
      latencies_differ = latencies_differ || wiring_.cables[cable_of_[i]].latency_ns !=
                                                 whole_.levels[level_of(graph_.links[i])].latency_ns;
    }
    if (latencies_differ)
      notes_.push_back("cables of a level have different latencies; the most common one counts");
  }

  [[nodiscard]] const std::string& name_of(std::int64_t node) const {
    return wiring_.names[static_cast<std::size_t>(seen(node))];
  }

  /// "node3:mlx5_1 to leaf2:swp4", "node3:1 to node4:0", "leaf2 to a switch".
  [[nodiscard]] std::string words(const GraphLink& link, std::size_t number) const {
    const auto end = [&](std::int64_t node, Rail rail) {
      if (seen(node) < 0) return std::string("a switch");
      const auto at = static_cast<std::size_t>(seen(node));
      std::string port = rail == kNoRail ? "" : fmt::format("{}", rail);
      if (number < kNotInUse) {
        const WiredCable& cable = wiring_.cables[number];
        const std::string& listed = cable.a == at ? cable.a_port : cable.b_port;
        if (!listed.empty()) port = listed;
      }
      return port.empty() ? name_of(node) : fmt::format("{}:{}", name_of(node), port);
    };
    return fmt::format("{} to {}", end(link.a, link.a_port), end(link.b, link.b_port));
  }

  void add_overrides() {
    std::vector<std::string> missing, down, other_rate;
    for (std::size_t i = 0; i < graph_.links.size(); ++i) {
      const GraphLink& link = graph_.links[i];
      if (cable_of_[i] == kNotInUse) continue;
      const double usual = whole_.levels.empty() ? kDefaultBandwidthBytesPerS
                                                 : whole_.levels[level_of(link)].bandwidth_bytes_per_s;
      LinkOverride one;
      one.bandwidth_bytes_per_s = usual;
      if (cable_of_[i] == kMissing) {
        one.up = false;
        missing.push_back(words(link, kMissing));
      } else {
        const WiredCable& cable = wiring_.cables[cable_of_[i]];
        one.bandwidth_bytes_per_s = cable.bandwidth_bytes_per_s;
        one.up = cable.up;
        if (!cable.up) {
          down.push_back(words(link, cable_of_[i]));
        } else if (cable.bandwidth_bytes_per_s == usual) {
          continue;
        } else {
          other_rate.push_back(fmt::format("{} ({} instead of {})", words(link, cable_of_[i]),
                                           rate_text(cable.bandwidth_bytes_per_s), rate_text(usual)));
        }
      }
      if (is_server(link.a)) {
        one.server = link.a;
        one.rail = link.a_port;
      } else {
        one.lower = graph_.nodes[static_cast<std::size_t>(link.a)].name;
        one.upper = graph_.nodes[static_cast<std::size_t>(link.b)].name;
      }
      overrides_.push_back(std::move(one));
    }
    add_note("missing, so it counts as down", "missing, so they count as down", missing);
    add_note("down", "down", down);
    add_note("at another rate than its like", "at another rate than their like", other_rate);
  }

  void add_note(std::string_view one, std::string_view several, std::vector<std::string>& cables) {
    if (cables.empty()) return;
    const std::size_t count = cables.size();
    std::string more;
    if (count > kMostNamed) {
      cables.resize(kMostNamed);
      more = fmt::format(" (and {} more)", count - kMostNamed);
    }
    notes_.push_back(fmt::format("cable{} {}{} {} {}", count > 1 ? "s" : "", fmt::join(cables, ", "), more,
                                 count > 1 ? "are" : "is", count > 1 ? several : one));
  }

  std::optional<FamilyFit> finish() {
    std::vector<std::int64_t> used, not_used;
    for (std::int64_t server = 0; server < whole_.num_whole_servers(); ++server)
      (seen(server) >= 0 ? used : not_used).push_back(server);
    FamilyFit result{.cluster = {.topology = whole_, .nodes = {}, .notes = wiring_.notes},
                     .missing = missing_ + static_cast<std::int64_t>(not_used.size())};
    Topology& topology = result.cluster.topology;
    if (!not_used.empty()) {
      if (!take_part(whole_.spec, part_text(used), topology)) return std::nullopt;
      notes_.insert(notes_.begin(), fmt::format("{} without server{} {}", whole_.name,
                                                not_used.size() > 1 ? "s" : "", part_text(not_used)));
    }
    for (LinkOverride& one : overrides_)
      if (one.server >= 0) one.server = topology.server_in_use(one.server);
    std::ranges::sort(overrides_, {}, [](const LinkOverride& one) {
      return std::tuple(one.server < 0, one.server, one.rail, one.lower, one.upper);
    });
    topology.overrides = std::move(overrides_);
    for (const std::int64_t server : used) result.cluster.nodes.push_back(name_of(server));
    for (std::size_t node = 0; node < graph_.nodes.size(); ++node)
      if (graph_.nodes[node].is_switch || layout_.seen[node] >= 0) result.seen.push_back(layout_.seen[node]);
    if (!notes_.empty())
      result.cluster.notes.push_back(fmt::format(
          "{}: {}{}", name_, not_used.empty() ? whole_.name + ": " : "", fmt::join(notes_, "; ")));
    return result;
  }

  std::string_view name_;
  const ServerWiring& wiring_;
  const FamilyLayout& layout_;
  Topology whole_;
  Graph graph_;
  std::vector<std::size_t> cable_of_;  ///< by link of the graph
  std::int64_t missing_ = 0;
  std::vector<LinkOverride> overrides_;
  std::vector<std::string> notes_;
};

}  // namespace

std::optional<FamilyFit> fit(std::string_view name, const ServerWiring& wiring, const FamilyLayout& layout) {
  return LayoutComparison(name, wiring, layout).run();
}

}  // namespace hips::topology
