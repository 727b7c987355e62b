#pragma once

namespace hips {

/// Asks for the cache line of `address` as its only holder, ahead of a store into it: other cores that have
/// read it give it up meanwhile, and the store does not wait for that. A hint; a wrong one costs them a miss.
inline void prefetch_for_write(const void* address) {
#if defined(__x86_64__)
  // GCC makes a prefetch for reading of __builtin_prefetch(), as the oldest of these CPUs take this for
  // nothing.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}

}  // namespace hips
