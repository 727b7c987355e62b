#pragma once

#include <cstdint>
#include <string>

#include "lib/base/result.hpp"

namespace hips::verbs {

/// Limits of a device, from ibv_query_device.
struct DeviceLimits {
  std::uint32_t max_queue_pairs = 0;
  std::uint32_t max_send_requests = 0;    ///< of one queue pair
  std::uint32_t max_completions = 0;      ///< of one completion queue
  std::uint32_t max_pieces = 0;           ///< scatter/gather entries of one request
  std::uint32_t max_shared_receives = 0;  ///< of one shared receive queue; 0: unsupported
  std::uint32_t max_reads = 0;            ///< outstanding RDMA reads of one queue pair
  std::uint64_t max_message_bytes = 0;    ///< of one work request
};

/// Sizes of the queues, chosen so that none can overrun.
///
/// Each notification uses a receive at the peer, so a sender may have at most `window` notifications without
/// credit. When half of the window is used, the receiver posts the receives anew and returns credits.
/// Two credit messages, a hello and a disconnect message may be outstanding besides; `kControl` receives and
/// send slots are reserved for them.
///
///     receives posted  =  window + kControl          at least as many as messages can arrive
///     send queue       =  requests + kControl        at most as many as fit
///     completion queue =  sum over its queue pairs   of everything that can complete
struct Budget {
  static constexpr std::uint32_t kControl = 6;

  std::uint32_t send_depth = 0;       ///< work requests, kControl included
  std::uint32_t window = 0;           ///< outstanding notifications of a queue pair with its own receives
  std::uint32_t shared_window = 0;    ///< the same with shared receives
  std::uint32_t own_receives = 0;     ///< queue pairs with their own receives; later ones share
  std::uint32_t shared_receives = 0;  ///< size of the shared receive queue; 0: not used
  std::uint32_t max_queue_pairs = 0;  ///< of this transport: limit of the device or HIPS_VERBS_MAX_QP
  std::uint32_t completions = 0;      ///< size of one completion queue
  std::uint32_t pairs_per_queue = 0;  ///< queue pairs that share a completion queue
  std::uint32_t pieces = 0;           ///< scatter/gather entries of one request, 1 or 2

  /// Completions that one queue pair can raise between two polls.
  [[nodiscard]] std::uint32_t completions_of_one() const { return send_depth + window + kControl; }

  /// Requests that a send queue of `depth` accepts while it holds `used` work requests. `used` includes control
  /// messages, so it may exceed the limit for requests.
  static constexpr std::uint32_t room(std::uint32_t depth, std::uint32_t used) {
    const std::uint32_t most = depth - kControl;
    return used < most ? most - used : 0;
  }

  /// Fits the queues to the limits of the device. With `max_qp` 0 the device limits the queue pairs.
  ///
  /// Errors   kUnsupported: the device cannot serve one queue pair; names the limit.
  static Result<Budget> of(const DeviceLimits& device, std::uint32_t max_qp, const std::string& device_name);
};

}  // namespace hips::verbs
