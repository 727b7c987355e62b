#include "lib/mpi/memory.hpp"

#include <cstddef>
#include <exception>

#include "lib/base/memory_registry.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/mpi/error.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/process.hpp"

namespace hips::mpi {

void* alloc_mem(MPI_Aint bytes) {
  if (bytes < static_cast<MPI_Aint>(MemoryRegistry::kLeastShared) || Process::active() == nullptr)
    return nullptr;
  // Nothing may be thrown into a program of C or Fortran; the host has its own way to say that memory is
  // short.
  try {
    const auto memory = MemoryRegistry::process().allocate(static_cast<std::size_t>(bytes));
    return memory ? *memory : nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
}

bool is_ours(const void* memory) {
  // A thread of the parent may have held any lock when the child was made.
  if (comm::in_forked_child()) return true;
  return MemoryRegistry::process().has_allocated(static_cast<const std::byte*>(memory));
}

int free_mem(void* memory) {
  // The segments and the registrations are the parent's.
  if (comm::in_forked_child()) return MPI_SUCCESS;
  const Status status = MemoryRegistry::process().free(static_cast<std::byte*>(memory));
  return status.ok() ? MPI_SUCCESS : raise_code(host()->world, MPI_ERR_BASE);
}

}  // namespace hips::mpi
