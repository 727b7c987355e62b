#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "tools/doctor/file_tree.hpp"
#include "tools/doctor/node.hpp"

namespace hips::doctor {
namespace {

/// The text after the number of "4: ACTIVE" or "1: CA".
std::string after_colon(const std::optional<std::string>& text) {
  if (!text) return "?";
  const std::size_t colon = text->find(": ");
  return colon == std::string::npos ? *text : text->substr(colon + 2);
}

/// Parses "fe80:0000:...": always eight groups of four digits.
std::optional<std::array<std::uint8_t, 16>> parse_gid(std::string_view text) {
  std::array<std::uint8_t, 16> bytes{};
  if (text.size() < 39) return std::nullopt;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char* digits = text.data() + i / 2 * 5 + i % 2 * 2;
    const auto [end, error] = std::from_chars(digits, digits + 2, bytes[i], 16);
    if (error != std::errc() || end != digits + 2) return std::nullopt;
  }
  return bytes;
}

std::vector<verbs::Gid> read_gids(const FileTree& tree, const std::string& port, bool ethernet, bool iwarp) {
  std::vector<verbs::Gid> gids;
  for (const std::string& name : tree.names(port + "/gids")) {
    const auto index = parse_whole(name);
    const auto text = tree.line(fmt::format("{}/gids/{}", port, name));
    const auto bytes = text ? parse_gid(*text) : std::nullopt;
    if (!index || !bytes) continue;
    verbs::Gid gid{.index = static_cast<std::uint32_t>(*index), .bytes = *bytes};
    if (gid.is_zero()) continue;
    const std::string type = tree.line(fmt::format("{}/gid_attrs/types/{}", port, name)).value_or("");
    gid.kind = iwarp               ? verbs::Gid::Kind::kIwarp
               : !ethernet         ? verbs::Gid::Kind::kInfiniBand
               : type == "RoCE v2" ? verbs::Gid::Kind::kRoceV2
                                   : verbs::Gid::Kind::kRoceV1;
    gids.push_back(gid);
  }
  return gids;
}

void read_counters(const FileTree& tree, const std::string& folder, Counters& counters) {
  for (const std::string& name : tree.names(folder)) {
    const auto value = tree.number(fmt::format("{}/{}", folder, name));
    // "lifespan" is the interval in ms at which the driver queries the device.
    if (value && *value >= 0 && name != "lifespan") counters[name] = static_cast<std::uint64_t>(*value);
  }
}

Netdev read_netdev(const FileTree& tree, const std::string& name) {
  Netdev netdev;
  netdev.name = name;
  const std::string folder = "sys/class/net/" + name;
  netdev.mtu = tree.number(folder + "/mtu");
  netdev.state = tree.line(folder + "/operstate").value_or("?");
  netdev.driver = tree.link_name(folder + "/device/driver").value_or("");
  read_counters(tree, folder + "/statistics", netdev.statistics);
  return netdev;
}

/// The network interface of a port: that of its addresses, or of a software device, or of the same PCI
/// function.
std::string netdev_name(const FileTree& tree, const std::string& device, const std::string& port,
                        std::int32_t number) {
  for (const std::string& index : tree.names(port + "/gid_attrs/ndevs"))
    if (const auto name = tree.line(fmt::format("{}/gid_attrs/ndevs/{}", port, index))) return *name;
  if (const auto parent = tree.line(device + "/parent")) return *parent;
  for (const std::string& name : tree.names(device + "/device/net")) {
    const auto dev_port = tree.number(fmt::format("sys/class/net/{}/dev_port", name));
    if (!dev_port || *dev_port == number - 1) return name;
  }
  return {};
}

DevicePort read_port(const FileTree& tree, const std::string& device, std::int32_t number, bool iwarp) {
  const std::string folder = fmt::format("{}/ports/{}", device, number);
  DevicePort port;
  port.number = number;
  port.state = after_colon(tree.line(folder + "/state"));
  port.phys_state = after_colon(tree.line(folder + "/phys_state"));
  port.link_layer = tree.line(folder + "/link_layer").value_or("?");
  port.rate = tree.line(folder + "/rate").value_or("?");
  port.gids = read_gids(tree, folder, port.roce(), iwarp);
  read_counters(tree, folder + "/counters", port.counters);
  read_counters(tree, folder + "/hw_counters", port.counters);
  if (const std::string name = netdev_name(tree, device, folder, number); !name.empty())
    port.netdev = read_netdev(tree, name);
  return port;
}

}  // namespace

std::vector<Device> read_devices(const FileTree& tree) {
  std::vector<Device> devices;
  for (const std::string& name : tree.names("sys/class/infiniband")) {
    const std::string folder = "sys/class/infiniband/" + name;
    Device device;
    device.name = name;
    device.firmware = tree.line(folder + "/fw_ver").value_or("");
    device.model = tree.line(folder + "/hca_type").value_or(tree.line(folder + "/board_id").value_or(""));
    device.iwarp = after_colon(tree.line(folder + "/node_type")) == "RNIC";
    // Software devices have no PCI function; their parent is an interface.
    const auto driver = tree.link_name(folder + "/device/driver");
    device.software = !driver && tree.exists(folder + "/parent");
    device.driver = driver ? *driver : !device.software ? "" : device.iwarp ? "siw" : "rdma_rxe";
    device.numa_node = static_cast<std::int32_t>(tree.number(folder + "/device/numa_node").value_or(-1));
    device.local_cpus = tree.line(folder + "/device/local_cpulist").value_or("");
    for (const std::string& number : tree.names(folder + "/ports"))
      if (const auto value = parse_whole(number))
        device.ports.push_back(read_port(tree, folder, static_cast<std::int32_t>(*value), device.iwarp));
    devices.push_back(std::move(device));
  }
  return devices;
}

std::vector<Interface> read_interfaces(const FileTree& tree) {
  std::vector<Interface> interfaces;
  for (const std::string& name : tree.names("sys/class/net")) {
    // Type 1 is Ethernet; the loopback interface has type 772.
    if (tree.number(fmt::format("sys/class/net/{}/type", name)) != 1) continue;
    const std::string state = tree.line(fmt::format("sys/class/net/{}/operstate", name)).value_or("");
    interfaces.push_back({name, state == "up" || state == "unknown"});
  }
  return interfaces;
}

}  // namespace hips::doctor
