#include "lib/comm/fork_guard.hpp"

#include <pthread.h>

#include <atomic>
#include <mutex>

namespace hips::comm {
namespace detail {

std::atomic<bool> forked{false};

}  // namespace detail

void guard_against_fork() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, [] { detail::forked.store(true, std::memory_order_relaxed); });
  });
}

Status check_not_forked() {
  if (!in_forked_child()) return Status::success();
  return Status::error(
      Code::kUnsupported,
      "this process was forked from one that uses HiPS, and only the parent may call HiPS; to use HiPS in "
      "the child, call exec after fork",
      Scope::kProcess);
}

}  // namespace hips::comm
