#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "lib/base/memory_registry.hpp"
#include "transports/transport.hpp"

namespace hips::exec {

/// A range of the user's memory, as the devices of this process know it.
struct UserRegion {
  struct OnPort {
    enum class State : std::uint8_t { kUntried, kRegistered, kRefused };
    transport::Transport* transport = nullptr;
    State state = State::kUntried;
    transport::Region region;
    State grant_state = State::kUntried;
    transport::Region grant;  ///< the same memory for peers to write, so that it can be taken from them alone
  };
  std::vector<OnPort> by_port;  ///< by Port::index; ports that came later are missing
  std::int64_t posts = 0;       ///< requests under way that read it
  bool forgotten = false;       ///< deregistered by the user: ends with the last of them

  /// Its name on that port; -1 where it has none.
  [[nodiscard]] transport::MemoryId on(std::size_t port) const {
    return port < by_port.size() && by_port[port].state == OnPort::State::kRegistered
               ? by_port[port].region.local
               : -1;
  }
};

/// What an engine has registered of the user's memory: each range with each transport that needs it, when an
/// operation first uses it there.
///
/// A range that the user deregisters is deregistered here at once, but for requests of a call that has
/// failed, which a NIC may still read for: then when they are done, so that none of them breaks its
/// connection.
///
/// Threads  the progress owner.
class UserRegions {
 public:
  UserRegions() = default;
  ~UserRegions();
  UserRegions(const UserRegions&) = delete;
  UserRegions& operator=(const UserRegions&) = delete;

  /// The region of `range`; it stays until forget(). register_on() tells its devices.
  UserRegion& of(const UserRange& range);
  /// Registers with the transport of port `port`, once. Where it refuses, the data goes through staging; the
  /// first refusal is a warning in the log, with the transport's own line.
  void register_on(UserRegion& region, const UserRange& range, std::size_t port,
                   transport::Transport& transport);
  /// The name by which peers may write the range; null where the device refuses one more registration.
  const transport::RemoteRegion* grant_on(UserRegion& region, const UserRange& range, std::size_t port,
                                          transport::Transport& transport);
  /// From now on no peer writes into it; who tries breaks the connection.
  static void revoke(UserRegion& region);
  void forget(std::uint64_t range);
  /// A request that read it is done.
  void posted_done(UserRegion& region);
  [[nodiscard]] std::size_t num_regions() const { return regions_.size() + leaving_.size(); }

 private:
  static void deregister(UserRegion& region);
  void say_refused(const UserRange& range, const Status& status);
  std::map<std::uint64_t, std::unique_ptr<UserRegion>> regions_;  ///< by UserRange::id
  std::vector<std::unique_ptr<UserRegion>> leaving_;
  bool warned_ = false;
};

}  // namespace hips::exec
