#include "tools/lab/network/counters.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace hips::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kCountersLimit = std::chrono::seconds(20);

/// Lines "rxe0/ports/1/hw_counters/sent_pkts:12".
DeviceCounters parse_devices(const std::string& text) {
  DeviceCounters counters;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    const auto device_end = line.find('/');
    const auto name_begin = line.rfind('/') + 1;
    const auto colon = line.rfind(':');
    std::int64_t value = 0;
    if (device_end == std::string::npos || colon == std::string::npos || colon < name_begin ||
        std::from_chars(line.data() + colon + 1, line.data() + line.size(), value).ec != std::errc{}) {
      continue;
    }
    counters[line.substr(0, device_end)][line.substr(name_begin, colon - name_begin)] = value;
  }
  return counters;
}

InterfaceCounters difference(const Counters& before, const Counters& after, const std::string& name) {
  const auto find = [&](const Counters& counters) {
    const auto found = counters.interfaces.find(name);
    return found == counters.interfaces.end() ? InterfaceCounters{} : found->second;
  };
  const InterfaceCounters a = find(before), b = find(after);
  return {b.received_bytes - a.received_bytes, b.sent_bytes - a.sent_bytes,
          b.received_packets - a.received_packets, b.sent_packets - a.sent_packets,
          b.dropped_packets - a.dropped_packets};
}

}  // namespace

Result<Counters> read_counters(Guests& guests) {
  Counters counters;
  auto interfaces = read_interfaces();
  if (!interfaces) return fail(interfaces.error());
  counters.interfaces = std::move(*interfaces);
  std::vector<Job> jobs;
  for (std::size_t guest = 0; guest < guests.size(); ++guest) {
    Job job{guest, {}};
    job.request.argv = {"sh", "-c",
                        "cd /sys/class/infiniband 2>/dev/null && grep -H . */ports/1/hw_counters/*; "
                        "PATH=$PATH:/usr/sbin:/sbin; tc -s -json qdisc show 2>/dev/null; true"};
    jobs.push_back(std::move(job));
  }
  std::vector<std::string> texts(guests.size());
  const auto outcomes = guests.run(
      jobs,
      [&](std::size_t job, bool is_error, std::string_view bytes) {
        if (!is_error) texts[job] += bytes;
      },
      Guests::Clock::now() + kCountersLimit);
  if (!outcomes) return fail(outcomes.error());
  for (std::size_t guest = 0; guest < guests.size(); ++guest) {
    const bool is_up = (*outcomes)[guest].ok();
    const std::string& text = texts[guest];
    const std::size_t queues = text.starts_with('[') ? 0 : std::min(text.find("\n["), text.size());
    counters.up.push_back(is_up);
    counters.guests.push_back(is_up ? parse_devices(text.substr(0, queues)) : DeviceCounters{});
    counters.drops.push_back(drops_of_queues(is_up ? text.substr(queues) : ""));
  }
  return counters;
}

std::string counters_json(const std::string& topology, const Wiring& wiring, const Counters& before,
                          const Counters& after) {
  Json servers = Json::array();
  for (std::size_t guest = 0; guest < after.guests.size(); ++guest) {
    Json devices = Json::object();
    for (const auto& [device, values] : after.guests[guest]) {
      devices[device] = Json::object();
      for (const auto& [name, value] : values) {
        std::int64_t earlier = 0;
        if (const auto found = before.guests[guest].find(device); found != before.guests[guest].end()) {
          if (const auto counter = found->second.find(name); counter != found->second.end())
            earlier = counter->second;
        }
        devices[device][name] = value - earlier;
      }
    }
    Json nics = Json::array();
    for (const Port& port : wiring.ports_of(static_cast<std::int64_t>(guest))) {
      const InterfaceCounters tap = difference(before, after, port.tap);
      const std::string device = fmt::format("rxe{}", port.rail), nic = fmt::format("nic{}", port.rail);
      // Those of a server that went down meanwhile are not known.
      const auto drops = [&](const Counters& counters) {
        const auto& of_guest = counters.drops[guest];
        const auto found = of_guest.find(nic);
        return found == of_guest.end() ? 0 : found->second;
      };
      nics.push_back({{"nic", port.rail}});
      if (devices.contains(device)) nics.back()["device"] = device;
      nics.back().update({{"ip", port.ip},
                          {"mac", port.mac},
                          {"sent_bytes", tap.received_bytes},
                          {"received_bytes", tap.sent_bytes},
                          {"sent_packets", tap.received_packets},
                          {"received_packets", tap.sent_packets},
                          {"dropped_packets",
                           tap.dropped_packets + std::max<std::int64_t>(0, drops(after) - drops(before))}});
    }
    servers.push_back(
        {{"server", guest}, {"up", bool(after.up[guest])}, {"nics", nics}, {"devices", devices}});
  }
  Json trunks = Json::array();
  for (const Trunk& trunk : wiring.trunks) {
    for (const bool forth : {true, false}) {
      const auto counted = difference(before, after, forth ? trunk.a_end : trunk.b_end);
      const auto name = [&](bool a) {
        return wiring.bridge_names[static_cast<std::size_t>(a ? trunk.a : trunk.b)];
      };
      trunks.push_back({{"from", name(forth)},
                        {"to", name(!forth)},
                        {"bytes", counted.sent_bytes},
                        {"packets", counted.sent_packets},
                        {"dropped_packets", counted.dropped_packets}});
    }
  }
  return Json({{"topology", topology}, {"servers", servers}, {"trunks", trunks}}).dump(2) + "\n";
}

}  // namespace hips::lab
