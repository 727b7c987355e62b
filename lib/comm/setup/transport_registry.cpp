#include "lib/comm/setup/transport_registry.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "lib/base/wait/clock.hpp"
#include "lib/comm/setup/interfaces.hpp"
#include "lib/comm/setup/nic_info.hpp"
#include "lib/cost/select.hpp"
#include "transports/shm/shm.hpp"
#include "transports/tcp/tcp.hpp"
#ifdef HIPS_HAVE_VERBS
#include "transports/verbs/verbs.hpp"
#endif

namespace hips::comm {
namespace {

bool same_node(const ProcessInfo& a, const ProcessInfo& b) {
  return a.node_key == b.node_key;
}

std::string why_not_same_node(const ProcessInfo& /*a*/, const ProcessInfo& /*b*/) {
  return "shm needs both processes on one node, in one container and of one user";
}

std::span<const NicInfo> no_nics(const ProcessInfo& /*process*/) {
  return {};
}

Result<TransportSet> make_shm(const Config& /*config*/) {
  auto made = shm::create({});
  if (!made) return fail(std::move(made).error());
  TransportSet set;
  set.transports.push_back(*std::move(made));
  set.by_rail = {0};
  return set;
}

bool both_have_rdma(const ProcessInfo& a, const ProcessInfo& b) {
  return !a.rdma_nics.empty() && !b.rdma_nics.empty();
}

std::string why_no_rdma(const ProcessInfo& a, const ProcessInfo& b) {
  const ProcessInfo& without = a.rdma_nics.empty() ? a : b;
  return fmt::format("verbs finds no port on {}: {}", without.host,
                     without.rdma_problem.empty() ? "it has none" : without.rdma_problem);
}

std::span<const NicInfo> rdma_nics(const ProcessInfo& process) {
  return process.rdma_nics;
}

#ifdef HIPS_HAVE_VERBS
verbs::VerbsOptions verbs_options(const RdmaConfig& config) {
  return {.hca = config.hca,
          .gid_index = config.gid_index,
          .traffic_class = static_cast<std::uint8_t>(config.traffic_class),
          .service_level = static_cast<std::uint8_t>(config.service_level),
          .timeout = static_cast<std::uint8_t>(config.timeout),
          .retry_count = static_cast<std::uint8_t>(config.retry_count),
          .pairs_per_peer = config.pairs_per_connection,
          .max_queue_pairs = static_cast<std::uint32_t>(config.max_queue_pairs),
          .cm = config.cm};
}

Result<TransportSet> make_verbs(const Config& config) {
  const verbs::VerbsOptions options = verbs_options(config.rdma);
  auto ports = verbs::find_ports(options);
  if (!ports) return fail(std::move(ports).error());
  TransportSet set;
  std::map<std::string, std::size_t> made;  // a port may serve several rails
  for (const verbs::PortChoice& port : *ports) {
    const auto [known, is_new] = made.emplace(port.name, set.transports.size());
    if (is_new) {
      auto transport = verbs::create(port, options);
      if (!transport) return fail(std::move(transport).error());
      set.transports.push_back(*std::move(transport));
    }
    set.by_rail.push_back(known->second);
  }
  return set;
}

/// A RoCE port has the subnet and the rate of the interface with its address.
NicInfo describe_port(const verbs::PortChoice& port, bool chosen) {
  if (const auto networks = local_networks()) {
    for (const LocalNetwork& network : *networks) {
      if (host_of(network.address) != port.address) continue;
      NicInfo nic = nic_info(network, chosen);
      nic.name = port.name;
      if (nic.bandwidth_bytes_per_s == 0) nic.bandwidth_bytes_per_s = port.bandwidth_bytes_per_s;
      return nic;
    }
  }
  return {.name = port.name,
          .address = port.address,
          .subnet = port.subnet_prefix,
          .device = port.name,
          .bandwidth_bytes_per_s = port.bandwidth_bytes_per_s};
}

Status look_for_rdma(const Config& config, ProcessInfo& process) {
  if (!verbs::any_device() && config.transport != "verbs") {
    process.rdma_problem = "it has no RDMA device";
    return Status::success();
  }
  auto ports = verbs::find_ports(verbs_options(config.rdma));
  if (ports) {
    for (const verbs::PortChoice& port : *ports)
      process.rdma_nics.push_back(describe_port(port, !config.rdma.hca.empty()));
    return Status::success();
  }
  process.rdma_problem = ports.error().message;
  const bool asked = config.transport == "verbs" || ports.error().code == Code::kInvalidArgument;
  return asked ? std::move(ports).error() : Status::success();
}
#else
constexpr std::string_view kNotBuilt =
    "this build has no verbs; install libibverbs-dev and librdmacm-dev, then build again";

Result<TransportSet> make_verbs(const Config& /*config*/) {
  return fail(Code::kUnsupported, std::string(kNotBuilt));
}

Status look_for_rdma(const Config& config, ProcessInfo& process) {
  process.rdma_problem = kNotBuilt;
  if (config.transport != "verbs") return Status::success();
  return Status::error(Code::kUnsupported, fmt::format("HIPS_TRANSPORT=verbs: {}", kNotBuilt));
}
#endif

Result<TransportSet> make_tcp(const Config& config) {
  auto networks = data_networks(config.socket_ifname);
  if (!networks) return fail(std::move(networks).error());
  TransportSet set;
  std::map<std::string, std::size_t> made;  // an interface may serve several rails
  for (const LocalNetwork& network : *networks) {
    const auto [known, is_new] = made.emplace(network.interface, set.transports.size());
    if (is_new) {
      auto transport =
          tcp::create({.address = network.address,
                       .device = network.interface,
                       .dead_after_ns = config.dead_after_ns,
                       .zero_copy = config.socket_zerocopy ? tcp::ZeroCopy::kOn : tcp::ZeroCopy::kOff});
      if (!transport) return fail(std::move(transport).error());
      set.transports.push_back(*std::move(transport));
    }
    set.by_rail.push_back(known->second);
  }
  return set;
}

Status look_for_sockets(const Config& config, ProcessInfo& process) {
  auto networks = data_networks(config.socket_ifname);
  if (networks) {
    for (const LocalNetwork& network : *networks)
      process.socket_nics.push_back(nic_info(network, !config.socket_ifname.empty()));
    process.socket_loopback = std::all_of(networks->begin(), networks->end(),
                                          [](const LocalNetwork& network) { return network.loopback; });
    return Status::success();
  }
  process.socket_problem = networks.error().message;
  const bool asked = config.transport == "tcp" || networks.error().code == Code::kInvalidArgument;
  return asked ? std::move(networks).error() : Status::success();
}

bool sockets_reach(const ProcessInfo& a, const ProcessInfo& b) {
  if (a.socket_nics.empty() || b.socket_nics.empty()) return false;
  return same_node(a, b) || (!a.socket_loopback && !b.socket_loopback);
}

std::string why_no_sockets(const ProcessInfo& a, const ProcessInfo& b) {
  const ProcessInfo& without = a.socket_nics.empty() || (!b.socket_nics.empty() && a.socket_loopback) ? a : b;
  if (!without.socket_nics.empty())
    return fmt::format("tcp has only loopback on {}; see HIPS_SOCKET_IFNAME and \"ip address\"",
                       without.host);
  return fmt::format("tcp finds no interface on {}: {}", without.host,
                     without.socket_problem.empty() ? "it has none" : without.socket_problem);
}

std::span<const NicInfo> socket_nics(const ProcessInfo& process) {
  return process.socket_nics;
}

constexpr std::array kTransports{
    TransportEntry{"shm", "shared memory between processes of one node", cost::kMessageSeconds, same_node,
                   why_not_same_node, no_nics, make_shm},
    TransportEntry{"verbs", "RDMA verbs: RoCE, InfiniBand, iWARP", cost::kMessageSeconds, both_have_rdma,
                   why_no_rdma, rdma_nics, make_verbs},
    TransportEntry{"tcp", "TCP sockets, where there is no RDMA", cost::kSocketMessageSeconds, sockets_reach,
                   why_no_sockets, socket_nics, make_tcp},
};

Status look_for_networks(const Config& config, ProcessInfo& process) {
  const bool any = config.transport == "auto";
  if (any || config.transport == "verbs") {
    if (Status status = look_for_rdma(config, process); !status.ok()) return status;
  }
  return any || config.transport == "tcp" ? look_for_sockets(config, process) : Status::success();
}

bool is_choice(std::string_view choice, const TransportEntry& entry) {
  return choice == "auto" || choice == entry.name;
}

}  // namespace

std::span<const TransportEntry> transport_entries() {
  return kTransports;
}

const TransportEntry* transport_between(std::string_view choice, const ProcessInfo& a, const ProcessInfo& b) {
  for (const TransportEntry& entry : kTransports)
    if (is_choice(choice, entry) && entry.reaches(a, b)) return &entry;
  return nullptr;
}

std::string obstacles_between(std::string_view choice, const ProcessInfo& a, const ProcessInfo& b) {
  std::string text;
  for (const TransportEntry& entry : kTransports) {
    if (is_choice(choice, entry)) text += (text.empty() ? "" : "; ") + entry.obstacle(a, b);
  }
  return text;
}

Status check_transport_choice(std::string_view choice) {
  std::string names = "auto";
  for (const TransportEntry& entry : kTransports) {
    if (choice == entry.name) return Status::success();
    names += fmt::format(", {}", entry.name);
  }
  if (choice == "auto") return Status::success();
  return Status::error(Code::kInvalidArgument,
                       fmt::format("HIPS_TRANSPORT=\"{}\" is wrong: give one of {}", choice, names));
}

Status describe_networks(const Config& config, ProcessInfo& process) {
  // Asking the kernel takes longer than several small calls, and programs make many communicators in a row.
  constexpr std::int64_t kKnownNs = 1'000'000'000;
  struct Known {
    std::string transport, socket_ifname;
    RdmaConfig rdma;
    std::int64_t looked_ns = 0;
    ProcessInfo process;
    Status status;
  };
  static std::mutex mutex;
  static auto* const known = new std::optional<Known>;  // never destroyed: a thread may outlive main()
  const std::lock_guard lock(mutex);
  const std::int64_t now_ns = SystemClock::instance().now_ns();
  if (*known && now_ns - (*known)->looked_ns < kKnownNs && (*known)->transport == config.transport &&
      (*known)->socket_ifname == config.socket_ifname && (*known)->rdma == config.rdma &&
      (*known)->process.uid == process.uid) {
    process = (*known)->process;
    return (*known)->status;
  }
  Status status = look_for_networks(config, process);
  known->emplace(Known{config.transport, config.socket_ifname, config.rdma, now_ns, process, status});
  return status;
}

}  // namespace hips::comm
