#include "lib/mpi/host_progress.hpp"

#include <atomic>

#include "lib/comm/in_flight.hpp"
#include "lib/mpi/abi.hpp"
#include "lib/mpi/process.hpp"
#include "lib/mpi/requests.hpp"

namespace hips::mpi {
namespace {

std::atomic<bool> g_is_hooked{false};

/// From inside the host: no call of MPI is allowed here, and none that waits. The host takes the number of
/// events; 0 lets it yield.
int move_calls() {
  if (Requests::exist() && Process::active() != nullptr) comm::InFlight::process().advance_all();
  return 0;
}

const HostProgress& host_progress() {
  static const HostProgress functions = look_up_host_progress();
  return functions;
}

}  // namespace

bool host_has_progress_hook() {
  return host_progress().add != nullptr && host_progress().remove != nullptr;
}

void hook_host_progress() {
  if (g_is_hooked.load(std::memory_order_acquire) || !host_has_progress_hook()) return;
  static const bool is_hooked = host_progress().add(move_calls) == 0;
  if (is_hooked) g_is_hooked.store(true, std::memory_order_release);
}

void unhook_host_progress() {
  if (g_is_hooked.exchange(false)) host_progress().remove(move_calls);
}

}  // namespace hips::mpi
