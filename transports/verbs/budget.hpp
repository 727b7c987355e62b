#pragma once

#include <cstdint>
#include <string>

#include "lib/base/result.hpp"

namespace hips::verbs {

/// What a device allows, as ibv_query_device said it.
struct DeviceLimits {
  std::uint32_t max_queue_pairs = 0;
  std::uint32_t max_send_requests = 0;    ///< of one queue pair
  std::uint32_t max_completions = 0;      ///< of one completion queue
  std::uint32_t max_pieces = 0;           ///< scatter/gather entries of one request
  std::uint32_t max_shared_receives = 0;  ///< of one shared receive queue; 0: it has none
  std::uint32_t max_reads = 0;            ///< RDMA reads in flight on one queue pair
  std::uint64_t max_message_bytes = 0;    ///< of one work request
};

/// How large the queues are, so that none can overrun.
///
/// Notifications take a receive at the peer, so a sender may have `window` of them unanswered and no more;
/// the receiver answers after it has posted the receives anew, when half of the window is used up. Two
/// answers, a greeting and a goodbye may be under way besides: `kControl` receives and send slots are theirs.
///
///     receives posted  =  window + kControl          never fewer than can come
///     send queue       =  requests + kControl        never more posted than fits
///     completion queue =  sum over its queue pairs   of all that can complete
struct Budget {
  static constexpr std::uint32_t kControl = 6;

  std::uint32_t send_depth = 0;       ///< work requests, kControl included
  std::uint32_t window = 0;           ///< notifications in flight on a queue pair with receives of its own
  std::uint32_t shared_window = 0;    ///< and on one that shares them
  std::uint32_t own_receives = 0;     ///< queue pairs with receives of their own; later ones share
  std::uint32_t shared_receives = 0;  ///< size of the shared receive queue; 0: there is none
  std::uint32_t max_queue_pairs = 0;  ///< of this transport, by the device or by HIPS_VERBS_MAX_QP
  std::uint32_t completions = 0;      ///< size of one completion queue
  std::uint32_t pairs_per_queue = 0;  ///< queue pairs that share a completion queue
  std::uint32_t pieces = 0;           ///< scatter/gather entries of one request, 1 or 2

  /// What one queue pair can raise between two polls.
  [[nodiscard]] std::uint32_t completions_of_one() const { return send_depth + window + kControl; }

  /// How many requests a send queue of `depth` takes that holds `used`. Answers are among these, so that a
  /// queue full of requests holds more than it would take of them.
  static constexpr std::uint32_t room(std::uint32_t depth, std::uint32_t used) {
    const std::uint32_t most = depth - kControl;
    return used < most ? most - used : 0;
  }

  /// Cuts the queues to what the device allows; `max_qp` 0 leaves the number of queue pairs to it.
  ///
  /// Errors   kUnsupported: the device is too small for one queue pair, with the limit that is.
  static Result<Budget> of(const DeviceLimits& device, std::uint32_t max_qp, const std::string& device_name);
};

}  // namespace hips::verbs
