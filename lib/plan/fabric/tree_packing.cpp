#include "lib/plan/fabric/tree_packing.hpp"

#include <algorithm>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "lib/plan/fabric/components.hpp"
#include "lib/plan/fabric/packing_lp.hpp"

namespace hips::plan {
namespace {

/// Trees that are grown one after the other.
constexpr std::int32_t kGrown = 32;
/// For more NICs the linear program takes longer than it saves.
constexpr std::size_t kMostRows = 320;
/// Entries of the program's tableau to touch: a few tenths of a second. On parts of 60 and more servers the
/// search often ends here, at most 1.2 % of the time before its optimum.
constexpr std::int64_t kMostWork = 150'000'000;
constexpr double kNearOptimum = 0.995;
/// Costs of links that differ by less are equal; a tree costs 1.
constexpr double kSameCost = 1e-9;
/// Fewer trees may cost more by this factor: each is a lane with messages and buffers of its own.
constexpr double kWorth = 1.02;
/// Shares below this cost a lane each and save next to nothing.
constexpr double kLeastShareOfATree = 0.01;

double eighth_power(double x) {
  const double x2 = x * x, x4 = x2 * x2;
  return x4 * x4;
}

using HopTree = std::vector<std::int32_t>;  ///< numbers of hops, ascending

/// The middle of a longest path of a tree, from which the farthest server is nearest.
WeightedTree rooted(std::vector<TreeEdge> edges, std::int64_t num_servers, double share) {
  WeightedTree tree;
  tree.share = share;
  tree.edges = std::move(edges);
  std::vector<std::vector<std::int64_t>> near(static_cast<std::size_t>(num_servers));
  for (const TreeEdge& edge : tree.edges) {
    near[edge.a].push_back(edge.b);
    near[edge.b].push_back(edge.a);
  }
  std::vector<std::int64_t> from;
  const auto farthest = [&](std::int64_t start) {
    from.assign(static_cast<std::size_t>(num_servers), -1);
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
  tree.root = path[path.size() / 2];
  tree.depth = static_cast<std::int64_t>(path.size()) / 2;
  return tree;
}

class Packer {
 public:
  explicit Packer(const Topology& topology) : topology_(topology), graph_(topology) {}

  Result<TreePacking> pack() {
    if (Status apart = check_components(); !apart.ok()) return fail(std::move(apart));
    grow();
    weigh();
    return take();
  }

  /// See partitions_by_cost().
  [[nodiscard]] std::vector<std::vector<std::int64_t>> partitions() {
    if (!check_components().ok()) return {};
    grow();
    weigh();
    std::vector<std::pair<double, std::int32_t>> by_cost;
    for (std::size_t hop = 0; hop < cost_.size(); ++hop)
      by_cost.emplace_back(cost_[hop], static_cast<std::int32_t>(hop));
    std::ranges::sort(by_cost);
    std::vector<std::vector<std::int64_t>> made;
    Forest forest(num_servers());
    std::int64_t num_parts = num_servers();
    double last = 0;
    for (const auto& [cost, hop] : by_cost) {
      // Costs that differ by rounding only are one.
      if (cost > last + kSameCost && num_parts < num_servers()) add_parts(forest, made);
      last = cost;
      if (forest.join(hops()[hop].edge.a, hops()[hop].edge.b)) --num_parts;
      if (num_parts == 1) break;
    }
    return made;
  }

 private:
  [[nodiscard]] std::int64_t num_servers() const { return graph_.num_servers(); }
  [[nodiscard]] const std::vector<HopGraph::Candidate>& hops() const { return graph_.hops(); }
  [[nodiscard]] const std::vector<double>& rates() const { return graph_.rates(); }

  void add_parts(Forest& forest, std::vector<std::vector<std::int64_t>>& made) const {
    std::vector<std::int64_t> parts;
    for (std::int64_t server = 0; server < num_servers(); ++server) parts.push_back(forest.find(server));
    if (made.empty() || made.back() != parts) made.push_back(std::move(parts));
  }

  [[nodiscard]] Status check_components() const {
    Forest forest(num_servers());
    for (const HopGraph::Candidate& hop : hops()) forest.join(hop.edge.a, hop.edge.b);
    return check_joined(topology_, forest);
  }

  /// Grows a tree edge by edge, the cheapest first. cost(hop) may rise, never fall, as edges are taken.
  template <typename Cost, typename Take>
  HopTree grown(std::size_t number, Cost&& cost, Take&& take) const {
    struct Entry {
      double cost;
      std::size_t order;
      std::int32_t hop;
      bool operator<(const Entry& other) const {
        return cost != other.cost ? cost > other.cost : order > other.order;
      }
    };
    std::vector<Entry> entries;
    entries.reserve(hops().size());
    for (std::size_t hop = 0; hop < hops().size(); ++hop) {
      // Each tree breaks ties differently.
      entries.push_back(
          {cost(hops()[hop]), (hop + number * 7919) % hops().size(), static_cast<std::int32_t>(hop)});
    }
    std::priority_queue<Entry> queue(std::less<Entry>(), std::move(entries));
    Forest forest(num_servers());
    HopTree tree;
    while (static_cast<std::int64_t>(tree.size()) < num_servers() - 1 && !queue.empty()) {
      Entry entry = queue.top();
      queue.pop();
      const HopGraph::Candidate& hop = hops()[entry.hop];
      if (forest.find(hop.edge.a) == forest.find(hop.edge.b)) continue;
      const double now = cost(hop);
      if (now > entry.cost) {
        entry.cost = now;
        queue.push(entry);
        continue;
      }
      forest.join(hop.edge.a, hop.edge.b);
      take(hop);
      tree.push_back(entry.hop);
    }
    std::ranges::sort(tree);
    return tree;
  }

  [[nodiscard]] std::vector<double> load_of(const HopTree& tree) const {
    std::vector<double> load(rates().size(), 0.0);
    for (const std::int32_t hop : tree) {
      for (const std::int32_t used : hops()[hop].uses) load[used] += 1;
    }
    return load;
  }

  [[nodiscard]] double busiest(const std::vector<double>& load) const {
    double most = 0;
    for (std::size_t r = 0; r < rates().size(); ++r) {
      if (load[r] > 0) most = std::max(most, load[r] / rates()[r]);
    }
    return most;
  }

  void grow() {
    std::vector<double> load(rates().size(), 0.0);
    for (std::int32_t t = 1; t <= kGrown; ++t) {
      // A larger power would look at the busiest resource alone. The number of trees keeps the powers near 1.
      const double scale = 1.0 / (2.0 * t);
      const auto cost = [&](std::int32_t r) {
        return eighth_power((load[r] + 1) * scale / rates()[r]) - eighth_power(load[r] * scale / rates()[r]);
      };
      HopTree tree = grown(
          static_cast<std::size_t>(t),
          [&](const HopGraph::Candidate& hop) {
            double sum = 0;
            for (const std::int32_t used : hop.uses) sum += cost(used);
            return sum;
          },
          [&](const HopGraph::Candidate& hop) {
            for (const std::int32_t used : hop.uses) load[used] += 1;
          });
      pool_.push_back(std::move(tree));
      equal_seconds_.push_back(busiest(load) / t);
    }
  }

  /// A linear program with a row for each resource that some hop uses; unused ones cannot be the busiest.
  struct TreeProgram {
    std::vector<std::int32_t> row_of;  ///< by resource; -1: none
    std::vector<double> rates;         ///< by row
  };

  [[nodiscard]] TreeProgram rows_of(const HopTree& used_hops, TreeProgram program) const {
    program.row_of.resize(rates().size(), -1);
    for (const std::int32_t hop : used_hops) {
      for (const std::int32_t used : hops()[hop].uses) {
        if (program.row_of[used] >= 0) continue;
        program.row_of[used] = static_cast<std::int32_t>(program.rates.size());
        program.rates.push_back(rates()[used]);
      }
    }
    return program;
  }

  [[nodiscard]] std::vector<double> column_of(const HopTree& tree, const TreeProgram& rows) const {
    std::vector<double> column(rows.rates.size(), 0.0);
    for (const std::int32_t hop : tree) {
      for (const std::int32_t used : hops()[hop].uses) column[rows.row_of[used]] += 1;
    }
    return column;
  }

  void weigh() {
    HopTree all(hops().size());
    std::iota(all.begin(), all.end(), 0);
    const TreeProgram rows = rows_of(all, {});
    if (rows.rates.size() > kMostRows) return;
    PackingLp program(rows.rates);
    std::set<HopTree> known;
    const auto add = [&](const HopTree& tree) {
      if (!known.insert(tree).second) return false;
      program.add_column(column_of(tree, rows));
      weighed_.push_back(tree);
      return true;
    };
    const auto cost_of = [&](const HopGraph::Candidate& hop, const std::vector<double>& duals) {
      double sum = 0;
      for (const std::int32_t used : hop.uses) sum += duals[rows.row_of[used]];
      return sum;
    };
    for (const HopTree& tree : pool_) add(tree);
    std::int64_t solves = 0;
    const auto work_left = [&] { return kMostWork - program.work() - solves; };
    LpEnd end = program.solve(kMostWork);
    for (std::size_t added = 0; work_left() > 0; ++added) {
      // The tree that is cheapest by the program's duals. It costs 1 at the optimum; a cost below 1 bounds
      // the distance from the optimum.
      const std::vector<double> duals = program.duals();
      double cost_of_tree = 0;
      const auto cost = [&](const HopGraph::Candidate& hop) { return cost_of(hop, duals); };
      const HopTree tree =
          grown(added, cost, [&](const HopGraph::Candidate& hop) { cost_of_tree += cost(hop); });
      if (cost_of_tree > kNearOptimum || !add(tree)) break;
      end = program.solve(work_left());
      ++solves;
    }
    stopped_early_ = end != LpEnd::kOptimal || work_left() <= 0;
    const std::vector<double> duals = program.duals();
    for (const HopGraph::Candidate& hop : hops()) cost_.push_back(cost_of(hop, duals));
    weights_ = program.x();
    weighed_seconds_ = program.value() > 0 ? 1 / program.value() : 0;
  }

  using Share = std::pair<const HopTree*, double>;

  /// Weighs the remaining trees again after small shares were dropped: to enlarge all equally would cost as
  /// much as was dropped, while the program uses spare capacity. Returns the sum of the new shares.
  double weigh_again(std::vector<Share>& weighed) {
    if (weighed.empty()) return 0;
    TreeProgram rows;
    for (const auto& [tree, share] : weighed) rows = rows_of(*tree, std::move(rows));
    PackingLp program(rows.rates);
    for (const auto& [tree, share] : weighed) program.add_column(column_of(*tree, rows));
    if (program.solve(kMostWork) != LpEnd::kOptimal) stopped_early_ = true;
    const std::vector<double> x = program.x();
    double sum = 0;
    for (std::size_t i = 0; i < weighed.size(); ++i) sum += weighed[i].second = x[i];
    std::erase_if(weighed, [](const Share& each) { return !(each.second > 0); });
    return sum;
  }

  [[nodiscard]] TreePacking take() {
    std::vector<Share> weighed;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (const double share = weights_[i] * weighed_seconds_; share >= kLeastShareOfATree)
        weighed.emplace_back(&weighed_[i], share);
    }
    const double kept = weigh_again(weighed);
    std::vector<double> load(rates().size(), 0.0);
    for (auto& [tree, share] : weighed) {
      share /= kept;
      const std::vector<double> of_tree = load_of(*tree);
      for (std::size_t r = 0; r < load.size(); ++r) load[r] += share * of_tree[r];
    }
    double seconds = weighed.empty() ? equal_seconds_.back() : busiest(load);
    double least = seconds;
    for (const double each : equal_seconds_) least = std::min(least, each);
    // As few trees as are nearly as good.
    std::size_t fewest = weighed.empty() || seconds > least * kWorth ? pool_.size() + 1 : weighed.size();
    for (std::size_t t = 0; t < pool_.size() && t + 1 < fewest; ++t) {
      if (equal_seconds_[t] > least * kWorth) continue;
      fewest = t + 1;
      weighed.clear();
      seconds = equal_seconds_[t];
      for (std::size_t i = 0; i < fewest; ++i)
        weighed.emplace_back(&pool_[i], 1.0 / static_cast<double>(fewest));
    }
    TreePacking packing;
    for (const auto& [tree, share] : weighed) {
      std::vector<TreeEdge> edges;
      for (const std::int32_t hop : *tree) edges.push_back(hops()[hop].edge);
      packing.trees.push_back(rooted(std::move(edges), num_servers(), share));
    }
    packing.seconds_per_byte = seconds / graph_.fastest();
    packing.stopped_early = stopped_early_;
    return packing;
  }

  const Topology& topology_;
  HopGraph graph_;

  std::vector<HopTree> pool_;          ///< in the order in which they were grown
  std::vector<double> equal_seconds_;  ///< [t]: of the first t + 1 of them with equal shares
  std::vector<HopTree> weighed_;
  std::vector<double> weights_;
  std::vector<double> cost_;  ///< of every hop, by the program's duals; a tree costs 1
  double weighed_seconds_ = 0;
  bool stopped_early_ = false;
};

}  // namespace

Result<TreePacking> pack_trees(const Topology& topology) {
  if (topology.num_servers() > kMostPackedServers) {
    return fail(
        Code::kUnsupported,
        fmt::format(
            "plan: {} servers is too many for trees (valid: up to {}); a hierarchy takes more, if all "
            "servers are in use, no link is down and no dimension is a line",
            topology.num_servers(), kMostPackedServers));
  }
  return Packer(topology).pack();
}

std::vector<std::vector<std::int64_t>> partitions_by_cost(const Topology& topology) {
  if (topology.num_servers() < 2 || topology.num_servers() > kMostPackedServers) return {};
  return Packer(topology).partitions();
}

}  // namespace hips::plan
