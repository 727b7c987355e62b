#include "transports/verbs/cm.hpp"

#include <fcntl.h>
#include <ifaddrs.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "transports/verbs/trouble.hpp"

namespace hips::verbs {
namespace {

constexpr int kResolveMs = 2000;

bool same_address(const sockaddr& address, const Gid& gid) {
  if (address.sa_family == AF_INET) {
    return gid.is_ipv4() && std::memcmp(&reinterpret_cast<const sockaddr_in&>(address).sin_addr,
                                        gid.bytes.data() + 12, 4) == 0;
  }
  return std::memcmp(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, gid.bytes.data(), 16) == 0;
}

/// Addresses of this node: the preferred one first, then IPv4 before IPv6.
std::vector<sockaddr_in6> own_addresses(const Gid& preferred) {
  std::vector<sockaddr_in6> wanted, ipv4, ipv6;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    sockaddr_in6 address{};
    std::memcpy(&address, entry->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    (same_address(*entry->ifa_addr, preferred) ? wanted : family == AF_INET ? ipv4 : ipv6).push_back(address);
  }
  freeifaddrs(list);
  wanted.insert(wanted.end(), ipv4.begin(), ipv4.end());
  wanted.insert(wanted.end(), ipv6.begin(), ipv6.end());
  return wanted;
}

sockaddr* as_sockaddr(sockaddr_in6& address) {
  return reinterpret_cast<sockaddr*>(&address);
}

}  // namespace

Result<CmPort> CmPort::create(const std::string& device, std::uint8_t port, const Gid& preferred,
                              const std::string& name) {
  CmPort cm;
  cm.channel_.reset(rdma_create_event_channel());
  if (cm.channel_ == nullptr)
    return fail(call_error(name, "opening /dev/infiniband/rdma_cm (module rdma_ucm)", errno));
  if (fcntl(cm.channel_->fd, F_SETFL, fcntl(cm.channel_->fd, F_GETFL) | O_NONBLOCK) != 0)
    return fail(call_error(name, "fcntl", errno));
  for (sockaddr_in6 address : own_addresses(preferred)) {
    rdma_cm_id* id = nullptr;
    if (rdma_create_id(cm.channel_.get(), &id, nullptr, RDMA_PS_TCP) != 0)
      return fail(call_error(name, "rdma_create_id", errno));
    CmIdHandle owned(id);
    if (rdma_bind_addr(id, as_sockaddr(address)) != 0 || id->verbs == nullptr || id->port_num != port ||
        device != ibv_get_device_name(id->verbs->device)) {
      continue;
    }
    if (rdma_listen(id, 1024) != 0) return fail(call_error(name, "rdma_listen", errno));
    std::memcpy(&cm.address_, rdma_get_local_addr(id),
                rdma_get_local_addr(id)->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    cm.listener_ = std::move(owned);
    return cm;
  }
  return fail(
      Code::kUnsupported,
      fmt::format("verbs: no IP address of this node belongs to {}, and rdma_cm (HIPS_VERBS_CM, iWARP) needs "
                  "one: \"ip addr add 10.0.0.1/24 dev IF\" for its interface",
                  name),
      Scope::kProcess);
}

Result<CmIdHandle> CmPort::resolve(const sockaddr_in6& to, std::uint8_t traffic_class, std::uint8_t timeout,
                                   const std::string& name) {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP) != 0)
    return fail(call_error(name, "rdma_create_id", errno));
  CmIdHandle owned(id);
  // Kernels or devices without these options keep their defaults.
  (void)rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &traffic_class, sizeof traffic_class);
  (void)rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout);
  sockaddr_in6 destination = to;
  sockaddr_in6 source = address_;
  if (source.sin6_family == AF_INET) {
    reinterpret_cast<sockaddr_in&>(source).sin_port = 0;
  } else {
    source.sin6_port = 0;
  }
  if (rdma_resolve_addr(id, as_sockaddr(source), as_sockaddr(destination), kResolveMs) != 0)
    return fail(call_error(name, "rdma_resolve_addr", errno));
  return owned;
}

bool CmPort::next(Event& event) {
  rdma_cm_event* got = nullptr;
  if (rdma_get_cm_event(channel_.get(), &got) != 0) return false;
  event = {.type = got->event, .id = got->id, .status = got->status, .greeting = {.magic = 0}};
  if (got->event == RDMA_CM_EVENT_CONNECT_REQUEST && got->param.conn.private_data != nullptr &&
      got->param.conn.private_data_len >= sizeof(CmGreeting)) {
    std::memcpy(&event.greeting, got->param.conn.private_data, sizeof(CmGreeting));
  }
  (void)rdma_ack_cm_event(got);
  return true;
}

}  // namespace hips::verbs
