#include "lib/mpi/host_requests.hpp"

#include "lib/mpi/host.hpp"

namespace hips::mpi::detail {

HostRequests look_up_host_requests() {
  HostRequests functions;
#define HIPS_MPI_LOOK_UP(name) \
  functions.name = reinterpret_cast<decltype(functions.name)>(host_function("PMPI_" #name));
  HIPS_MPI_REQUEST_FUNCTIONS(HIPS_MPI_LOOK_UP)
  HIPS_MPI_REQUEST_FORTRAN_FUNCTIONS(HIPS_MPI_LOOK_UP)
#undef HIPS_MPI_LOOK_UP
  return functions;
}

}  // namespace hips::mpi::detail
