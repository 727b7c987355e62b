#include "tools/discover/hwloc_tree.hpp"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

namespace hips::discover {
namespace {

std::string cpus_text(hwloc_const_bitmap_t cpus) {
  char* text = nullptr;
  if (hwloc_bitmap_list_asprintf(&text, cpus) < 0 || text == nullptr) return "";
  std::string list(text);
  std::free(text);
  return list;
}

std::int32_t count(hwloc_topology_t topology, hwloc_obj_type_t type) {
  return std::max(0, hwloc_get_nbobjs_by_type(topology, type));
}

std::string pci_name(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
}

/// The location of an object of the I/O tree.
DeviceLocation location_of(hwloc_topology_t topology, hwloc_obj_t device) {
  DeviceLocation location;
  hwloc_obj_t at = device;
  for (; at != nullptr && hwloc_obj_type_is_io(at->type); at = at->parent) {
    if (at->type == HWLOC_OBJ_PCI_DEVICE && location.pci.empty()) {
      location.pci = pci_name(at->attr->pcidev);
      // hwloc's unit is 1e9 bytes/s.
      location.pcie_bytes_per_s = static_cast<double>(at->attr->pcidev.linkspeed) * 1e9;
    }
    if (at->type != HWLOC_OBJ_BRIDGE) continue;
    if (at->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST) {
      location.host_bridge = at->gp_index;
    } else {
      location.bridges.insert(location.bridges.begin(), at->gp_index);
    }
  }
  if (at == nullptr || at->nodeset == nullptr) return location;
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;)
    if (hwloc_bitmap_isset(at->nodeset, node->os_index) != 0)
      location.numa.push_back(static_cast<std::int32_t>(node->os_index));
  return location;
}

/// hwloc and its XML libraries read nested objects recursively; real servers nest at most a few dozen levels.
bool is_nested_too_deeply(const std::string& text) {
  constexpr int kMostDepth = 200;
  int depth = 0;
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos; ++at) {
    const std::size_t end = text.find('>', at);
    if (end == std::string::npos) return false;
    const char next = text[at + 1];
    if (next == '/') {
      --depth;
    } else if (next != '?' && next != '!' && text[end - 1] != '/') {
      if (++depth > kMostDepth) return true;
    }
    at = end;
  }
  return false;
}

}  // namespace

void HwlocTree::Destroy::operator()(hwloc_topology* topology) const {
  hwloc_topology_destroy(topology);
}

Result<HwlocTree> HwlocTree::of_machine() {
  HwlocTree tree;
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0)
    return fail(Code::kOutOfMemory, "discover: cannot initialise hwloc: out of memory");
  tree.topology_.reset(topology);
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  // These plugins look for GPUs and displays, which takes seconds on some nodes; "pci" reads the names of all
  // vendors and never frees them. The locations of PCI functions come from the kernel's files.
  for (const char* plugin : {"pci", "opencl", "gl", "cuda", "nvml", "rsmi", "levelzero"})
    (void)hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, plugin);
  if (hwloc_topology_load(topology) != 0)
    return fail(Code::kSystem,
                fmt::format("discover: hwloc cannot describe this machine: {}", std::strerror(errno)));
  return tree;
}

Result<HwlocTree> HwlocTree::of_xml(const std::string& name, const std::string& text) {
  const auto refused = [&](std::string_view why) {
    return fail(Code::kInvalidArgument,
                fmt::format("--hwloc: {} {}; write it on the server with lstopo FILE.xml", name, why));
  };
  if (text.find("<topology") == std::string::npos)
    return refused("is not an XML file of hwloc: it has no <topology>");
  if (is_nested_too_deeply(text)) return refused("is nested more than 200 levels deep");
  HwlocTree tree;
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0)
    return fail(Code::kOutOfMemory, "discover: cannot initialise hwloc: out of memory");
  tree.topology_.reset(topology);
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  // The size includes the NUL after the text.
  if (text.size() > INT32_MAX - 1 ||
      hwloc_topology_set_xmlbuffer(topology, text.c_str(), static_cast<int>(text.size() + 1)) != 0)
    return refused("is malformed or truncated XML");
  if (hwloc_topology_load(topology) != 0) return refused("is XML, but not a description that hwloc can read");
  return tree;
}

void HwlocTree::describe(Server& server) const {
  hwloc_topology_t topology = topology_.get();
  server.num_packages = count(topology, HWLOC_OBJ_PACKAGE);
  server.num_cores = count(topology, HWLOC_OBJ_CORE);
  server.num_cpus = count(topology, HWLOC_OBJ_PU);
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    NumaNode numa;
    numa.number = static_cast<std::int32_t>(node->os_index);
    numa.cpus = cpus_text(node->cpuset);
    numa.num_cores =
        std::max(0, hwloc_get_nbobjs_inside_cpuset_by_type(topology, node->cpuset, HWLOC_OBJ_CORE));
    numa.memory_bytes = node->attr->numanode.local_memory;
    server.numa.push_back(std::move(numa));
  }
}

std::vector<NamedDevice> HwlocTree::devices() const {
  std::vector<NamedDevice> devices;
  for (hwloc_obj_t device = nullptr; (device = hwloc_get_next_osdev(topology_.get(), device)) != nullptr;) {
    const hwloc_obj_osdev_type_t type = device->attr->osdev.type;
    if (type != HWLOC_OBJ_OSDEV_NETWORK && type != HWLOC_OBJ_OSDEV_OPENFABRICS) continue;
    if (device->name == nullptr) continue;
    devices.push_back(
        {device->name, type == HWLOC_OBJ_OSDEV_OPENFABRICS, location_of(topology_.get(), device)});
  }
  return devices;
}

std::optional<std::string> HwlocTree::host() const {
  const char* const name = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology_.get()), "HostName");
  return name == nullptr ? std::nullopt : std::optional<std::string>(name);
}

}  // namespace hips::discover
