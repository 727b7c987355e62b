#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/base/counted.hpp"
#include "tools/hips/health/predicted.hpp"
#include "tools/hips/health/report.hpp"
#include "topology/health/cabling_of.hpp"
#include "topology/health/health.hpp"

namespace hips::health {
namespace {

/// Longer lists are cut.
constexpr std::size_t kMostNamed = 6;

/// Up to this factor the ratios of oversubscription of switches count as equal.
constexpr double kSameRatio = 1.001;

/// "24", "23 to 24"
template <typename Value>
std::string span_text(Value least, Value most) {
  return least == most ? fmt::format("{:.3g}", least) : fmt::format("{:.3g} to {:.3g}", least, most);
}

class TextReport {
 public:
  explicit TextReport(const topology::TopologyFile& file)
      : file_(file), cabling_(topology::cabling_of(file)), health_(topology::examine(cabling_)) {}

  std::string run() {
    add_counts();
    add_oversubscription();
    add_uneven();
    add_odd();
    add_cut_points();
    add_few_nics();
    add_times();
    return std::move(text_);
  }

 private:
  [[nodiscard]] const std::string& name(std::size_t node) const { return cabling_.nodes[node].name; }
  [[nodiscard]] std::string word(std::size_t tier, std::size_t count = 1) const {
    if (tier == 0) return count == 1 ? "server" : "servers";
    return health_.tiers.word(tier, count);
  }

  void add(std::string_view key, std::string_view line) {
    text_ += fmt::format("  {:<8}  {}\n", key == last_key_ ? "" : key, line);
    last_key_ = key;
  }

  /// The lines of a list under one key; of a long one the first, and how many more.
  void add_list(std::string_view key, const std::vector<std::string>& lines) {
    const std::size_t shown = lines.size() > kMostNamed ? kMostNamed - 1 : lines.size();
    for (std::size_t i = 0; i < shown; ++i) add(key, lines[i]);
    if (shown < lines.size()) add(key, fmt::format("and {} more; --json lists all", lines.size() - shown));
  }

  void add_counts() {
    std::map<std::size_t, std::size_t> nodes;
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> cables;
    for (const std::size_t tier : health_.tiers.of)
      if (tier != SIZE_MAX) ++nodes[tier];
    for (const topology::Cable& cable : cabling_.cables) {
      const auto ends = std::minmax(health_.tiers.of[cable.a.node], health_.tiers.of[cable.b.node]);
      if (ends.second != SIZE_MAX) ++cables[ends];
    }
    // The summary has told the same already.
    if (health_.tiers.highest < 2 && !health_.tiers.has_more) return;
    std::vector<std::string> counts, between;
    for (const auto& [tier, count] : nodes) counts.push_back(fmt::format("{} {}", count, word(tier, count)));
    for (const auto& [ends, count] : cables) {
      const auto& [low, high] = ends;
      const std::string where = low == 0      ? (high == 0 ? "between servers" : "of servers")
                                : low == high ? "between " + word(low, 2)
                                              : fmt::format("between {} and {}", word(low, 2), word(high, 2));
      between.push_back(counted(count, "cable") + " " + where);
    }
    add("tiers", fmt::format("{}; {}", fmt::join(counts, ", "), fmt::join(between, ", ")));
  }

  /// "24 servers x 100 Gb/s"; of different rates their sum.
  [[nodiscard]] static std::string cables_text(std::size_t least, std::size_t most, double rate,
                                               std::string_view what) {
    const std::string count = least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
    return rate > 0 ? fmt::format("{}{} x {}", count, what, rate_text(rate))
                    : fmt::format("{}{}", count, what);
  }

  void add_oversubscription() {
    for (std::size_t tier = 1; tier < health_.tiers.highest; ++tier) {
      std::size_t least_below = SIZE_MAX, most_below = 0, least_above = SIZE_MAX, most_above = 0;
      double least = 1e300, most = 0;
      const topology::SwitchLoad* worst = nullptr;
      for (const topology::SwitchLoad& load : health_.loads) {
        if (health_.tiers.of[load.node] != tier || load.above == 0 || load.below == 0) continue;
        const double ratio = load.below_bytes_per_s / load.above_bytes_per_s;
        if (ratio > most * 1.001) worst = &load;
        least = std::min(least, ratio);
        most = std::max(most, ratio);
        least_below = std::min(least_below, load.below);
        most_below = std::max(most_below, load.below);
        least_above = std::min(least_above, load.above);
        most_above = std::max(most_above, load.above);
      }
      if (worst == nullptr) continue;
      const std::string what = std::string(tier == 1 ? " server" : " cable") + (most_below == 1 ? "" : "s");
      const auto [below, above] = usual_rates(tier);
      if (most < kSameRatio * least) least = most;
      std::string line =
          fmt::format("{} down, {} up: {}:1", cables_text(least_below, most_below, below, what),
                      cables_text(least_above, most_above, above, ""), span_text(least, most));
      if (least < most) line += fmt::format(", worst {}", name(worst->node));
      add(word(tier), line);
    }
  }

  /// The rates of most cables below and above the switches of a tier.
  [[nodiscard]] std::pair<double, double> usual_rates(std::size_t tier) const {
    std::map<double, std::size_t> below, above;
    for (const topology::Cable& cable : cabling_.cables) {
      const auto [low, high] = std::minmax(health_.tiers.of[cable.a.node], health_.tiers.of[cable.b.node]);
      if (high == tier && low < tier) ++below[cable.bandwidth_bytes_per_s];
      if (low == tier && high > tier) ++above[cable.bandwidth_bytes_per_s];
    }
    const auto most = [](const std::map<double, std::size_t>& rates) {
      const auto found = std::ranges::max_element(
          rates, {}, [](const auto& one) { return std::pair(one.second, one.first); });
      return found == rates.end() ? 0.0 : found->first;
    };
    return {most(below), most(above)};
  }

  void add_uneven() {
    if (const auto& leaves = health_.leaves; leaves.size() > kMostNamed) {
      std::size_t least = SIZE_MAX, most = 0;
      for (const topology::Uneven& one : leaves) {
        least = std::min({least, one.count, one.usual});
        most = std::max({most, one.count, one.usual});
      }
      const auto fewer =
          std::ranges::count_if(leaves, [](const topology::Uneven& one) { return one.count < one.usual; });
      const auto all = std::ranges::count(health_.tiers.of, std::size_t{1});
      add("uneven", fmt::format("{} have {} to {} servers, most often {}: {} of {} fewer", word(1, 2), least,
                                most, leaves[0].usual, fewer, all));
    } else {
      for (const topology::Uneven& one : leaves)
        add("uneven",
            one.count < one.usual
                ? fmt::format("{} has {} of {}", name(one.node), one.count, counted(one.usual, "server"))
                : fmt::format("{} has {}, {} {}", name(one.node), counted(one.count, "server"),
                              leaves.size() == 1 ? "the others" : "most often", one.usual));
    }
    std::vector<std::string> lines;
    for (const topology::Uneven& one : health_.uplinks)
      lines.push_back(
          one.count < one.usual
              ? fmt::format("{} has {} of {} up", name(one.node), one.count, counted(one.usual, "cable"))
              : fmt::format("{} has {} up, {} {}", name(one.node), counted(one.count, "cable"),
                            health_.uplinks.size() == 1 ? "the others" : "most often", one.usual));
    for (const topology::MissingCables& one : health_.missing)
      lines.push_back(fmt::format("{} -- {}: {} of {}", name(one.lower), name(one.upper), one.count,
                                  counted(one.usual, "cable")));
    add_list("uneven", lines);
  }

  void add_odd() {
    std::vector<std::string> lines;
    for (const topology::OddCable& odd : health_.odd) {
      const topology::Cable& cable = cabling_.cables[odd.cable];
      lines.push_back(fmt::format("{}: {}", topology::cable_text(cabling_, health_.tiers, odd.cable),
                                  cable.up
                                      ? fmt::format("{}, its like {}", rate_text(cable.bandwidth_bytes_per_s),
                                                    rate_text(odd.usual_bytes_per_s))
                                      : "down"));
    }
    add_list("unlike", lines);
  }

  void add_cut_points() {
    std::size_t servers = 0;
    for (const topology::CabledNode& node : cabling_.nodes)
      servers += node.kind == topology::CabledNode::Kind::kServer ? 1 : 0;
    if (servers < 2) return;
    std::vector<topology::CutPoint> points;
    for (const topology::CutPoint& point : health_.cut_points)
      if (!point.only_single_servers || (!point.is_cable && point.cut_off == servers))
        points.push_back(point);
    std::ranges::stable_sort(points, std::ranges::greater{}, &topology::CutPoint::cut_off);
    std::vector<std::string> lines;
    for (const topology::CutPoint& point : points) {
      const std::string what = point.is_cable
                                   ? "cable " + topology::cable_text(cabling_, health_.tiers, point.index)
                                   : name(point.index);
      lines.push_back(
          point.cut_off == servers
              ? fmt::format("{} joins all servers: without it none reaches another", what)
              : fmt::format("{}: its loss cuts off {} of {} servers", what, point.cut_off, servers));
    }
    const std::size_t one = health_.servers_with_one_cable;
    if (one == servers) lines.emplace_back("each server has one cable");
    if (one > 0 && one < servers)
      lines.push_back(fmt::format("{} of {} servers {} one cable", one, servers, one == 1 ? "has" : "have"));
    add_list("single", lines);
  }

  void add_few_nics() {
    std::map<std::pair<std::size_t, std::size_t>, std::vector<std::string>> by_count;
    // Those at the edges of a mesh have fewer anyway.
    if (health_.tiers.highest == 0) return;
    for (const topology::Uneven& one : health_.fewer_nics)
      by_count[{one.count, one.usual}].push_back(name(one.node));
    for (auto& [counts, names] : by_count) {
      const std::size_t all = names.size();
      if (all > kMostNamed) names.resize(3);
      add("NICs", fmt::format("{}{} {} {}, {} {}", fmt::join(names, " "),
                              all > names.size() ? fmt::format(" and {} more", all - names.size()) : "",
                              all == 1 ? "has" : "have", counted(counts.first, "NIC"),
                              by_count.size() == 1 ? "the others" : "most often", counts.second));
    }
  }

  void add_times() {
    const Times times = predict(file_, cabling_, health_);
    if (!times.all) return;
    std::string line = fmt::format("predicted allreduce: {} over all {} servers", time_text(*times.all),
                                   file_.topology.num_servers());
    if (times.leaf)
      line += fmt::format(", {} over the {} of {}", time_text(*times.leaf), times.leaf_servers,
                          name(times.leaf_node));
    add("16 MiB", line);
    for (const SlowCable& slow : times.slow)
      add("16 MiB",
          fmt::format("the slow cable {} makes 16 MiB {:.2g} times as long; at {} it would take {}",
                      topology::short_cable_text(cabling_, health_.tiers, slow.cable),
                      *times.all / slow.seconds, rate_text(slow.usual_bytes_per_s), time_text(slow.seconds)));
  }

  const topology::TopologyFile& file_;
  topology::Cabling cabling_;
  topology::Health health_;
  std::string text_, last_key_;
};

}  // namespace

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

std::string rate_text(double bytes_per_s) {
  return fmt::format("{:g} Gb/s", bytes_per_s * 8 / 1e9);
}

std::string report_text(const topology::TopologyFile& file) {
  if (file.topology.num_links > kMostCables) return "";
  return TextReport(file).run();
}

}  // namespace hips::health
