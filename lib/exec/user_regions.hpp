#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "lib/base/memory_registry.hpp"
#include "transports/transport.hpp"

namespace hips::exec {

/// The registrations of a range of the user's memory with the devices of this process.
struct UserRegion {
  struct OnPort {
    enum class State : std::uint8_t { kUntried, kRegistered, kRefused };
    transport::Transport* transport = nullptr;
    State state = State::kUntried;
    transport::Region region;
    State grant_state = State::kUntried;
    transport::Region grant;  ///< a second registration for peers that write; it can be revoked alone
  };
  std::vector<OnPort> by_port;  ///< by EnginePort::index; ports that were added later are missing
  std::int64_t posts = 0;       ///< outstanding requests that read the memory
  bool forgotten = false;       ///< the user has deregistered it; it ends with the last outstanding request

  /// The local registration on that port; -1 if there is none.
  [[nodiscard]] transport::MemoryId on(std::size_t port) const {
    return port < by_port.size() && by_port[port].state == OnPort::State::kRegistered
               ? by_port[port].region.local
               : -1;
  }
};

/// Registers the user's memory with the devices of an engine: each range with each transport that needs it,
/// when an operation first uses it there.
///
/// When the user deregisters a range, the devices deregister it immediately. There is one exception: requests
/// of a failed call may still read the range. Then the deregistration waits for these requests, so that they
/// do not break the connection.
///
/// Threads  the progress owner.
class UserRegions {
 public:
  UserRegions() = default;
  ~UserRegions();
  UserRegions(const UserRegions&) = delete;
  UserRegions& operator=(const UserRegions&) = delete;

  /// The entry of `range`; valid until forget(). Call register_on() to register it with a device.
  UserRegion& of(const UserRange& range);
  /// Registers the range with the transport of port `port`, once. If the transport refuses, data goes through
  /// staging. The first refusal is logged as a warning, with the transport's own message.
  void register_on(UserRegion& region, const UserRange& range, std::size_t port,
                   transport::Transport& transport);
  /// The remote region through which peers may write the range; null if the device refuses another
  /// registration.
  const transport::RemoteRegion* grant_on(UserRegion& region, const UserRange& range, std::size_t port,
                                          transport::Transport& transport);
  /// Revokes write access. A peer that still writes breaks its connection.
  static void revoke(UserRegion& region);
  void forget(std::uint64_t range);
  /// A request that read the memory has completed.
  void posted_done(UserRegion& region);
  [[nodiscard]] std::size_t num_regions() const { return regions_.size() + leaving_.size(); }

 private:
  static void deregister(UserRegion& region);
  void log_refusal(const UserRange& range, const Status& status);
  std::map<std::uint64_t, std::unique_ptr<UserRegion>> regions_;  ///< by UserRange::id
  std::vector<std::unique_ptr<UserRegion>> leaving_;
  bool warned_ = false;
};

}  // namespace hips::exec
