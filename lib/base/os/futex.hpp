#pragma once

#include <atomic>
#include <cstdint>

namespace hips {

/// Sleeps while `word` is `expected`, at most `timeout_ns`; returns early for no reason at times.
///
/// Threads  any; `word` may lie in memory that processes share.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns);

/// Wakes everybody who sleeps on `word`, in whatever process.
void futex_wake_all(const std::atomic<std::uint32_t>& word);

}  // namespace hips
