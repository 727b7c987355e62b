#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <hips/status.hpp>
#include <hips/topology.hpp>

#include "topology/formats/topology_file.hpp"

namespace hips::cli {

/// The names that a file gives to servers and switches, for texts in which the library calls them by their places: "<01>",
/// "leaf switch 2".
class PlaceNames {
 public:
  /// Cost     linear in the servers and cables, if they have names. Switches of topologies of more than health::kMostCables cables have
  ///          none.
  explicit PlaceNames(const topology::TopologyFile& file);

  /// "server <01> NIC 0 out" as "server n2 NIC 0 out", "leaf switch 2 in" as "leaf2 in". What has no name stays as it is.
  [[nodiscard]] std::string operator()(std::string_view text) const;

  /// What `call` returns; what it throws says the names.
  template <typename Call>
  auto in_errors_of(Call&& call) const {
    try {
      return call();
    } catch (const Error& error) {
      Status status = error.status();
      status.message = (*this)(status.message);
      throw Error(std::move(status));
    }
  }

  /// A switch that the graph of the topology calls so: "leaf 2".
  [[nodiscard]] const std::string& switch_named(const std::string& place) const;

  /// The switch at a NIC of a server; "" where a cable leads to another server.
  [[nodiscard]] std::string switch_at(const Topology& topology, std::int64_t server, Rail rail) const;

 private:
  std::unordered_map<std::string, std::string> servers_;   ///< by address
  std::unordered_map<std::string, std::string> leaves_;    ///< "leaf switch 2"
  std::unordered_map<std::string, std::string> switches_;  ///< by name in the graph
};

}  // namespace hips::cli
