#include "tools/doctor/rails.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lib/base/device_filter.hpp"

namespace hips::doctor {
namespace {

struct Place {
  std::int32_t place;
  std::size_t use;
};

/// Fills in the address; the place of the port is found by the caller.
Status use_port(const Port& port, const RdmaConfig& config, PortUse& use) {
  if (!port.active()) {
    use.why_not = "it is " + port.state;
    return Status::success();
  }
  auto gid = verbs::choose_gid(port.gids, config.gid_index, use.name);
  if (!gid) {
    use.why_not = config.gid_index >= 0 && !port.gids.empty()
                      ? fmt::format("it has no GID at HIPS_IB_GID_INDEX={}", config.gid_index)
                      : "it has no address";
    return std::move(gid).error();
  }
  use.gid = *std::move(gid);
  return Status::success();
}

}  // namespace

RailChoice choose_rails(const Host& host, const RdmaConfig& config) {
  RailChoice choice;
  DeviceFilter filter;
  if (!config.hca.empty()) {
    auto parsed = DeviceFilter::parse(config.hca, kHcaSyntax);
    if (!parsed) {
      choice.problem = std::move(parsed).error();
      return choice;
    }
    filter = *std::move(parsed);
  }
  std::vector<Place> places;
  std::string seen, inactive;
  for (const Device& device : host.devices) {
    for (const Port& port : device.ports) {
      PortUse use{.device = device.name,
                  .port = port.number,
                  .name = fmt::format("{}:{}", device.name, port.number),
                  .rails = {},
                  .gid = {},
                  .why_not = {}};
      seen += fmt::format("{}{}", seen.empty() ? "" : ", ", use.name);
      const auto found = filter.places_of(device.name, static_cast<std::uint8_t>(port.number));
      if (found.empty()) {
        use.why_not = fmt::format("HIPS_IB_HCA={} leaves it out", config.hca);
      } else {
        Status status = use_port(port, config, use);
        if (!status.ok() && choice.problem.ok()) choice.problem = std::move(status);
        if (!port.active())
          inactive += fmt::format("{}{} is {}", inactive.empty() ? "" : ", ", use.name, port.state);
        if (use.gid)
          for (const std::int32_t place : found) places.push_back({place, choice.ports.size()});
      }
      choice.ports.push_back(std::move(use));
    }
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& a, const Place& b) { return a.place < b.place; });
  for (const Place& place : places) {
    choice.ports[place.use].rails.push_back(static_cast<Rail>(choice.by_rail.size()));
    choice.by_rail.push_back(place.use);
  }
  if (!choice.by_rail.empty() || !choice.problem.ok() || host.devices.empty()) return choice;
  choice.problem =
      inactive.empty()
          ? Status::error(Code::kInvalidArgument,
                          fmt::format("HIPS_IB_HCA=\"{}\" is wrong: it lets no port pass; this host has {}",
                                      config.hca, seen))
          : Status::error(Code::kUnsupported, fmt::format("no active port: {}", inactive));
  return choice;
}

}  // namespace hips::doctor
