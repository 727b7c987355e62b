#pragma once

#include <cstddef>
#include <vector>

#include "transports/transport.hpp"

namespace hips::exec {

/// The output of a running operation, lent to peers that write final values there: registered for the
/// operation alone, whether the user has registered that memory or not.
///
/// Where Limits::registers_freely only. A device that pins pages takes longer for that than a copy out of
/// staging does; there the user says for which memory it is worth it (UserRegions).
///
/// Owns     registrations; end() before the memory is the user's again.
/// Threads  the progress owner.
class OutputLoan {
 public:
  /// The name by which peers may write it; null where the transport refuses. The same memory until end().
  const transport::RemoteRegion* on(transport::Transport& transport, std::byte* address, std::size_t bytes);
  /// From now on nobody writes into it; what still comes is dropped.
  void end();

 private:
  struct OnTransport {
    transport::Transport* transport = nullptr;
    transport::Region region;
  };
  std::vector<OnTransport> lent_;  ///< a few
};

}  // namespace hips::exec
