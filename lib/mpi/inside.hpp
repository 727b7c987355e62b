#pragma once

#include "lib/mpi/preload_tls.hpp"

namespace hips::mpi {

/// Inside a call of this thread: whatever the host or a tool calls in turn belongs to it and is not counted.
inline constinit thread_local bool t_inside HIPS_TLS_OF_PRELOADED = false;

class Inside {
 public:
  Inside() { t_inside = true; }
  ~Inside() { t_inside = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

}  // namespace hips::mpi
