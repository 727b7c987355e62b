#include <mpi.h>

#include <hips/hips.h>

#include "lib/mpi/native/abi.hpp"
#include "lib/mpi/process/memory.hpp"
#include "lib/mpi/process/windows.hpp"
#include "lib/mpi/signatures.hpp"

extern "C" {

#define HIPS_MEMORY_FUNCTION(Name, name, NAME, ...)                                            \
  HIPS_API int MPI_##Name(HIPS_MAP(HIPS_PARAMETER_OF_C, __VA_ARGS__)) {                        \
    if (const auto code = hips::mpi::name(HIPS_MAP(HIPS_ARGUMENT, __VA_ARGS__))) return *code; \
    static constinit hips::mpi::NativeFunction<decltype(MPI_##Name)> next;                     \
    return next.get("PMPI_" #Name)(HIPS_MAP(HIPS_ARGUMENT, __VA_ARGS__));                      \
  }
#define HIPS_WINDOW_FUNCTION(Name, name, NAME, ...)                        \
  HIPS_API int MPI_##Name(HIPS_MAP(HIPS_PARAMETER_OF_C, __VA_ARGS__)) {    \
    hips::mpi::note_window();                                              \
    static constinit hips::mpi::NativeFunction<decltype(MPI_##Name)> next; \
    return next.get("PMPI_" #Name)(HIPS_MAP(HIPS_ARGUMENT, __VA_ARGS__));  \
  }
#include "lib/mpi/signatures.def"
}
