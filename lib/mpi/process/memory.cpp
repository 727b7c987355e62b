#include "lib/mpi/process/memory.hpp"

#include <cstddef>
#include <exception>

#include "lib/base/memory_registry.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/mpi/communicators/error.hpp"
#include "lib/mpi/native/native_mpi.hpp"
#include "lib/mpi/process/mpi_process.hpp"

namespace hips::mpi {

std::optional<int> alloc_mem(MPI_Aint size, MPI_Info /*hint*/, void* pointer) {
  // A null `pointer` is passed on, so that native MPI reports the error.
  if (pointer == nullptr || size < static_cast<MPI_Aint>(MemoryRegistry::kLeastShared) ||
      MpiProcess::active() == nullptr)
    return std::nullopt;
  // Nothing may be thrown into a program of C or Fortran; native MPI reports a lack of memory in its own way.
  try {
    const auto memory = MemoryRegistry::process().allocate(static_cast<std::size_t>(size));
    if (!memory) return std::nullopt;
    *static_cast<void**>(pointer) = *memory;
    return MPI_SUCCESS;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<int> free_mem(void* base) {
  // In the child a lock may be held for ever by a thread of the parent, and segments and registrations are
  // the parent's.
  if (comm::in_forked_child()) return MPI_SUCCESS;
  auto* const memory = static_cast<std::byte*>(base);
  if (!MemoryRegistry::process().has_allocated(memory)) return std::nullopt;
  const Status status = MemoryRegistry::process().free(memory);
  return status.ok() ? MPI_SUCCESS : raise_code(native_mpi()->world, MPI_ERR_BASE);
}

}  // namespace hips::mpi
