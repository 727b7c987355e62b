#include "lib/mpi/process/memory.hpp"

#include <atomic>
#include <cstddef>
#include <exception>

#include "lib/base/memory_registry.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/mpi/communicators/error.hpp"
#include "lib/mpi/native/native_mpi.hpp"
#include "lib/mpi/process/mpi_process.hpp"

namespace hips::mpi {
namespace {

// Pages that processes share take 1.4 times as long to touch first as private ones, and longer to free. A program
// that allocates for its windows, again and again, and never gives such memory to a collective of HiPS should
// not pay for it.
constexpr std::size_t kFreedUnused = 4;  ///< that many in a row: native MPI allocates
constexpr unsigned kTriedAgain = 16;     ///< one of that many, since programs change

bool is_worth_sharing() {
  static constinit std::atomic<unsigned> left_to_native{0};
  return MemoryRegistry::process().num_freed_unused() < kFreedUnused ||
         left_to_native.fetch_add(1, std::memory_order_relaxed) % kTriedAgain == kTriedAgain - 1;
}

}  // namespace

std::optional<int> alloc_mem(MPI_Aint size, MPI_Info /*hint*/, void* pointer) {
  // A null `pointer` is passed on, so that native MPI reports the error.
  if (pointer == nullptr || size < static_cast<MPI_Aint>(MemoryRegistry::kLeastShared) ||
      MpiProcess::active() == nullptr || !is_worth_sharing())
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
