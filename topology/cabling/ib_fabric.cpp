#include "topology/cabling/ib_fabric.hpp"

#include <utility>

#include <fmt/format.h>

#include "topology/cabling/text_lines.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

/// Does the description of an adapter name its maker instead of a host?
bool is_unnamed(std::string_view description) {
  for (const std::string_view word : {"Mellanox", "Technologies", "ConnectX", "InfiniHost", "Voltaire"}) {
    if (description.find(word) != std::string_view::npos) return true;
  }
  return without_blanks(description).empty();
}

/// The number in "S-0002c90200423cd0"; other identifiers as they are.
std::string_view guid_of(std::string_view id) {
  return id.size() > 2 && id[1] == '-' ? id.substr(2) : id;
}

std::string device_key(std::string_view host, std::string_view device) {
  return fmt::format("{}{}{}", host, '\0', device);
}

}  // namespace

std::size_t IbFabric::node(std::string_view id, std::optional<IbKind> kind, std::int64_t line) {
  const auto [known, is_new] = by_id_.try_emplace(std::string(id), nodes_.size());
  if (is_new) {
    nodes_.push_back({.id = std::string(id), .kind = kind, .line = line});
  } else if (kind) {
    nodes_[known->second].kind = kind;
  }
  return known->second;
}

Result<void> IbFabric::describe(std::size_t node, std::string_view description, std::int64_t num_ports,
                                std::int64_t line) {
  Node& described = nodes_[node];
  if (described.num_ports >= 0 && described.num_ports != num_ports) {
    return bad_line(file_, line,
                    fmt::format("{} has {} ports here, and {} before; give the output of one run",
                                in_quotes(described.id), num_ports, described.num_ports));
  }
  described.description = description;
  described.num_ports = num_ports;
  described.line = line;
  has_blocks_ = true;
  return {};
}

void IbFabric::mention(std::size_t node, std::string_view description) {
  if (nodes_[node].num_ports < 0) nodes_[node].description = description;
}

Result<void> IbFabric::check(const IbCable& cable) const {
  for (const IbPort& end : {cable.a, cable.b}) {
    const Node& node = nodes_[end.node];
    if (!node.kind) {
      return bad_line(
          file_, cable.line,
          fmt::format("a cable leads to {}, which the file does not describe; add a block such as "
                      "Switch 36 {}",
                      in_quotes(node.id), in_quotes(node.id)));
    }
    if (node.num_ports >= 0 && end.port > node.num_ports) {
      return bad_line(file_, cable.line,
                      fmt::format("port [{}] of {} is out of range [0, {}]", end.port, in_quotes(node.id),
                                  node.num_ports));
    }
  }
  return {};
}

/// Descriptions of switches that several have, such as the model's, name none of them. Nor does the name of a host.
void IbFabric::name_switches() {
  std::unordered_map<std::string, std::size_t> uses;
  for (const Node& node : nodes_) {
    if (node.kind == IbKind::kSwitch) ++uses[std::string(without_blanks(node.description))];
    if (node.kind == IbKind::kAdapter) uses[node.host] = 2;
  }
  for (Node& node : nodes_) {
    if (node.kind != IbKind::kSwitch) continue;
    node.host = without_blanks(node.description);
    if (node.host.empty() || uses[node.host] > 1) node.host = guid_of(node.id);
  }
}

void IbFabric::name_adapters() {
  for (Node& node : nodes_) {
    if (node.kind != IbKind::kAdapter) continue;
    node.is_aggregation = node.description.find("Aggregation Node") != std::string::npos;
    if (node.is_aggregation) continue;
    if (is_unnamed(node.description)) {
      node.host = guid_of(node.id);
      builder_.note("adapters do not tell their host, so each is a server named by its GUID", node.line);
      continue;
    }
    std::string_view rest = node.description;
    node.host = take_word(rest);
    node.device = take_word(rest);
  }
}

void IbFabric::name_ports() {
  for (const IbCable& cable : cables_) {
    for (const IbPort& end : {cable.a, cable.b}) {
      const Node& node = nodes_[end.node];
      if (node.kind != IbKind::kAdapter || node.is_aggregation) continue;
      DevicePorts& device = devices_[device_key(node.host, node.device)];
      bool is_known = false;
      for (const IbPort& other : device.ports) {
        if (other.port != end.port) continue;
        if (other.node == end.node) is_known = true;
        if (other.node != end.node) device.is_clear = false;
      }
      // Adapters have a few ports; if the same name stands for many, two of them tell all there is.
      constexpr std::size_t kMostCompared = 64;
      if (!is_known && device.ports.size() < kMostCompared) device.ports.push_back(end);
    }
  }
}

std::string IbFabric::port_name(const IbPort& end) const {
  const Node& node = nodes_[end.node];
  if (node.kind == IbKind::kSwitch) return std::to_string(end.port);
  const DevicePorts& device = devices_.at(device_key(node.host, node.device));
  if (!device.is_clear) return fmt::format("{}:{}", guid_of(node.id), end.port);
  if (node.device.empty()) return std::to_string(end.port);
  return device.ports.size() > 1 ? fmt::format("{}:{}", node.device, end.port) : node.device;
}

bool IbFabric::is_kept(const Node& node) {
  if (node.is_aggregation) {
    builder_.note("aggregation nodes are ignored", node.line);
    return false;
  }
  if (node.kind == IbKind::kRouter) {
    builder_.note("routers are ignored", node.line);
    return false;
  }
  if (node.num_ports < 0 && has_blocks_) {
    builder_.note("nodes have no block of their own and are known from the ports that lead to them",
                  node.line);
  }
  return true;
}

Result<Cabling> IbFabric::finish() {
  for (const IbCable& cable : cables_) {
    if (auto valid = check(cable); !valid) return fail(valid.error());
  }
  name_adapters();
  name_switches();
  name_ports();
  std::vector<std::size_t> index(nodes_.size());
  std::vector<bool> kept(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    kept[i] = node.kind.has_value() && is_kept(node);
    if (!kept[i]) continue;
    const bool is_switch = node.kind == IbKind::kSwitch;
    index[i] = builder_.node(node.host, is_switch ? CabledNode::Kind::kSwitch : CabledNode::Kind::kServer,
                             node.line);
  }
  for (const IbCable& cable : cables_) {
    if (!kept[cable.a.node] || !kept[cable.b.node]) continue;
    builder_.add({.a = {index[cable.a.node], port_name(cable.a)},
                  .b = {index[cable.b.node], port_name(cable.b)},
                  .bandwidth_bytes_per_s = cable.bandwidth,
                  .line = cable.line});
  }
  return builder_.finish("give the whole output of ibnetdiscover, run as root");
}

}  // namespace hips::topology
