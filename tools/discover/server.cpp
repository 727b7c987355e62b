#include "tools/discover/server.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>

#include "lib/comm/setup/interfaces.hpp"
#include "lib/comm/setup/nic_info.hpp"
#include "tools/discover/hwloc_tree.hpp"
#include "tools/doctor/file_tree.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::discover {
namespace {

constexpr double kBytesPerGigabit = 1e9 / 8;

std::string interface_state(const std::string& name) {
  return doctor::FileTree().line(fmt::format("sys/class/net/{}/operstate", name)).value_or("");
}

/// Addresses by interface; empty if the node has only the loopback interface.
std::map<std::string, std::vector<std::string>> addresses_by_interface() {
  std::map<std::string, std::vector<std::string>> addresses;
  if (const auto networks = comm::local_networks())
    for (const comm::LocalNetwork& network : *networks)
      addresses[network.interface].push_back(
          fmt::format("{}/{}", comm::host_of(network.address), network.prefix_bits));
  return addresses;
}

/// Sorts by PCI address, like `lspci`; NICs without one come last.
void sort_by_location(std::vector<ServerNic>& nics) {
  std::ranges::stable_sort(nics, [](const ServerNic& a, const ServerNic& b) {
    if (a.location.pci.empty() != b.location.pci.empty()) return b.location.pci.empty();
    return a.location.pci < b.location.pci;
  });
}

}  // namespace

std::string ServerNic::name() const {
  if (rdma.empty()) return interface;
  return port == 1 ? rdma : fmt::format("{}:{}", rdma, port);
}

double port_rate(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::string_view(end, text.data() + text.size()).starts_with(" Gb/sec"))
    return 0;
  return value > 0 ? value * kBytesPerGigabit : 0;
}

Result<Server> inspect_server(const doctor::NodeFacts& node) {
  const auto tree = HwlocTree::of_machine();
  if (!tree) return fail(tree.error());
  Server server;
  server.host = node.name;
  tree->describe(server);
  std::map<std::pair<std::string, bool>, DeviceLocation> locations;
  for (NamedDevice& device : tree->devices())
    locations[{device.name, device.rdma}] = std::move(device.location);
  const auto location_of = [&](const std::string& rdma, const std::string& interface) {
    // A software device has the location of its interface.
    for (const auto& key : {std::pair(rdma, true), std::pair(interface, false)})
      if (const auto found = locations.find(key); found != locations.end() && !found->second.pci.empty())
        return found->second;
    return DeviceLocation{};
  };
  const auto addresses = addresses_by_interface();
  std::set<std::string> listed;
  const auto add = [&](ServerNic nic) {
    if (const auto found = addresses.find(nic.interface); found != addresses.end())
      nic.addresses = found->second;
    nic.location = location_of(nic.rdma, nic.interface);
    if (!nic.interface.empty()) listed.insert(nic.interface);
    server.nics.push_back(std::move(nic));
  };
  for (const doctor::Device& device : node.devices) {
    for (const doctor::DevicePort& port : device.ports) {
      const double rate = port_rate(port.rate);
      add({.rdma = device.name,
           .interface = port.netdev.name,
           .port = port.number,
           .state = port.active() ? "up" : "down",
           // A software device has the rate of its interface, whatever it reports.
           .bandwidth_bytes_per_s = device.software ? comm::interface_bandwidth(port.netdev.name) : rate,
           .addresses = {},
           .location = {}});
    }
  }
  std::set<std::string> interfaces;
  for (const doctor::Interface& one : node.interfaces) interfaces.insert(one.name);
  for (const auto& [name, list] : addresses) interfaces.insert(name);
  for (const std::string& name : interfaces) {
    // Virtual interfaces without an address are not used.
    const bool is_card = locations.contains({name, false}) && !locations[{name, false}].pci.empty();
    if (listed.contains(name) || (!is_card && !addresses.contains(name))) continue;
    add({.rdma = {},
         .interface = name,
         .port = 1,
         .state = interface_state(name),
         .bandwidth_bytes_per_s = comm::interface_bandwidth(name),
         .addresses = {},
         .location = {}});
  }
  sort_by_location(server.nics);
  return server;
}

Result<Server> read_server(const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 20U;
  const auto text = topology::read_text_file(path, kMostBytes);
  if (!text) return fail(Code::kInvalidArgument, "--hwloc: " + text.error().message);
  const auto tree = HwlocTree::of_xml(path, *text);
  if (!tree) return fail(tree.error());
  Server server;
  server.host = tree->host().value_or(std::filesystem::path(path).stem().string());
  tree->describe(server);
  // An RDMA device and the interface of its PCI function are one NIC. If a function has several interfaces
  // and devices, they are paired in order.
  std::map<std::string, std::vector<std::string>> rdma_at;
  std::set<std::string> taken;
  const auto devices = tree->devices();
  for (const NamedDevice& device : devices)
    if (device.rdma && !device.location.pci.empty()) rdma_at[device.location.pci].push_back(device.name);
  for (const NamedDevice& device : devices) {
    if (device.rdma || device.location.pci.empty()) continue;
    ServerNic nic{.rdma = {},
                  .interface = device.name,
                  .port = 1,
                  .state = {},
                  .bandwidth_bytes_per_s = 0,
                  .addresses = {},
                  .location = device.location};
    auto& rdma = rdma_at[device.location.pci];
    if (!rdma.empty()) {
      nic.rdma = rdma.front();
      taken.insert(rdma.front());
      rdma.erase(rdma.begin());
    }
    server.nics.push_back(std::move(nic));
  }
  for (const NamedDevice& device : devices)
    if (device.rdma && !taken.contains(device.name))
      server.nics.push_back({.rdma = device.name,
                             .interface = {},
                             .port = 1,
                             .state = {},
                             .bandwidth_bytes_per_s = 0,
                             .addresses = {},
                             .location = device.location});
  sort_by_location(server.nics);
  return server;
}

Distance distance(const ServerNic& a, const ServerNic& b) {
  if (&a == &b || (a.name() == b.name() && a.location.pci == b.location.pci)) return Distance::kSelf;
  const DeviceLocation &at_a = a.location, &at_b = b.location;
  if (at_a.pci.empty() || at_b.pci.empty()) return Distance::kUnknown;
  if (at_a.pci == at_b.pci) return Distance::kPix;
  if (at_a.host_bridge == at_b.host_bridge && at_a.host_bridge != 0) {
    const auto [end_a, end_b] = std::ranges::mismatch(at_a.bridges, at_b.bridges);
    if (end_a == at_a.bridges.begin()) return Distance::kPhb;
    const auto below = std::max(at_a.bridges.end() - end_a, at_b.bridges.end() - end_b);
    return below <= 1 ? Distance::kPix : Distance::kPxb;
  }
  return at_a.numa.size() == 1 && at_a.numa == at_b.numa ? Distance::kNode : Distance::kSys;
}

Distance distance(const ServerNic& nic, const NumaNode& node) {
  if (nic.location.pci.empty() || nic.location.numa.empty()) return Distance::kUnknown;
  const bool local = std::ranges::find(nic.location.numa, node.number) != nic.location.numa.end();
  return local ? Distance::kNode : Distance::kSys;
}

std::string_view to_string(Distance distance) {
  switch (distance) {
    case Distance::kSelf:
      return "X";
    case Distance::kPix:
      return "PIX";
    case Distance::kPxb:
      return "PXB";
    case Distance::kPhb:
      return "PHB";
    case Distance::kNode:
      return "NODE";
    case Distance::kSys:
      return "SYS";
    case Distance::kUnknown:
      return "-";
  }
  return "?";
}

}  // namespace hips::discover
