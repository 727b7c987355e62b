#include "topology/cabling/simgrid/simgrid_cluster.hpp"

#include <fmt/format.h>

namespace hips::topology {
namespace {

Cable cable_of(const SimgridCluster& cluster, CableEnd a, CableEnd b) {
  return {.a = std::move(a),
          .b = std::move(b),
          .bandwidth_bytes_per_s = cluster.bandwidth_bytes_per_s,
          .latency_ns = cluster.latency_ns,
          .line = cluster.line};
}

std::vector<std::size_t> add_servers(const SimgridCluster& cluster, CablingBuilder& builder) {
  std::vector<std::size_t> nodes;
  for (const std::string& server : cluster.servers)
    nodes.push_back(builder.node(server, CabledNode::Kind::kServer, cluster.line));
  return nodes;
}

/// A fat tree in the notation of SimGrid: a node of level l has a label of one digit for each level. Digits below l count parents,
/// the others children, and the first varies fastest. A node's parents have the same label except for digit l.
class FatTreeWirer {
 public:
  FatTreeWirer(const SimgridCluster& cluster, const SimgridFatTree& tree, CablingBuilder& builder)
      : cluster_(cluster), tree_(tree), builder_(builder) {}

  void wire() {
    std::vector<std::size_t> lower = add_servers(cluster_, builder_);
    std::vector<std::size_t> ports(lower.size(), 0);
    for (std::size_t level = 0; level < tree_.children.size(); ++level) {
      std::size_t num_upper = 1, below = 1;
      for (std::size_t digit = 0; digit < tree_.children.size(); ++digit) {
        num_upper *= radix(level + 1, digit);
        if (digit < level) below *= tree_.parents[digit];
      }
      std::vector<std::size_t> upper, upper_ports(num_upper, 0);
      for (std::size_t i = 0; i < num_upper; ++i)
        upper.push_back(builder_.node(fmt::format("{} level {} switch {}", cluster_.id, level + 1, i),
                                      CabledNode::Kind::kSwitch, cluster_.line));
      for (std::size_t node = 0; node < lower.size(); ++node) {
        // The digits below and above digit `level`, which is replaced.
        const std::size_t low = node % below, high = node / below / tree_.children[level];
        for (std::size_t digit = 0; digit < tree_.parents[level]; ++digit) {
          const std::size_t parent = low + below * (digit + tree_.parents[level] * high);
          for (std::size_t i = 0; i < tree_.cables[level]; ++i)
            builder_.add(cable_of(cluster_, {lower[node], fmt::format("{}", ports[node]++)},
                                  {upper[parent], fmt::format("{}", upper_ports[parent]++)}));
        }
      }
      lower = std::move(upper);
      ports = std::move(upper_ports);
    }
  }

 private:
  /// Of a digit of the labels of a level.
  [[nodiscard]] std::size_t radix(std::size_t level, std::size_t digit) const {
    return digit < level ? tree_.parents[digit] : tree_.children[digit];
  }

  const SimgridCluster& cluster_;
  const SimgridFatTree& tree_;
  CablingBuilder& builder_;
};

}  // namespace

std::size_t product_of(const std::vector<std::size_t>& numbers, std::size_t most) {
  std::size_t product = 1;
  for (const std::size_t number : numbers) {
    if (number == 0) return 0;
    if (product > most / number) return most + 1;
    product *= number;
  }
  return product;
}

void add_simgrid_switch(const SimgridCluster& cluster, CablingBuilder& builder) {
  const std::vector<std::size_t> servers = add_servers(cluster, builder);
  const std::size_t node =
      builder.node(fmt::format("{} switch", cluster.id), CabledNode::Kind::kSwitch, cluster.line);
  for (std::size_t i = 0; i < servers.size(); ++i)
    builder.add(cable_of(cluster, {servers[i], "0"}, {node, fmt::format("{}", i)}));
}

void add_simgrid_fat_tree(const SimgridCluster& cluster, const SimgridFatTree& tree,
                          CablingBuilder& builder) {
  FatTreeWirer(cluster, tree, builder).wire();
}

void add_simgrid_torus(const SimgridCluster& cluster, const std::vector<std::size_t>& sides,
                       CablingBuilder& builder) {
  const std::vector<std::size_t> servers = add_servers(cluster, builder);
  for (std::size_t server = 0; server < servers.size(); ++server) {
    std::size_t step = 1;
    for (std::size_t dimension = 0; dimension < sides.size(); ++dimension) {
      const std::size_t side = sides[dimension], place = server / step % side;
      const std::size_t next = place + 1 == side ? server - place * step : server + step;
      if (side > 1)
        builder.add(cable_of(cluster, {servers[server], fmt::format("{}+", dimension)},
                             {servers[next], fmt::format("{}-", dimension)}));
      step *= side;
    }
  }
}

}  // namespace hips::topology
