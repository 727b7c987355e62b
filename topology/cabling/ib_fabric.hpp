#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/base/result.hpp"
#include "topology/cabling/cabling.hpp"
#include "topology/cabling/cabling_builder.hpp"

namespace hips::topology {

enum class IbKind : std::uint8_t { kSwitch, kAdapter, kRouter };

/// A port of a node of the fabric.
struct IbPort {
  std::size_t node = 0;
  std::int64_t port = 0;
};

struct IbCable {
  IbPort a{}, b{};
  double bandwidth = 0;  ///< bytes/s; 0: not known
  std::int64_t line = 0;
};

/// The nodes of an InfiniBand fabric by their identifiers, and the conversion to servers and switches by their descriptions.
class IbFabric {
 public:
  explicit IbFabric(std::string_view file) : file_(file), builder_(file) {}

  /// The index of the node `id`, which is added if it is new. Without a kind its block has yet to tell it.
  std::size_t node(std::string_view id, std::optional<IbKind> kind, std::int64_t line);

  /// What the node's own block tells.
  ///
  /// Errors   kInvalidArgument: the node has had a block with another number of ports.
  Result<void> describe(std::size_t node, std::string_view description, std::int64_t num_ports,
                        std::int64_t line);
  /// What another node's block tells of it.
  void mention(std::size_t node, std::string_view description);

  void add(const IbCable& cable) { cables_.push_back(cable); }

  void note(std::string_view what, std::int64_t line) { builder_.note(what, line); }
  /// Are there more nodes or cables than the limits allow, if each is listed twice?
  [[nodiscard]] bool is_full() const {
    return nodes_.size() > 2 * kMostCabledNodes || cables_.size() > 2 * kMostCables;
  }
  [[nodiscard]] bool empty() const { return nodes_.empty(); }

  /// Errors   kInvalidArgument: a cable leads to a node that nothing is known of, or to a port that it does not have; no cables.
  Result<Cabling> finish();

 private:
  struct Node {
    std::string id;
    std::optional<IbKind> kind{};
    std::string description{};
    std::int64_t num_ports = -1;  ///< -1: no block tells it
    std::int64_t line = 0;
    bool is_aggregation = false;
    std::string host{}, device{};  ///< of an adapter; the device may be empty
  };

  Result<void> check(const IbCable& cable) const;
  void name_switches();
  void name_adapters();
  void name_ports();
  [[nodiscard]] std::string port_name(const IbPort& end) const;
  /// Carries the node data between servers? Notes what does not.
  bool is_kept(const Node& node);

  std::string file_;
  CablingBuilder builder_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, std::size_t> by_id_;
  std::vector<IbCable> cables_;
  bool has_blocks_ = false;  ///< of nodes; else the form is that of -p
  /// Of a host and a device the ports with cables; by both names.
  struct DevicePorts {
    std::vector<IbPort> ports;
    bool is_clear = true;  ///< the numbers tell them apart
  };
  std::unordered_map<std::string, DevicePorts> devices_;
};

}  // namespace hips::topology
