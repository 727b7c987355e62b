#pragma once

#include <cstdint>
#include <vector>

#include <hips/topology.hpp>

#include "topology/link_rates.hpp"
#include "topology/tiers.hpp"

namespace hips::plan {

/// One hop between two servers.
struct TreeEdge {
  std::int64_t a = -1, b = -1;
  Rail a_rail = kNoRail, b_rail = kNoRail;
};

/// The hops of a topology that trees may use, and the resources that each of them loads: two NICs, and for
/// each tier that it crosses the cables above two switches. Hops over a link that is down are left out.
///
/// Shapes   Between the servers of a group of more than 32 only hops to near ones and at distances 2^i: trees
///          need a few good hops out of a server, not all.
/// Cost     servers times NICs times a few dozen.
class HopGraph {
 public:
  using Uses = std::vector<std::int32_t>;  ///< numbers of resources
  struct Candidate {
    TreeEdge edge;
    Uses uses;
  };

  explicit HopGraph(const Topology& topology);

  [[nodiscard]] std::int64_t num_servers() const { return servers_; }
  [[nodiscard]] const std::vector<Candidate>& hops() const { return hops_; }
  /// By resource: rates, the fastest being 1, so that powers of loads neither vanish nor overflow.
  [[nodiscard]] const std::vector<double>& rates() const { return rate_; }
  /// Bytes per second of the fastest resource.
  [[nodiscard]] double fastest() const { return fastest_; }

 private:
  void add_resources(const topology::LinkRates& rates);
  void add_hop(std::int64_t a, std::int64_t b, Rail a_rail, Rail b_rail);
  void add_group(const std::vector<std::int64_t>& members, Rail rail);
  template <typename Add>
  void add_pairs(const std::vector<std::int64_t>& members, Add&& add) const;
  void add_hops_of_levels();
  void add_hops_of_graph(const GraphWiring& wiring);
  void add_hops_of_switches();

  const Topology& topology_;
  std::int64_t servers_;
  std::vector<topology::Tier> tiers_;
  std::vector<double> rate_;
  double fastest_ = 1;
  std::vector<std::int32_t> first_of_tier_;
  std::vector<Candidate> hops_;
};

}  // namespace hips::plan
