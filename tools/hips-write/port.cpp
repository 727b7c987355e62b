#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tools/hips-write/link.hpp"
#include "transports/verbs/device.hpp"

namespace hips::write {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kFlagOfVariable = {{
    {"HIPS_IB_GID_INDEX=", "-x "},
    {"HIPS_IB_GID_INDEX", "-x"},
    {"HIPS_IB_HCA", "-d"},
    {"HIPS_IB_TIMEOUT", "-u"},
    {"HIPS_IB_RETRY_CNT", "--retry_count"},
    {"HIPS_IB_QPS_PER_CONNECTION", "-q"},
    {"HIPS_VERBS_CM", "-R"},
}};

}  // namespace

Status with_flag_names(Status status) {
  for (const auto& [variable, flag] : kFlagOfVariable) {
    for (std::size_t at = 0; (at = status.message.find(variable, at)) != std::string::npos; at += flag.size())
      status.message.replace(at, variable.size(), flag);
  }
  return status;
}

Result<verbs::PortChoice> choose_port(const WriteOptions& options) {
  auto contexts = verbs::open_devices();
  if (!contexts) return fail(std::move(contexts).error());
  std::string seen;
  std::string device = options.device;
  bool known = false;
  for (const auto& context : *contexts) {
    const std::string name = ibv_get_device_name(context->device);
    if (device.empty()) device = name;
    known = known || name == device;
    ibv_device_attr attributes{};
    if (ibv_query_device(context.get(), &attributes) != 0) continue;
    for (int port = 1; port <= attributes.phys_port_cnt; ++port)
      seen += fmt::format("{}-d {} -i {}", seen.empty() ? "" : ", ", name, port);
    if (name == device && options.ib_port > attributes.phys_port_cnt) {
      return fail(Code::kInvalidArgument,
                  fmt::format("invalid -i {}: {} has {} port{}", options.ib_port, name,
                              attributes.phys_port_cnt, attributes.phys_port_cnt == 1 ? "" : "s"));
    }
  }
  if (!known)
    return fail(Code::kInvalidArgument, fmt::format("invalid -d {}: this node has {}", device, seen));
  contexts->clear();
  verbs::VerbsOptions wanted;
  wanted.hca = fmt::format("={}:{}", device, options.ib_port);
  wanted.gid_index = options.gid_index;
  auto ports = verbs::find_ports(wanted);
  if (!ports) return fail(with_flag_names(std::move(ports).error()));
  return ports->front();
}

Result<PortDescription> describe_port(const WriteOptions& options, const verbs::PortChoice& port) {
  auto contexts = verbs::open_devices();
  if (!contexts) return fail(std::move(contexts).error());
  for (const auto& context : *contexts) {
    if (port.device != ibv_get_device_name(context->device)) continue;
    auto facts = verbs::query_port(*context, port.port);
    if (!facts) return fail(std::move(facts).error());
    const std::uint32_t active = verbs::mtu_bytes(facts->active_mtu);
    if (options.mtu > active) {
      return fail(Code::kInvalidArgument,
                  fmt::format("-m {} is too large; {} has an MTU of {}", options.mtu, port.name, active));
    }
    return PortDescription{.device = port.device,
                           .transport_type = facts->iwarp ? "IW" : "IB",
                           .link_type = facts->link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "IB",
                           .mtu = options.mtu == 0 ? active : options.mtu,
                           .gid_index = port.gid_index,
                           .inline_bytes = 0};
  }
  return fail(Code::kUnsupported, fmt::format("{} has disappeared", port.name));
}

}  // namespace hips::write
