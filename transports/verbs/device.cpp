#include "transports/verbs/device.hpp"

#include <dirent.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "lib/base/config/device_filter.hpp"

namespace hips::verbs {
namespace {

constexpr const char* kDeviceFolder = "/sys/class/infiniband";

std::string no_device_message() {
  return "verbs: this node has no RDMA device: \"ibv_devices\" lists none; load the NIC's driver, or make a "
         "software one with \"modprobe rdma_rxe; rdma link add rxe0 type rxe netdev IF\"";
}

/// Number of lanes of an IBV_PORT_WIDTH code.
double lanes_of(std::uint8_t width) {
  switch (width) {
    case 1:
      return 1;
    case 2:
      return 4;
    case 4:
      return 8;
    case 8:
      return 12;
    case 16:
      return 2;
    default:
      return 1;
  }
}

/// Usable Gbit/s of one lane for an IBV_SPEED code.
double lane_gbits(std::uint8_t speed) {
  switch (speed) {
    case 1:
      return 2;
    case 2:
      return 4;
    case 4:
      return 8;
    case 8:
      return 9.7;
    case 16:
      return 13.6;
    case 32:
      return 25;
    case 64:
      return 50;
    case 128:
      return 100;
    default:
      return 2;
  }
}

}  // namespace

bool any_device() {
  DIR* folder = opendir(kDeviceFolder);
  if (folder == nullptr) return false;
  bool found = false;
  while (const dirent* entry = readdir(folder)) found = found || entry->d_name[0] != '.';
  (void)closedir(folder);
  return found;
}

Result<std::vector<ContextHandle>> open_devices() {
  if (!any_device()) return fail(Code::kUnsupported, no_device_message(), Scope::kProcess);
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  std::vector<ContextHandle> contexts;
  std::string refused;
  for (int i = 0; list != nullptr && i < count; ++i) {
    if (ibv_context* context = ibv_open_device(list[i]); context != nullptr) {
      contexts.emplace_back(context);
    } else {
      refused += fmt::format("{}{}: {}", refused.empty() ? "" : ", ", ibv_get_device_name(list[i]),
                             std::strerror(errno));
    }
  }
  if (list != nullptr) ibv_free_device_list(list);
  if (contexts.empty()) {
    return fail(
        Code::kUnsupported,
        refused.empty()
            ? std::string("verbs: the kernel has RDMA devices, but libibverbs finds no driver for them; "
                          "load the module ib_uverbs and install the package ibverbs-providers")
            : fmt::format("verbs: no RDMA device can be opened ({}); see the permissions of "
                          "/dev/infiniband/uverbs*",
                          refused),
        Scope::kProcess);
  }
  std::sort(contexts.begin(), contexts.end(), [](const ContextHandle& a, const ContextHandle& b) {
    return std::strcmp(ibv_get_device_name(a->device), ibv_get_device_name(b->device)) < 0;
  });
  return contexts;
}

std::string port_name(ibv_context& context, std::uint8_t port) {
  return fmt::format("{}:{}", ibv_get_device_name(context.device), port);
}

std::vector<Gid> gid_table(ibv_context& context, std::uint8_t port, bool iwarp) {
  std::array<ibv_gid_entry, 256> entries;
  const ssize_t count = ibv_query_gid_table(&context, entries.data(), entries.size(), 0);
  std::vector<Gid> table;
  for (ssize_t i = 0; i < count; ++i) {
    const ibv_gid_entry& entry = entries[static_cast<std::size_t>(i)];
    if (entry.port_num != port) continue;
    Gid gid;
    gid.index = entry.gid_index;
    gid.kind = iwarp                                    ? Gid::Kind::kIwarp
               : entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? Gid::Kind::kRoceV2
               : entry.gid_type == IBV_GID_TYPE_ROCE_V1 ? Gid::Kind::kRoceV1
                                                        : Gid::Kind::kInfiniBand;
    std::memcpy(gid.bytes.data(), entry.gid.raw, gid.bytes.size());
    if (!gid.is_zero()) table.push_back(gid);
  }
  return table;
}

Result<PortFacts> query_port(ibv_context& context, std::uint8_t port) {
  ibv_device_attr device{};
  ibv_port_attr attributes{};
  int error = ibv_query_device(&context, &device);
  if (error == 0) error = ibv_query_port(&context, port, &attributes);
  if (error != 0) {
    Status status = Status::error(
        Code::kSystem,
        fmt::format("verbs: {} does not answer: {}", port_name(context, port), std::strerror(error)),
        Scope::kProcess);
    status.sys_errno = error;
    return fail(std::move(status));
  }
  const auto positive = [](int value) { return static_cast<std::uint32_t>(std::max(0, value)); };
  PortFacts facts;
  facts.limits = {.max_queue_pairs = positive(device.max_qp),
                  .max_send_requests = positive(device.max_qp_wr),
                  .max_completions = positive(device.max_cqe),
                  .max_pieces = positive(device.max_sge),
                  .max_shared_receives = device.max_srq > 0 ? positive(device.max_srq_wr) : 0,
                  .max_reads = positive(std::min(device.max_qp_rd_atom, device.max_qp_init_rd_atom)),
                  .max_message_bytes = attributes.max_msg_sz};
  facts.link_layer = attributes.link_layer;
  facts.active_mtu = static_cast<std::uint8_t>(attributes.active_mtu);
  facts.lid = attributes.lid;
  facts.active = attributes.state == IBV_PORT_ACTIVE;
  facts.iwarp = context.device->transport_type == IBV_TRANSPORT_IWARP;
  // The kernel's rdma_rxe has this vendor id. It treats a retry count of 7 as infinite and would never report a
  // dead peer.
  facts.endless_retry = device.vendor_id == 0xffffff && !facts.iwarp;
  facts.bandwidth_bytes_per_s =
      lane_gbits(attributes.active_speed) * lanes_of(attributes.active_width) * 1e9 / 8;
  facts.state = ibv_port_state_str(attributes.state);
  return facts;
}

Result<std::vector<PortChoice>> find_ports(const VerbsOptions& options) {
  DeviceFilter filter;
  if (!options.hca.empty()) {
    auto parsed = DeviceFilter::parse(options.hca, kHcaSyntax);
    if (!parsed) return fail(std::move(parsed).error());
    filter = *std::move(parsed);
  }
  auto contexts = open_devices();
  if (!contexts) return fail(std::move(contexts).error());

  struct Found {
    std::int32_t place;
    PortChoice choice;
  };
  std::vector<Found> found;
  std::string seen, inactive;
  for (const ContextHandle& context : *contexts) {
    ibv_device_attr device{};
    if (ibv_query_device(context.get(), &device) != 0) continue;
    for (std::uint8_t port = 1; port <= device.phys_port_cnt && port != 0; ++port) {
      const std::string name = port_name(*context, port);
      auto facts = query_port(*context, port);
      if (!facts) return fail(std::move(facts).error());
      seen += fmt::format("{}{} ({})", seen.empty() ? "" : ", ", name, facts->state);
      const auto places = filter.positions_of(ibv_get_device_name(context->device), port);
      if (places.empty()) continue;
      if (!facts->active) {
        inactive += fmt::format("{}{} is {}", inactive.empty() ? "" : ", ", name, facts->state);
        continue;
      }
      auto gid = choose_gid(gid_table(*context, port, facts->iwarp), options.gid_index, name);
      if (!gid) return fail(std::move(gid).error());
      PortChoice choice{.device = ibv_get_device_name(context->device),
                        .port = port,
                        .gid_index = gid->gid.index,
                        .iwarp = facts->iwarp,
                        .name = name,
                        .address = gid->gid.address(),
                        .subnet_prefix = gid->gid.subnet_prefix(),
                        .bandwidth_bytes_per_s = facts->bandwidth_bytes_per_s,
                        .description = {}};
      choice.description = fmt::format(
          "{}, {} ({}), MTU {}, {}", name, gid->gid.to_string(), gid->reason, mtu_bytes(facts->active_mtu),
          filter.empty() ? std::string("found") : fmt::format("HIPS_IB_HCA={}", options.hca));
      for (const std::int32_t place : places) found.push_back({place, choice});
    }
  }
  if (found.empty()) {
    if (!inactive.empty()) {
      return fail(
          Code::kUnsupported,
          fmt::format("verbs: no active port: {}; bring its network interface up (\"ip link set IF up\") "
                      "and look at its cable",
                      inactive),
          Scope::kProcess);
    }
    return fail(Code::kInvalidArgument,
                fmt::format("HIPS_IB_HCA=\"{}\" matches no port; this node has {}", options.hca, seen),
                Scope::kProcess);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.place < b.place; });
  std::vector<PortChoice> choices;
  for (Found& one : found) choices.push_back(std::move(one.choice));
  return choices;
}

}  // namespace hips::verbs
