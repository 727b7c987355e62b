#include "tools/discover/view.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "lib/comm/setup/interfaces.hpp"
#include "lib/comm/setup/nic_info.hpp"
#include "tools/discover/server.hpp"

namespace hips::discover {
namespace {

/// Fills in the address of an RDMA port and its subnet, as configured at its interface.
void add_network(const verbs::Gid& gid, const std::vector<comm::LocalNetwork>& networks, JobNic& nic) {
  if (gid.kind == verbs::Gid::Kind::kInfiniBand) {
    // The first half of the GID is the subnet prefix.
    nic.seen.subnet = fmt::format("InfiniBand {:02x}", fmt::join(std::span(gid.bytes).first(8), ""));
    return;
  }
  const comm::LocalNetwork* found = nullptr;
  for (const comm::LocalNetwork& network : networks) {
    const std::string address = comm::host_of(network.address);
    if (address == gid.address()) found = &network;
    // A link-local address belongs to every network; the interface may have another address.
    if (found == nullptr && gid.is_link_local() && network.interface == nic.interface) found = &network;
  }
  if (found == nullptr) return;
  nic.seen.address = comm::host_of(found->address);
  nic.seen.subnet = subnet_of(nic.seen.address, found->prefix_bits);
}

std::vector<JobNic> rdma_nics(const doctor::NodeFacts& node, const doctor::RailChoice& rails) {
  const auto networks = comm::local_networks().value_or(std::vector<comm::LocalNetwork>());
  std::vector<JobNic> nics;
  for (const std::size_t at : rails.by_rail) {
    const doctor::PortUse& use = rails.ports[at];
    JobNic nic{.seen = {}, .interface = {}, .rdma = true};
    nic.seen.name = use.port == 1 ? use.device : use.name;
    for (const doctor::Device& device : node.devices) {
      for (const doctor::DevicePort& port : device.ports) {
        if (device.name != use.device || port.number != use.port) continue;
        nic.interface = port.netdev.name;
        nic.seen.bandwidth_bytes_per_s =
            device.software ? comm::interface_bandwidth(port.netdev.name) : port_rate(port.rate);
      }
    }
    if (use.gid) add_network(use.gid->gid, networks, nic);
    nics.push_back(std::move(nic));
  }
  return nics;
}

/// What ranks exchange of a neighbour.
constexpr std::array kNeighbourTexts{
    &topology::LldpNeighbour::interface,  &topology::LldpNeighbour::via,
    &topology::LldpNeighbour::chassis,    &topology::LldpNeighbour::chassis_id,
    &topology::LldpNeighbour::port_id,    &topology::LldpNeighbour::port_id_type,
    &topology::LldpNeighbour::port_descr, &topology::LldpNeighbour::mau};

/// Visits all pairs of 0 .. size - 1, or, if there are many, those a power of two apart (cyclically).
template <typename Visit>
void for_pairs(std::size_t size, Visit&& visit) {
  for (std::size_t i = 0; i < size; ++i) {
    if (size <= kMostForAllPairs) {
      for (std::size_t j = i + 1; j < size; ++j) visit(i, j);
    } else {
      for (std::size_t step = 1; step < size; step *= 2) visit(i, (i + step) % size);
    }
  }
}

}  // namespace

std::string subnet_of(const std::string& address, std::uint32_t prefix_bits) {
  std::array<unsigned char, 16> bytes{};
  const int family = address.find(':') == std::string::npos ? AF_INET : AF_INET6;
  const std::uint32_t size = family == AF_INET ? 4 : 16;
  if (inet_pton(family, address.c_str(), bytes.data()) != 1) return "";
  prefix_bits = std::min(prefix_bits, 8 * size);
  for (std::uint32_t bit = prefix_bits; bit < 8 * size; ++bit)
    bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] & ~(0x80U >> bit % 8));
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(family, bytes.data(), text.data(), text.size());
  return fmt::format("{}/{}", text.data(), prefix_bits);
}

Result<RankView> view_of(Rank rank, const doctor::NodeFacts& node, const doctor::RailChoice& rails,
                         const Config& config) {
  RankView view{.rank = rank, .host = node.name, .node_key = node.key, .nics = {}};
  if (config.transport != "tcp") {
    // A node without usable ports uses its interfaces; an invalid variable is an error of the user.
    if (rails.problem.code == Code::kInvalidArgument) return fail(rails.problem);
    if (rails.problem.ok()) view.nics = rdma_nics(node, rails);
  }
  if (!view.nics.empty()) return view;
  const auto networks = comm::data_networks(config.socket_ifname);
  if (!networks && networks.error().code == Code::kInvalidArgument) return fail(networks.error());
  if (!networks) return view;
  for (const comm::LocalNetwork& network : *networks) {
    const std::string address = comm::host_of(network.address);
    view.nics.push_back({{network.interface, address, subnet_of(address, network.prefix_bits),
                          comm::interface_bandwidth(network.interface)},
                         network.interface,
                         false});
  }
  return view;
}

std::vector<topology::LldpNeighbour> neighbours_of(std::span<const JobNic> nics,
                                                   std::vector<topology::LldpNeighbour> heard) {
  std::vector<topology::LldpNeighbour> own;
  for (topology::LldpNeighbour& neighbour : heard) {
    if (!neighbour.via.empty() && neighbour.via != "LLDP") continue;
    for (const JobNic& nic : nics) {
      if (nic.interface.empty() || nic.interface != neighbour.interface) continue;
      neighbour.interface = nic.seen.name;
      neighbour.line = 0;
      own.push_back(std::move(neighbour));
      break;
    }
  }
  return own;
}

comm::Blob encode(const RankView& view) {
  comm::ByteWriter writer;
  writer.put(view.rank);
  writer.put_text(view.host);
  writer.put_text(view.node_key);
  writer.put(static_cast<std::uint32_t>(view.nics.size()));
  for (const JobNic& nic : view.nics) {
    writer.put_text(nic.seen.name);
    writer.put_text(nic.seen.address);
    writer.put_text(nic.seen.subnet);
    writer.put(nic.seen.bandwidth_bytes_per_s);
    writer.put_text(nic.interface);
    writer.put(static_cast<std::uint8_t>(nic.rdma));
  }
  writer.put(static_cast<std::uint32_t>(view.neighbours.size()));
  for (const topology::LldpNeighbour& one : view.neighbours) {
    for (const auto text : kNeighbourTexts) writer.put_text(one.*text);
    writer.put(static_cast<std::uint8_t>(one.is_bridge));
  }
  return writer.take();
}

Result<RankView> decode_view(std::span<const std::byte> bytes) {
  comm::ByteReader reader(bytes);
  RankView view;
  view.rank = reader.get<Rank>();
  view.host = reader.get_text();
  view.node_key = reader.get_text();
  const auto count = reader.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    JobNic nic;
    nic.seen.name = reader.get_text();
    nic.seen.address = reader.get_text();
    nic.seen.subnet = reader.get_text();
    nic.seen.bandwidth_bytes_per_s = reader.get<double>();
    nic.interface = reader.get_text();
    nic.rdma = reader.get<std::uint8_t>() != 0;
    view.nics.push_back(std::move(nic));
  }
  const auto num_neighbours = reader.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < num_neighbours && reader.ok(); ++i) {
    topology::LldpNeighbour one;
    for (const auto text : kNeighbourTexts) one.*text = reader.get_text();
    one.is_bridge = reader.get<std::uint8_t>() != 0;
    view.neighbours.push_back(std::move(one));
  }
  if (!reader.ok() || !reader.rest().empty())
    return fail(Code::kMismatch,
                "discover: malformed message of a rank; use the same version of hips on all nodes");
  return view;
}

std::vector<JobServer> servers_of(std::span<const RankView> views) {
  std::vector<JobServer> servers;
  std::map<std::string, std::size_t> by_key;
  for (const RankView& view : views) {
    const auto [at, is_new] = by_key.try_emplace(view.node_key, servers.size());
    if (is_new) servers.emplace_back();
    servers[at->second].ranks.push_back(view.rank);
  }
  return servers;
}

topology::Observation observation_of(std::span<const RankView> views, std::span<const JobServer> servers) {
  topology::Observation seen;
  for (const JobServer& server : servers) {
    const RankView& view = views[static_cast<std::size_t>(server.leader())];
    topology::SeenServer one{view.host, static_cast<std::int32_t>(server.ranks.size()), {}};
    for (const JobNic& nic : view.nics) one.nics.push_back(nic.seen);
    seen.servers.push_back(std::move(one));
  }
  return seen;
}

std::vector<topology::SeenPath> paths_to_try(const topology::Observation& seen) {
  using End = std::pair<std::size_t, std::size_t>;
  std::map<std::string, std::vector<End>> by_subnet;
  std::map<std::size_t, std::vector<End>> by_number;
  for (std::size_t server = 0; server < seen.servers.size(); ++server) {
    const auto& nics = seen.servers[server].nics;
    for (std::size_t nic = 0; nic < nics.size(); ++nic) {
      if (nics[nic].subnet.empty()) continue;
      by_subnet[nics[nic].subnet].emplace_back(server, nic);
      by_number[nic].emplace_back(server, nic);
    }
  }
  std::set<std::pair<End, End>> pairs;
  const auto add = [&](const std::vector<End>& ends) {
    for_pairs(ends.size(), [&](std::size_t i, std::size_t j) {
      if (ends[i].first != ends[j].first) pairs.insert(std::minmax(ends[i], ends[j]));
    });
  };
  for (const auto& [subnet, ends] : by_subnet) add(ends);
  for (const auto& [number, ends] : by_number) add(ends);
  std::vector<topology::SeenPath> paths;
  for (const auto& [a, b] : pairs) paths.push_back({a.first, a.second, b.first, b.second, false, 0, 0});
  return paths;
}

}  // namespace hips::discover
