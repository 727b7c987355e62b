#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <netinet/in.h>

#include "lib/base/result.hpp"
#include "transports/verbs/gid.hpp"
#include "transports/verbs/handles.hpp"

namespace hips::verbs {

/// What the side that connects says to the one that listens.
struct CmGreeting {
  static constexpr std::uint32_t kMagic = 0x6d633170;
  std::uint32_t magic = kMagic;
  std::uint32_t pair = 0;   ///< which of the endpoint's queue pairs
  std::uint64_t token = 0;  ///< of the endpoint that is meant, from its address
};

/// A listener of librdmacm on one port, and the connections that come and go through it. Never blocks.
///
/// Threads  one at a time.
class CmPort {
 public:
  struct Event {
    rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_RESOLVED;
    rdma_cm_id* id = nullptr;  ///< a new one for CONNECT_REQUEST, whose owner is the caller from then on
    int status = 0;
    CmGreeting greeting;  ///< of CONNECT_REQUEST; magic 0 where there was none
  };

  /// Listens at an address of the port, that of `preferred` where it is one.
  ///
  /// Errors   kUnsupported: no address of this host belongs to the port. kSystem: no /dev/infiniband/rdma_cm.
  static Result<CmPort> create(const std::string& device, std::uint8_t port, const Gid& preferred,
                               const std::string& name);

  /// The device as librdmacm opened it: what is to meet its connections has to be made from this.
  [[nodiscard]] ibv_context* context() const { return listener_->verbs; }
  [[nodiscard]] const sockaddr_in6& address() const { return address_; }  ///< or a sockaddr_in in its place
  [[nodiscard]] int fd() const { return channel_->fd; }
  /// Starts to look for the way to `to`; ADDR_RESOLVED or an error follows.
  Result<CmIdHandle> resolve(const sockaddr_in6& to, std::uint8_t traffic_class, std::uint8_t timeout,
                             const std::string& name);
  /// The next event, if one is there.
  bool next(Event& event);

 private:
  CmChannelHandle channel_;
  CmIdHandle listener_;
  sockaddr_in6 address_{};
};

}  // namespace hips::verbs
