#pragma once

#include <atomic>

#include <hips/status.hpp>

namespace hips::comm {

/// Makes HiPS unusable in children that this process forks after the first call. A child shares the memory
/// segments and sockets of its parent but none of its threads, so using them would damage the parent.
///
/// Threads  any thread.
void guard_against_fork();

namespace detail {
extern std::atomic<bool> forked;
}

/// True if this process was forked from one that had used HiPS. Costs one load.
[[nodiscard]] inline bool in_forked_child() {
  return detail::forked.load(std::memory_order_relaxed);
}

/// Returns kUnsupported in a forked child.
Status check_not_forked();

}  // namespace hips::comm
