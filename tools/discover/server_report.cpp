#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "lib/base/counted.hpp"
#include "tools/discover/server.hpp"

namespace hips::discover {
namespace {

using Row = std::vector<std::string>;

/// Text with aligned columns, two blanks apart.
std::string table_text(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("  {:<{}}", row[i], widths[i]);
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string or_dash(std::string text) {
  return text.empty() ? "-" : text;
}

std::string rate_text(double bytes_per_s) {
  return bytes_per_s > 0 ? fmt::format("{:g} Gb/s", bytes_per_s * 8 / 1e9) : "-";
}

constexpr const char* kLegend =
    "  X  itself          PIX  at most one PCIe bridge   PXB  several PCIe bridges\n"
    "  PHB  the CPU       NODE  inside a NUMA node       SYS  between NUMA nodes    -  unknown\n";

}  // namespace

std::string server_text(const Server& server) {
  std::string text = fmt::format("{}: {}, {}, {}, {}\n", server.host, counted(server.num_packages, "package"),
                                 counted(std::ssize(server.numa), "NUMA node"),
                                 counted(server.num_cores, "core"), counted(server.num_cpus, "CPU"));
  std::vector<Row> rows;
  for (const NumaNode& node : server.numa)
    rows.push_back({fmt::format("NUMA {}", node.number), counted(node.num_cores, "core"),
                    "CPUs " + or_dash(node.cpus),
                    fmt::format("{:.1f} GiB", static_cast<double>(node.memory_bytes) / (1U << 30U))});
  text += table_text(rows) + "\nNICs\n";
  if (server.nics.empty()) return text + "  none\n";
  rows = {{"device", "interface", "PCI", "NUMA", "rate", "PCIe", "state", "addresses"}};
  for (const ServerNic& nic : server.nics) {
    const double pcie = nic.location.pcie_bytes_per_s;
    rows.push_back({or_dash(nic.rdma.empty() ? "" : nic.name()), or_dash(nic.interface),
                    or_dash(nic.location.pci), or_dash(fmt::format("{}", fmt::join(nic.location.numa, ","))),
                    rate_text(nic.bandwidth_bytes_per_s),
                    pcie > 0 ? fmt::format("{:.1f} GB/s", pcie / 1e9) : "-", or_dash(nic.state),
                    or_dash(fmt::format("{}", fmt::join(nic.addresses, " ")))});
  }
  text += table_text(rows) + "\nDistances\n";
  rows = {{""}};
  for (const ServerNic& nic : server.nics) rows[0].push_back(nic.name());
  for (const NumaNode& node : server.numa) rows[0].push_back(fmt::format("NUMA {}", node.number));
  for (const ServerNic& nic : server.nics) {
    Row row{nic.name()};
    for (const ServerNic& other : server.nics) row.emplace_back(to_string(distance(nic, other)));
    for (const NumaNode& node : server.numa) row.emplace_back(to_string(distance(nic, node)));
    rows.push_back(std::move(row));
  }
  return text + table_text(rows) + "\n" + kLegend;
}

std::string server_json(const Server& server) {
  using Json = nlohmann::ordered_json;
  Json json{{"host", server.host},     {"packages", server.num_packages}, {"cores", server.num_cores},
            {"cpus", server.num_cpus}, {"numa_nodes", Json::array()},     {"nics", Json::array()}};
  for (const NumaNode& node : server.numa)
    json["numa_nodes"].push_back({{"node", node.number},
                                  {"cores", node.num_cores},
                                  {"cpus", node.cpus},
                                  {"memory_bytes", node.memory_bytes}});
  const auto or_null = [](const auto& value, bool known) { return known ? Json(value) : Json(); };
  for (const ServerNic& nic : server.nics) {
    Json one{{"name", nic.name()},
             {"rdma_device", or_null(nic.rdma, !nic.rdma.empty())},
             {"port", or_null(nic.port, !nic.rdma.empty())},
             {"interface", or_null(nic.interface, !nic.interface.empty())},
             {"pci", or_null(nic.location.pci, !nic.location.pci.empty())},
             {"numa_nodes", nic.location.numa},
             {"bandwidth_bytes_per_s", or_null(nic.bandwidth_bytes_per_s, nic.bandwidth_bytes_per_s > 0)},
             {"pcie_bytes_per_s", or_null(nic.location.pcie_bytes_per_s, nic.location.pcie_bytes_per_s > 0)},
             {"state", or_null(nic.state, !nic.state.empty())},
             {"addresses", nic.addresses},
             {"to_nics", Json::object()},
             {"to_numa_nodes", Json::array()}};
    for (const ServerNic& other : server.nics)
      one["to_nics"][other.name()] = std::string(to_string(distance(nic, other)));
    for (const NumaNode& node : server.numa)
      one["to_numa_nodes"].push_back(std::string(to_string(distance(nic, node))));
    json["nics"].push_back(std::move(one));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hips::discover
