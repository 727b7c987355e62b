#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <string>

#include <hips/status.hpp>

namespace hips::verbs {

/// The peer of an endpoint, for messages.
struct PeerName {
  std::string host;     ///< "node1"
  std::string port;     ///< "rxe0:1"
  std::string address;  ///< "10.0.0.2"
  std::int32_t pid = 0;
  /// "pid 77 on node1 (rxe0:1, 10.0.0.2)"
  [[nodiscard]] std::string to_string() const;
};

/// Settings that error messages mention.
struct RetrySettings {
  unsigned timeout = 0, retry_count = 0;
};

/// A failed work request. The message names port, peer, the device's status and a remedy.
Status completion_error(const std::string& port, const PeerName& peer, ibv_wc_status status,
                        std::uint32_t vendor_error, const RetrySettings& retry);

/// A failed call of the device's library; `error` is an errno. The message names port, call, error and a remedy.
Status call_error(const std::string& port, const std::string& call, int error);

/// A failed registration. The message names the limit and how to raise it.
Status registration_error(const std::string& port, std::size_t bytes, int error);

}  // namespace hips::verbs
