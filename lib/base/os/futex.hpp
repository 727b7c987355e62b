#pragma once

#include <atomic>
#include <cstdint>

namespace hips {

/// Sleeps while `word` is `expected`, for at most `timeout_ns`. It may return early.
///
/// Threads  any; `word` may be in memory that processes share.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns);

/// Wakes all threads that sleep on `word`, in any process.
void futex_wake_all(const std::atomic<std::uint32_t>& word);

}  // namespace hips
