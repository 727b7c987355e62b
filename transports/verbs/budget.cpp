#include "transports/verbs/budget.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hips::verbs {
namespace {

// Half a window can be sent while the credits for the other half return.
constexpr std::uint32_t kWindow = 128;
constexpr std::uint32_t kSharedWindow = 16;
constexpr std::uint32_t kSendDepth = 128 + Budget::kControl;
// With more queue pairs, receives of their own would fill the caches; further ones share a queue.
constexpr std::uint32_t kOwnReceives = 128;
constexpr std::uint32_t kSharedReceives = 32768;
constexpr std::uint32_t kPairsPerQueue = 16;
constexpr std::uint32_t kLeast = 4;  ///< requests and notifications that a queue pair must hold

}  // namespace

Result<Budget> Budget::of(const DeviceLimits& device, std::uint32_t max_qp, const std::string& device_name) {
  const auto too_small = [&](std::string_view what, std::uint64_t value, std::uint64_t needed) {
    return fail(Code::kUnsupported,
                fmt::format("verbs: {} supports {} {}; {} are needed; choose another device with HIPS_IB_HCA",
                            device_name, value, what, needed),
                Scope::kProcess);
  };
  Budget budget;
  budget.pieces = std::min<std::uint32_t>(2, device.max_pieces);
  if (budget.pieces == 0) return too_small("pieces in a request", device.max_pieces, 1);
  budget.send_depth = std::min(kSendDepth, device.max_send_requests);
  if (budget.send_depth < kControl + kLeast)
    return too_small("work requests in a queue", device.max_send_requests, kControl + kLeast);
  budget.window = std::min(kWindow, device.max_send_requests - kControl);
  // A completion queue must hold the completions of at least one queue pair.
  if (budget.completions_of_one() > device.max_completions) {
    if (device.max_completions < 2 * (kControl + kLeast))
      return too_small("completions in a queue", device.max_completions, 2 * (kControl + kLeast));
    budget.window = std::min(budget.window, device.max_completions / 2 - kControl);
    budget.send_depth = std::min(budget.send_depth, device.max_completions / 2);
  }
  budget.pairs_per_queue =
      std::clamp<std::uint32_t>(device.max_completions / budget.completions_of_one(), 1, kPairsPerQueue);
  budget.completions = budget.pairs_per_queue * budget.completions_of_one();
  budget.max_queue_pairs = max_qp == 0 ? device.max_queue_pairs : std::min(max_qp, device.max_queue_pairs);
  budget.own_receives = budget.max_queue_pairs;
  if (device.max_shared_receives >= kLeast + kControl && budget.max_queue_pairs > kOwnReceives) {
    budget.own_receives = kOwnReceives;
    budget.shared_window = std::min(kSharedWindow, budget.window);
    budget.shared_receives = std::min(kSharedReceives, device.max_shared_receives);
  }
  return budget;
}

}  // namespace hips::verbs
