#pragma once

namespace hips {

/// Requests the cache line of `address` in exclusive state, ahead of a store. Cores that have a copy
/// invalidate it in the meantime, so the store does not wait. It is a hint; a wrong hint costs these cores a
/// cache miss.
inline void prefetch_for_write(const void* address) {
#if defined(__x86_64__)
  // GCC turns __builtin_prefetch() into a read prefetch, because the oldest x86-64 CPUs have no write
  // prefetch (they ignore this instruction).
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}

}  // namespace hips
