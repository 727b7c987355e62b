#include "tools/lab/network/network.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/lab/process/child.hpp"

namespace hips::lab {
namespace {

constexpr const char* kManagementBridge = "mgmt";

Status run_batch(const std::string& program, const std::string& commands) {
  if (commands.empty()) return Status::success();
  const auto path = find_on_path(program);
  if (!path) {
    return Status::error(Code::kUnsupported,
                         fmt::format("lab: {} is missing: apt-get install iproute2", program));
  }
  ChildOptions options;
  options.argv = {*path, "-batch", "-"};
  options.dies_with_us = true;
  // Thousands of interfaces take longer than any limit for few.
  const auto num_commands = std::count(commands.begin(), commands.end(), '\n');
  const auto done = run_child(options, commands, static_cast<int>(60'000 + 20 * num_commands));
  if (!done) return done.error();
  if (done->ok()) return Status::success();
  const bool no_tun = done->err.find("/dev/net/tun") != std::string::npos;
  return Status::error(
      no_tun ? Code::kUnsupported : Code::kSystem,
      fmt::format("lab: {} cannot build the network: {}{}", program,
                  done->err.substr(0, done->err.find('\n')), no_tun ? "; as root: modprobe tun" : ""));
}

}  // namespace

std::string management_tap(std::int64_t server) {
  return fmt::format("m{}", server);
}

NetworkCommands network_commands(const Wiring& wiring, std::int64_t num_servers, const Shaping& shaping,
                                 const std::vector<pid_t>& servers) {
  NetworkCommands commands;
  const auto add_bridge = [&](const std::string& name) {
    // Nobody needs multicast snooping here, and it would drop neighbour discovery at first.
    commands.ip +=
        fmt::format("link add {} type bridge stp_state 0 mcast_snooping 0\nlink set {} up\n", name, name);
  };
  // An end whose bridge has a fixed table floods nothing from the moment it is up: in a network with loops a single frame of the
  // kernel's own (IPv6 sends some for each interface) would circle until the last end is told, and fill the queues of this
  // kernel so that it drops packets of other programs.
  const auto plug = [&](const std::string& interface, const std::string& bridge, std::int64_t mtu,
                        bool fixed) {
    commands.ip += fmt::format("link set {} mtu {} master {}\n", interface, mtu, bridge);
    if (fixed) {
      commands.ip += fmt::format(
          "link set {} type bridge_slave learning off flood off mcast_flood off bcast_flood off\n",
          interface);
    }
    commands.ip += fmt::format("link set {} up\n", interface);
  };
  const auto add_nic = [&](std::int64_t server, const std::string& tap, const std::string& nic,
                           const std::string& mac, const std::string& bridge, std::int64_t mtu, bool fixed) {
    commands.ip += servers.empty()
                       ? fmt::format("tuntap add {} mode tap\n", tap)
                       : fmt::format("link add {} type veth peer name {} address {} mtu {} netns {}\n", tap,
                                     nic, mac, mtu, servers[static_cast<std::size_t>(server)]);
    plug(tap, bridge, mtu, fixed);
  };
  const auto bridge_name = [&](std::int64_t bridge) {
    return wiring.bridges[static_cast<std::size_t>(bridge)];
  };

  commands.ip += "link set lo up\n";
  add_bridge(kManagementBridge);
  for (std::int64_t server = 0; server < num_servers; ++server) {
    add_nic(server, management_tap(server), "mgmt0", management_mac(server), kManagementBridge, 1500, false);
  }
  for (const std::string& bridge : wiring.bridges) add_bridge(bridge);
  for (const Port& port : wiring.ports) {
    add_nic(port.server, port.tap, fmt::format("nic{}", port.rail), port.mac, bridge_name(port.bridge),
            kRailMtu, wiring.fixed[static_cast<std::size_t>(port.segment)]);
    commands.tc += shaping_commands(shaping, port.tap, false);
  }
  for (const Trunk& trunk : wiring.trunks) {
    commands.ip += fmt::format("link add {} type veth peer name {}\n", trunk.a_end, trunk.b_end);
    plug(trunk.a_end, bridge_name(trunk.a), kRailMtu, true);
    plug(trunk.b_end, bridge_name(trunk.b), kRailMtu, true);
    for (const std::string& end : {trunk.a_end, trunk.b_end}) {
      commands.tc += shaping_commands(shaping, end, false);
    }
  }
  for (const Forwarding& entry : wiring.tables) {
    commands.bridge += fmt::format("fdb add {} dev {} master static\n", entry.mac, entry.interface);
  }
  return commands;
}

Status build_network(const Wiring& wiring, std::int64_t num_servers, const Shaping& shaping,
                     const std::vector<pid_t>& servers) {
  const NetworkCommands commands = network_commands(wiring, num_servers, shaping, servers);
  for (const auto& [program, text] : {std::pair("ip", &commands.ip), std::pair("bridge", &commands.bridge),
                                      std::pair("tc", &commands.tc)}) {
    if (Status status = run_batch(program, *text); !status.ok()) return status;
  }
  return Status::success();
}

std::map<std::string, std::int64_t> drops_of_queues(const std::string& json) {
  std::map<std::string, std::int64_t> drops;
  const auto queues = nlohmann::json::parse(json, nullptr, false);
  if (!queues.is_array()) return drops;
  for (const auto& queue : queues) {
    // The root counts what those below it drop, too.
    if (!queue.is_object() || !queue.value("root", false) || !queue.contains("dev")) continue;
    drops[queue["dev"].get<std::string>()] += queue.value("drops", std::int64_t{0});
  }
  return drops;
}

Result<std::map<std::string, InterfaceCounters>> read_interfaces() {
  ChildOptions options;
  options.argv = {find_on_path("ip").value_or("ip"), "-json", "-statistics", "link"};
  options.dies_with_us = true;
  const auto done = run_child(options);
  if (!done) return fail(done.error());
  const auto json = nlohmann::json::parse(done->out, nullptr, false);
  if (!json.is_array()) return fail(Code::kSystem, "lab: ip gives no counters: " + done->err);
  std::map<std::string, InterfaceCounters> counters;
  try {
    for (const auto& link : json) {
      const auto& stats = link.at("stats64");
      InterfaceCounters& own = counters[link.at("ifname").get<std::string>()];
      own.received_bytes = stats.at("rx").at("bytes").get<std::int64_t>();
      own.received_packets = stats.at("rx").at("packets").get<std::int64_t>();
      own.sent_bytes = stats.at("tx").at("bytes").get<std::int64_t>();
      own.sent_packets = stats.at("tx").at("packets").get<std::int64_t>();
      own.dropped_packets =
          stats.at("rx").at("dropped").get<std::int64_t>() + stats.at("tx").at("dropped").get<std::int64_t>();
    }
  } catch (const nlohmann::json::exception& error) {
    return fail(Code::kSystem, std::string("lab: ip gives other counters than expected: ") + error.what());
  }
  options.argv = {find_on_path("tc").value_or("tc"), "-s", "-json", "qdisc", "show"};
  const auto queues = run_child(options);
  if (!queues) return fail(queues.error());
  for (const auto& [interface, drops] : drops_of_queues(queues->out)) {
    if (const auto found = counters.find(interface); found != counters.end())
      found->second.dropped_packets += drops;
  }
  return counters;
}

}  // namespace hips::lab
