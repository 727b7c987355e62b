#pragma once

#include <cstddef>
#include <vector>

#include "transports/transport.hpp"

namespace hips::exec {

/// Registers the output of one operation, so that peers can write final values into it. The registration ends
/// with the operation. It does not matter whether the user has registered that memory.
///
/// Only for transports with Limits::registers_freely. On a device that pins pages, a registration takes
/// longer than a copy out of staging; there the user registers memory explicitly (UserRegions).
///
/// Owns     the registrations; call end() before the user gets the memory back.
/// Threads  the progress owner.
class TemporaryRegistration {
 public:
  /// The remote region of the memory; null if the transport refuses to register it. Pass the same memory
  /// until end().
  const transport::RemoteRegion* on(transport::Transport& transport, std::byte* address, std::size_t bytes);
  /// Deregisters the memory: peers no longer write into it, and late writes are dropped.
  void end();

 private:
  struct Entry {
    transport::Transport* transport = nullptr;
    transport::Region region;
  };
  std::vector<Entry> registered_;  ///< at most one for each transport
};

}  // namespace hips::exec
