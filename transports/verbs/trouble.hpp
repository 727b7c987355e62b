#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <string>

#include <hips/status.hpp>

namespace hips::verbs {

/// Who an endpoint talks to, for people.
struct PeerName {
  std::string host;     ///< "node1"
  std::string port;     ///< "rxe0:1"
  std::string address;  ///< "10.0.0.2"
  std::int32_t pid = 0;
  /// "pid 77 on node1 (rxe0:1, 10.0.0.2)"
  [[nodiscard]] std::string to_string() const;
};

/// What the words of errors need to know of the settings.
struct RetrySettings {
  unsigned timeout = 0, retry_count = 0;
};

/// A failed work request: port, peer, the device's words, and what to do.
Status completion_error(const std::string& port, const PeerName& peer, ibv_wc_status status,
                        std::uint32_t vendor_error, const RetrySettings& retry);

/// A refused call of the device's library, `error` an errno: port, call, the system's words, what to do.
Status call_error(const std::string& port, const std::string& call, int error);

/// register_memory() refused: names the limit that is in the way and the line that raises it.
Status registration_error(const std::string& port, std::size_t bytes, int error);

}  // namespace hips::verbs
