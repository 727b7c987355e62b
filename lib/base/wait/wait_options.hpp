#pragma once

#include <cstdint>
#include <functional>

namespace hips {

/// How a blocking call waits. Times are those of the waiter's clock.
struct WaitOptions {
  std::int64_t deadline_ns = INT64_MAX;  ///< deadline of the user; none by default
  std::int64_t tick_ns = 250'000'000;    ///< on_tick is called about this often while waiting
  std::function<void(std::int64_t waited_ns)> on_tick{};
};

}  // namespace hips
