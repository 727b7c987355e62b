#include "lib/mpi/fortran.hpp"

#include "lib/mpi/host_requests.hpp"
#include "lib/mpi/requests.hpp"

namespace hips::mpi {

const void* buffer_to_c(const void* buffer) {
  switch (fortran_sentinel(buffer)) {
    case Sentinel::kInPlace:
      return MPI_IN_PLACE;
    case Sentinel::kBottom:
      return MPI_BOTTOM;
    case Sentinel::kStatusIgnore:
    case Sentinel::kNone:
      break;
  }
  return buffer;
}

#ifdef HIPS_MPI_ABI_OPENMPI
MPI_Request request_to_c(MPI_Fint request) {
  return Requests::is_ours_in_fortran(request) ? Requests::from_fortran(request)
                                               : host_requests().Request_f2c(request);
}

MPI_Fint request_to_fortran(MPI_Request request) {
  return Requests::is_ours(request) ? Requests::to_fortran(request) : host_requests().Request_c2f(request);
}
#else
MPI_Request request_to_c(MPI_Fint request) {
  return request;
}

MPI_Fint request_to_fortran(MPI_Request request) {
  return request;
}
#endif

MPI_Fint logical_to_fortran(int flag) {
  // Asked of a function whose answer is known.
  static const MPI_Fint true_of_host = [] {
    MPI_Fint value = 1, error = 0;
    if (auto* const initialized = fortran_function_of_host<void(MPI_Fint*, MPI_Fint*)>("pmpi_initialized_"))
      initialized(&value, &error);
    return value;
  }();
  return flag ? true_of_host : 0;
}

}  // namespace hips::mpi
