#include "tools/doctor/rails.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lib/base/config/device_filter.hpp"

namespace hips::doctor {
namespace {

/// A match of a port in HIPS_IB_HCA.
struct FilterMatch {
  std::int32_t place;  ///< position in the list
  std::size_t use;     ///< index of the port
};

/// Fills in the address of a port, or why it is not used.
Status use_port(const Device& device, const DevicePort& port, const RdmaConfig& config, PortUse& use) {
  if (!device.problem.empty()) {
    use.why_not = "it cannot be opened";
    return Status::success();
  }
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

RailChoice choose_rails(const NodeFacts& node, const RdmaConfig& config) {
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
  std::vector<FilterMatch> matches;
  std::string seen, inactive, unopened;
  for (const Device& device : node.devices) {
    for (const DevicePort& port : device.ports) {
      PortUse use{.device = device.name,
                  .port = port.number,
                  .name = fmt::format("{}:{}", device.name, port.number),
                  .rails = {},
                  .gid = {},
                  .why_not = {}};
      seen += fmt::format("{}{}", seen.empty() ? "" : ", ", use.name);
      const auto found = filter.positions_of(device.name, static_cast<std::uint8_t>(port.number));
      if (found.empty()) {
        use.why_not = fmt::format("HIPS_IB_HCA={} excludes it", config.hca);
      } else {
        if (unopened.empty()) unopened = device.problem;
        Status status = use_port(device, port, config, use);
        if (!status.ok() && choice.problem.ok()) choice.problem = std::move(status);
        if (!port.active())
          inactive += fmt::format("{}{} is {}", inactive.empty() ? "" : ", ", use.name, port.state);
        if (use.gid)
          for (const std::int32_t place : found) matches.push_back({place, choice.ports.size()});
      }
      choice.ports.push_back(std::move(use));
    }
  }
  std::stable_sort(matches.begin(), matches.end(),
                   [](const FilterMatch& a, const FilterMatch& b) { return a.place < b.place; });
  for (const FilterMatch& match : matches) {
    choice.ports[match.use].rails.push_back(static_cast<Rail>(choice.by_rail.size()));
    choice.by_rail.push_back(match.use);
  }
  if (!choice.by_rail.empty() || !choice.problem.ok() || node.devices.empty()) return choice;
  choice.problem = !unopened.empty() ? Status::error(Code::kUnsupported, unopened)
                   : inactive.empty()
                       ? Status::error(Code::kInvalidArgument,
                                       fmt::format("HIPS_IB_HCA=\"{}\" matches no port; this node has {}",
                                                   config.hca, seen))
                       : Status::error(Code::kUnsupported, fmt::format("no active port: {}", inactive));
  return choice;
}

}  // namespace hips::doctor
