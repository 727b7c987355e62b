#include "lib/plan/tree_packing.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "lib/plan/components.hpp"
#include "lib/plan/packing_lp.hpp"
#include "topology/family.hpp"
#include "topology/link_rates.hpp"
#include "topology/tiers.hpp"
#include "topology/walk.hpp"

namespace hips::plan {
namespace {

/// In larger groups not every pair is tried: trees need a few good ways out of a server, not all.
constexpr std::int64_t kNearest = 16;
/// Trees that are grown one after the other.
constexpr std::int32_t kGrown = 32;
/// Above so many NICs the linear program takes longer than it saves.
constexpr std::size_t kMostRows = 320;
/// Entries of the program's tableau that are gone over: a few tenths of a second.
constexpr std::int64_t kMostWork = 150'000'000;
constexpr double kNearOptimum = 0.995;
/// Of links, when a tree costs 1.
constexpr double kSamePrice = 1e-9;
/// What fewer trees may cost more: each is a lane, with messages and buffers of its own.
constexpr double kWorth = 1.02;

double eighth_power(double x) {
  const double x2 = x * x, x4 = x2 * x2;
  return x4 * x4;
}

class Packer {
 public:
  explicit Packer(const Topology& topology)
      : topology_(topology),
        servers_(topology.num_servers()),
        tiers_(topology::tiers(topology)),
        rates_(topology, tiers_) {
    add_resources();
    topology.servers_relay ? add_ways_of_levels() : add_ways_of_switches();
  }

  /// After the program's solution, see partitions_by_price().
  [[nodiscard]] std::vector<std::vector<std::int64_t>> partitions() {
    if (!check_components().ok()) return {};
    grow();
    weigh();
    std::vector<std::pair<double, std::int32_t>> by_price;
    for (std::size_t w = 0; w < price_.size(); ++w)
      by_price.emplace_back(price_[w], static_cast<std::int32_t>(w));
    std::ranges::sort(by_price);
    std::vector<std::vector<std::int64_t>> made;
    Forest forest(servers_);
    std::int64_t num_parts = servers_;
    double last = 0;
    for (const auto& [price, way] : by_price) {
      // Prices that differ by rounding only are one.
      if (price > last + kSamePrice && num_parts < servers_) add_parts(forest, made);
      last = price;
      if (forest.join(ways_[way].edge.a, ways_[way].edge.b)) --num_parts;
      if (num_parts == 1) break;
    }
    return made;
  }

  Result<TreePacking> pack() {
    if (Status apart = check_components(); !apart.ok()) return fail(std::move(apart));
    grow();
    weigh();
    return take();
  }

 private:
  void add_parts(Forest& forest, std::vector<std::vector<std::int64_t>>& made) const {
    std::vector<std::int64_t> parts;
    for (std::int64_t server = 0; server < servers_; ++server) parts.push_back(forest.find(server));
    if (made.empty() || made.back() != parts) made.push_back(std::move(parts));
  }

  /// What an edge of a tree keeps busy: two NICs, and the cables above two switches for each tier it crosses.
  using Uses = std::vector<std::int32_t>;
  struct Way {
    TreeEdge edge;
    Uses uses;
  };
  using Tree = std::vector<std::int32_t>;  ///< ways, ascending

  void add_resources() {
    double largest = 0;
    for (std::int64_t server = 0; server < servers_; ++server) {
      for (Rail rail = 0; rail < topology_.num_rails; ++rail) rate_.push_back(rates_.nic(server, rail));
    }
    for (std::size_t t = 0; t < tiers_.size(); ++t) {
      first_of_tier_.push_back(static_cast<std::int32_t>(rate_.size()));
      for (std::int64_t i = 0; i < tiers_[t].count; ++i)
        rate_.push_back(rates_.tier(t, static_cast<std::size_t>(i)));
    }
    for (const double rate : rate_) largest = std::max(largest, rate);
    // Rates near 1, so that powers of loads are neither lost nor infinite.
    unit_ = largest;
    for (double& rate : rate_) rate /= largest;
  }

  void add_way(std::int64_t a, std::int64_t b, Rail a_rail, Rail b_rail) {
    Way way{{a, b, a_rail, b_rail}, {}};
    way.uses.push_back(static_cast<std::int32_t>(a * topology_.num_rails + a_rail));
    way.uses.push_back(static_cast<std::int32_t>(b * topology_.num_rails + b_rail));
    for (std::size_t t = 0; t < tiers_.size(); ++t) {
      const std::int64_t over_a = topology_.whole_server(a) / tiers_[t].servers_below;
      const std::int64_t over_b = topology_.whole_server(b) / tiers_[t].servers_below;
      if (over_a == over_b) continue;
      way.uses.push_back(first_of_tier_[t] + static_cast<std::int32_t>(over_a));
      way.uses.push_back(first_of_tier_[t] + static_cast<std::int32_t>(over_b));
    }
    for (const std::int32_t used : way.uses) {
      if (!(rate_[used] > 0)) return;  // a link on it is down
    }
    ways_.push_back(std::move(way));
  }

  /// Between members of a group that reach each other by `rail`.
  void add_group(const std::vector<std::int64_t>& members, Rail rail) {
    const auto size = static_cast<std::int64_t>(members.size());
    for (std::int64_t i = 0; i < size; ++i) {
      for (std::int64_t j = i + 1; j < size; ++j) {
        const std::int64_t apart = j - i;
        if (size > 2 * kNearest && apart > kNearest && (apart & (apart - 1)) != 0) continue;
        add_way(members[i], members[j], rail, rail);
      }
    }
  }

  /// Switches of a group each, and cables to the next: BCube, Torus.
  void add_ways_of_levels() {
    std::int64_t stride = 1;
    for (const Level& level : topology_.levels) {
      if (level.kind == LevelKind::kNode) continue;
      std::map<std::int64_t, std::vector<std::int64_t>> groups;
      for (std::int64_t server = 0; server < servers_; ++server) {
        const std::int64_t whole = topology_.whole_server(server);
        const std::int64_t digit = whole / stride % level.radix;
        if (topology::is_of_cables(level)) {
          if (level.kind == LevelKind::kLine && digit + 1 == level.radix) continue;
          const std::int64_t next =
              topology_.server_in_use(whole + ((digit + 1) % level.radix - digit) * stride);
          if (next >= 0 && next != server) add_way(server, next, level.rails[0], level.rails[1]);
        } else {
          groups[whole - digit * stride].push_back(server);
        }
      }
      for (const auto& [first, members] : groups) {
        for (const Rail rail : level.rails) add_group(members, rail);
      }
      stride *= level.radix;
    }
  }

  /// Any server reaches any other, by each of its NICs: racks, trees of switches.
  void add_ways_of_switches() {
    std::vector<std::int64_t> all(static_cast<std::size_t>(servers_));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    for (Rail rail = 0; rail < topology_.num_rails; ++rail) add_group(all, rail);
  }

  [[nodiscard]] Status check_components() const {
    Forest forest(servers_);
    for (const Way& way : ways_) forest.join(way.edge.a, way.edge.b);
    return check_joined(topology_, forest, ", unless others relay for them",
                        "Add servers that join them, or use those of one only");
  }

  /// Grows a tree edge by edge, the cheapest first; cost(way) may rise, never fall, as edges are taken.
  template <typename Cost, typename Took>
  Tree grown(std::size_t turn, Cost&& cost, Took&& took) const {
    struct Entry {
      double cost;
      std::size_t order;
      std::int32_t way;
      bool operator<(const Entry& other) const {
        return cost != other.cost ? cost > other.cost : order > other.order;
      }
    };
    std::vector<Entry> entries;
    entries.reserve(ways_.size());
    for (std::size_t w = 0; w < ways_.size(); ++w) {
      // Ties go to another way in each tree.
      entries.push_back({cost(ways_[w]), (w + turn * 7919) % ways_.size(), static_cast<std::int32_t>(w)});
    }
    std::priority_queue<Entry> queue(std::less<Entry>(), std::move(entries));
    Forest forest(servers_);
    Tree tree;
    while (static_cast<std::int64_t>(tree.size()) < servers_ - 1 && !queue.empty()) {
      Entry entry = queue.top();
      queue.pop();
      const Way& way = ways_[entry.way];
      if (forest.find(way.edge.a) == forest.find(way.edge.b)) continue;
      const double now = cost(way);
      if (now > entry.cost) {
        entry.cost = now;
        queue.push(entry);
        continue;
      }
      forest.join(way.edge.a, way.edge.b);
      took(way);
      tree.push_back(entry.way);
    }
    std::ranges::sort(tree);
    return tree;
  }

  [[nodiscard]] std::vector<double> load_of(const Tree& tree) const {
    std::vector<double> load(rate_.size(), 0.0);
    for (const std::int32_t way : tree) {
      for (const std::int32_t used : ways_[way].uses) load[used] += 1;
    }
    return load;
  }

  [[nodiscard]] double busiest(const std::vector<double>& load) const {
    double most = 0;
    for (std::size_t r = 0; r < rate_.size(); ++r) {
      if (load[r] > 0) most = std::max(most, load[r] / rate_[r]);
    }
    return most;
  }

  void grow() {
    std::vector<double> load(rate_.size(), 0.0);
    for (std::int32_t t = 1; t <= kGrown; ++t) {
      // Larger powers look at the busiest alone; the number of trees so far keeps them near 1.
      const double scale = 1.0 / (2.0 * t);
      const auto price = [&](std::int32_t r) {
        return eighth_power((load[r] + 1) * scale / rate_[r]) - eighth_power(load[r] * scale / rate_[r]);
      };
      Tree tree = grown(
          static_cast<std::size_t>(t),
          [&](const Way& way) {
            double sum = 0;
            for (const std::int32_t used : way.uses) sum += price(used);
            return sum;
          },
          [&](const Way& way) {
            for (const std::int32_t used : way.uses) load[used] += 1;
          });
      pool_.push_back(std::move(tree));
      equal_seconds_.push_back(busiest(load) / t);
    }
  }

  /// Rows of the program: what some way uses. Those that no tree can avoid being busiest are among them.
  void weigh() {
    std::vector<std::int32_t> row_of(rate_.size(), -1);
    std::vector<double> rates;
    for (const Way& way : ways_) {
      for (const std::int32_t used : way.uses) {
        if (row_of[used] >= 0) continue;
        row_of[used] = static_cast<std::int32_t>(rates.size());
        rates.push_back(rate_[used]);
      }
    }
    if (rates.size() > kMostRows) return;
    PackingLp program(rates);
    std::set<Tree> known;
    const auto add = [&](const Tree& tree) {
      if (!known.insert(tree).second) return false;
      const std::vector<double> load = load_of(tree);
      std::vector<double> column(rates.size(), 0.0);
      for (std::size_t r = 0; r < load.size(); ++r) {
        if (row_of[r] >= 0) column[row_of[r]] = load[r];
      }
      program.add_column(column);
      weighed_.push_back(tree);
      return true;
    };
    const auto price_of = [&](const Way& way, const std::vector<double>& prices) {
      double sum = 0;
      for (const std::int32_t used : way.uses) sum += prices[row_of[used]];
      return sum;
    };
    for (const Tree& tree : pool_) add(tree);
    std::int64_t left = kMostWork - program.solve(kMostWork);
    for (std::size_t added = 0; left > 0; ++added) {
      // The tree that is cheapest at the program's prices. It costs 1 at the optimum, and where it costs
      // less, the optimum is no further away than that.
      const std::vector<double> prices = program.duals();
      double cost_of_tree = 0;
      const auto cost = [&](const Way& way) { return price_of(way, prices); };
      Tree tree = grown(added, cost, [&](const Way& way) { cost_of_tree += cost(way); });
      if (cost_of_tree > kNearOptimum || !add(tree)) break;
      left -= program.solve(left) + 1;
    }
    const std::vector<double> prices = program.duals();
    for (const Way& way : ways_) price_.push_back(price_of(way, prices));
    weights_ = program.x();
    weighed_seconds_ = program.value() > 0 ? 1 / program.value() : 0;
  }

  /// Weighs trees that are left after small shares were given up: to enlarge all alike would cost as much as
  /// was given up, while the program finds the room. Returns the sum of their new shares.
  double weigh_again(std::vector<std::pair<const Tree*, double>>& weighed) const {
    if (weighed.empty()) return 0;
    std::vector<double> rates;
    std::vector<std::int32_t> row_of(rate_.size(), -1);
    for (const auto& [tree, share] : weighed) {
      for (const std::int32_t way : *tree) {
        for (const std::int32_t used : ways_[way].uses) {
          if (row_of[used] >= 0) continue;
          row_of[used] = static_cast<std::int32_t>(rates.size());
          rates.push_back(rate_[used]);
        }
      }
    }
    PackingLp program(rates);
    for (const auto& [tree, share] : weighed) {
      std::vector<double> column(rates.size(), 0.0);
      for (const std::int32_t way : *tree) {
        for (const std::int32_t used : ways_[way].uses) column[row_of[used]] += 1;
      }
      program.add_column(column);
    }
    program.solve(kMostWork);
    const std::vector<double> x = program.x();
    double sum = 0;
    for (std::size_t i = 0; i < weighed.size(); ++i) sum += weighed[i].second = x[i];
    std::erase_if(weighed, [](const auto& each) { return !(each.second > 0); });
    return sum;
  }

  [[nodiscard]] WeightedTree finished(const Tree& tree, double share) const {
    WeightedTree made;
    made.share = share;
    std::vector<std::vector<std::int64_t>> near(static_cast<std::size_t>(servers_));
    for (const std::int32_t way : tree) {
      const TreeEdge& edge = ways_[way].edge;
      made.edges.push_back(edge);
      near[edge.a].push_back(edge.b);
      near[edge.b].push_back(edge.a);
    }
    // The middle of a longest path: from there the farthest server is nearest.
    std::vector<std::int64_t> from;
    const auto farthest = [&](std::int64_t start) {
      from.assign(static_cast<std::size_t>(servers_), -1);
      from[start] = start;
      std::vector<std::int64_t> order{start};
      for (std::size_t i = 0; i < order.size(); ++i) {
        for (const std::int64_t next : near[order[i]]) {
          if (from[next] >= 0) continue;
          from[next] = order[i];
          order.push_back(next);
        }
      }
      return order.back();
    };
    const std::int64_t end = farthest(farthest(0));
    std::vector<std::int64_t> path{end};
    while (from[path.back()] != path.back()) path.push_back(from[path.back()]);
    made.root = path[path.size() / 2];
    made.depth = static_cast<std::int64_t>(path.size()) / 2;
    return made;
  }

  [[nodiscard]] TreePacking take() const {
    TreePacking packing;
    // Shares of less than a hundredth cost a lane each and save next to nothing.
    constexpr double kLeastShare = 0.01;
    std::vector<std::pair<const Tree*, double>> weighed;
    double kept = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (const double share = weights_[i] * weighed_seconds_; share >= kLeastShare)
        weighed.emplace_back(&weighed_[i], share);
    }
    kept = weigh_again(weighed);
    std::vector<double> load(rate_.size(), 0.0);
    for (auto& [tree, share] : weighed) {
      share /= kept;
      const std::vector<double> of_tree = load_of(*tree);
      for (std::size_t r = 0; r < load.size(); ++r) load[r] += share * of_tree[r];
    }
    double seconds = weighed.empty() ? equal_seconds_.back() : busiest(load);
    double least = seconds;
    for (const double each : equal_seconds_) least = std::min(least, each);
    // As few trees as nearly do it.
    std::size_t fewest = weighed.empty() || seconds > least * kWorth ? pool_.size() + 1 : weighed.size();
    for (std::size_t t = 0; t < pool_.size() && t + 1 < fewest; ++t) {
      if (equal_seconds_[t] > least * kWorth) continue;
      fewest = t + 1;
      weighed.clear();
      seconds = equal_seconds_[t];
      for (std::size_t i = 0; i < fewest; ++i)
        weighed.emplace_back(&pool_[i], 1.0 / static_cast<double>(fewest));
    }
    for (const auto& [tree, share] : weighed) packing.trees.push_back(finished(*tree, share));
    packing.seconds_per_byte = seconds / unit_;
    return packing;
  }

  const Topology& topology_;
  std::int64_t servers_;
  std::vector<topology::Tier> tiers_;
  topology::LinkRates rates_;
  std::vector<double> rate_;  ///< of every NIC and tier's switch, the fastest being 1
  double unit_ = 1;           ///< bytes per second of the fastest
  std::vector<std::int32_t> first_of_tier_;
  std::vector<Way> ways_;

  std::vector<Tree> pool_;             ///< as they were grown
  std::vector<double> equal_seconds_;  ///< of the first so many of them, with equal shares
  std::vector<Tree> weighed_;
  std::vector<double> weights_;
  std::vector<double> price_;  ///< of every way, in the program's solution; a tree costs 1
  double weighed_seconds_ = 0;
};

}  // namespace

Result<TreePacking> pack_trees(const Topology& topology) {
  if (topology.num_servers() > kMostPackedServers) {
    return fail(
        Code::kUnsupported,
        fmt::format("plan: {} servers; trees are packed for up to {}: a hierarchy takes more, where all "
                    "servers are in use, no link is down and no dimension is open as a mesh's",
                    topology.num_servers(), kMostPackedServers));
  }
  return Packer(topology).pack();
}

std::vector<std::vector<std::int64_t>> partitions_by_price(const Topology& topology) {
  if (topology.num_servers() < 2 || topology.num_servers() > kMostPackedServers) return {};
  return Packer(topology).partitions();
}

}  // namespace hips::plan
