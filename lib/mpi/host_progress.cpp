#include "lib/mpi/host_progress.hpp"

#include <atomic>

#include "lib/comm/in_flight.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/process.hpp"
#include "lib/mpi/requests.hpp"

namespace hips::mpi {
namespace {

using Callback = int();
using Register = int(Callback*);

std::atomic<bool> g_is_hooked{false};

/// From inside the host: no call of MPI is allowed here, and none that waits. The host takes the number of
/// events; 0 lets it yield.
int move_calls() {
  if (Requests::exist() && Process::active() != nullptr) comm::InFlight::process().advance_all();
  return 0;
}

Register* host_function(const char* name) {
  return reinterpret_cast<Register*>(host_symbol(name));
}

}  // namespace

bool hook_host_progress() {
  if (g_is_hooked.load(std::memory_order_acquire)) return true;
  static const bool is_possible = [] {
    Register* const hook = host_function("opal_progress_register");
    return hook != nullptr && host_function("opal_progress_unregister") != nullptr && hook(move_calls) == 0;
  }();
  if (is_possible) g_is_hooked.store(true, std::memory_order_release);
  return is_possible;
}

void unhook_host_progress() {
  if (g_is_hooked.exchange(false)) host_function("opal_progress_unregister")(move_calls);
}

}  // namespace hips::mpi
