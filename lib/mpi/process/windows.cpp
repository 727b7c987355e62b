#include "lib/mpi/process/windows.hpp"

namespace hips::mpi {
namespace {

constinit std::atomic<bool> s_has_windows{false};

}  // namespace

void note_window() {
  s_has_windows.store(true, std::memory_order_relaxed);
}

const std::atomic<bool>& has_windows() {
  return s_has_windows;
}

}  // namespace hips::mpi
