#pragma once

#include <atomic>

#include <hips/status.hpp>

namespace hips::comm {

/// A forked child shares its parent's memory segments and sockets but none of its threads: whatever it did
/// with them would damage the parent. From the first call on, children are told so.
///
/// Threads  any thread.
void guard_against_fork();

namespace detail {
extern std::atomic<bool> forked;
}

/// Is this process the child of one that had used HiPS? One load.
[[nodiscard]] inline bool in_forked_child() {
  return detail::forked.load(std::memory_order_relaxed);
}

/// kUnsupported in a forked child.
Status check_not_forked();

}  // namespace hips::comm
