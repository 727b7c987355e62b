#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <netinet/in.h>

#include "lib/base/result.hpp"
#include "transports/verbs/gid.hpp"
#include "transports/verbs/handles.hpp"

namespace hips::verbs {

/// Private data that the connecting side sends to the listening side.
struct CmGreeting {
  static constexpr std::uint32_t kMagic = 0x6d633170;
  std::uint32_t magic = kMagic;
  std::uint32_t pair = 0;   ///< index among the endpoint's queue pairs
  std::uint64_t token = 0;  ///< of the endpoint, from its address
};

/// A librdmacm listener on one port, and the connections made and accepted through it. Never blocks.
///
/// Threads  one at a time.
class CmPort {
 public:
  struct Event {
    rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_RESOLVED;
    rdma_cm_id* id = nullptr;  ///< for CONNECT_REQUEST a new one, which the caller owns
    int status = 0;
    CmGreeting greeting;  ///< of CONNECT_REQUEST; magic 0 if there was none
  };

  /// Listens at an address of the port, preferably that of `preferred`.
  ///
  /// Errors   kUnsupported: no address of this node belongs to the port. kSystem: no /dev/infiniband/rdma_cm.
  static Result<CmPort> create(const std::string& device, std::uint8_t port, const Gid& preferred,
                               const std::string& name);

  /// The device as librdmacm opened it. Queue pairs for its connections must be made from this context.
  [[nodiscard]] ibv_context* context() const { return listener_->verbs; }
  [[nodiscard]] const sockaddr_in6& address() const { return address_; }  ///< or a sockaddr_in in its place
  [[nodiscard]] int fd() const { return channel_->fd; }
  /// Starts to resolve the address `to`; an ADDR_RESOLVED or error event follows.
  Result<CmIdHandle> resolve(const sockaddr_in6& to, std::uint8_t traffic_class, std::uint8_t timeout,
                             const std::string& name);
  /// Takes the next event; false if there is none.
  bool next(Event& event);

 private:
  CmChannelHandle channel_;
  CmIdHandle listener_;
  sockaddr_in6 address_{};
};

}  // namespace hips::verbs
