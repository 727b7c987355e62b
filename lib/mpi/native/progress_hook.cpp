#include "lib/mpi/native/progress_hook.hpp"

#include <atomic>

#include "lib/comm/calls/outstanding_calls.hpp"
#include "lib/mpi/native/abi.hpp"
#include "lib/mpi/process/mpi_process.hpp"
#include "lib/mpi/requests/request_table.hpp"

namespace hips::mpi {
namespace {

std::atomic<bool> g_is_hooked{false};

/// Runs inside native MPI, where no call of MPI and no wait is allowed. Native MPI takes the number of
/// events; 0 lets it yield.
int make_progress() {
  if (RequestTable::any() && MpiProcess::active() != nullptr) comm::OutstandingCalls::process().advance_all();
  return 0;
}

const ProgressHook& progress_hook() {
  static const ProgressHook functions = look_up_progress_hook();
  return functions;
}

}  // namespace

bool native_has_progress_hook() {
  return progress_hook().add != nullptr && progress_hook().remove != nullptr;
}

void add_progress_hook() {
  if (g_is_hooked.load(std::memory_order_acquire) || !native_has_progress_hook()) return;
  static const bool is_hooked = progress_hook().add(make_progress) == 0;
  if (is_hooked) g_is_hooked.store(true, std::memory_order_release);
}

void remove_progress_hook() {
  if (g_is_hooked.exchange(false)) progress_hook().remove(make_progress);
}

}  // namespace hips::mpi
