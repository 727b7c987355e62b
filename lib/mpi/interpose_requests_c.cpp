// The functions of C that make, start and complete requests. Those of the host's own requests cost a look at
// each handle where the program has any request of ours, and one load where it has none.

#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <hips/hips.h>

#include "lib/mpi/host.hpp"
#include "lib/mpi/host_requests.hpp"
#include "lib/mpi/iallreduce.hpp"
#include "lib/mpi/interpose_requests.hpp"
#include "lib/mpi/request_calls.hpp"
#include "lib/mpi/requests.hpp"

namespace mpi = hips::mpi;
using hips::mpi::host_requests;
using hips::mpi::Requests;

namespace {

bool is_ours(const MPI_Request* request) {
  return Requests::any_of(1, request);
}

}  // namespace

const hips::mpi::AllreduceInit& hips::mpi::allreduce_init_of_host() {
  static const AllreduceInit init = [] {
    if (auto* const function = of_host<AllreduceInit::HostFunction>("PMPI_Allreduce_init"))
      return AllreduceInit{"MPI_Allreduce_init", function,
                           of_host<AllreduceInit::LargeHostFunction>("PMPI_Allreduce_init_c")};
    return AllreduceInit{"MPIX_Allreduce_init", of_host<AllreduceInit::HostFunction>("PMPIX_Allreduce_init"),
                         nullptr};
  }();
  return init;
}

extern "C" {

HIPS_API int MPI_Iallreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                            MPI_Comm comm, MPI_Request* request) {
  return mpi::iallreduce({sendbuf, recvbuf, count, datatype, op, comm}, request);
}

#if MPI_VERSION >= 4
HIPS_API int MPI_Allreduce_init(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
                                MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return mpi::allreduce_init(mpi::allreduce_init_of_host(), {sendbuf, recvbuf, count, datatype, op, comm},
                             info, request);
}
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
HIPS_API int MPIX_Allreduce_init(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
                                 MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return mpi::allreduce_init(mpi::allreduce_init_of_host(), {sendbuf, recvbuf, count, datatype, op, comm},
                             info, request);
}
#endif

HIPS_API int MPI_Start(MPI_Request* request) {
  return is_ours(request) ? mpi::start(request) : host_requests().Start(request);
}

HIPS_API int MPI_Startall(int count, MPI_Request requests[]) {
  return Requests::any_of(count, requests) ? mpi::startall(count, requests)
                                           : host_requests().Startall(count, requests);
}

HIPS_API int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  return is_ours(request) ? mpi::wait(request, status) : host_requests().Wait(request, status);
}

HIPS_API int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  return Requests::any_of(count, requests) ? mpi::waitall(count, requests, statuses)
                                           : host_requests().Waitall(count, requests, statuses);
}

HIPS_API int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  return Requests::any_of(count, requests) ? mpi::waitany(count, requests, index, status)
                                           : host_requests().Waitany(count, requests, index, status);
}

HIPS_API int MPI_Waitsome(int incount, MPI_Request requests[], int* outcount, int indices[],
                          MPI_Status statuses[]) {
  return Requests::any_of(incount, requests)
             ? mpi::waitsome(incount, requests, outcount, indices, statuses)
             : host_requests().Waitsome(incount, requests, outcount, indices, statuses);
}

HIPS_API int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  return is_ours(request) ? mpi::test(request, flag, status) : host_requests().Test(request, flag, status);
}

HIPS_API int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  return Requests::any_of(count, requests) ? mpi::testall(count, requests, flag, statuses)
                                           : host_requests().Testall(count, requests, flag, statuses);
}

HIPS_API int MPI_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  return Requests::any_of(count, requests) ? mpi::testany(count, requests, index, flag, status)
                                           : host_requests().Testany(count, requests, index, flag, status);
}

HIPS_API int MPI_Testsome(int incount, MPI_Request requests[], int* outcount, int indices[],
                          MPI_Status statuses[]) {
  return Requests::any_of(incount, requests)
             ? mpi::testsome(incount, requests, outcount, indices, statuses)
             : host_requests().Testsome(incount, requests, outcount, indices, statuses);
}

HIPS_API int MPI_Request_free(MPI_Request* request) {
  return is_ours(request) ? mpi::request_free(request) : host_requests().Request_free(request);
}

HIPS_API int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  return is_ours(&request) ? mpi::request_get_status(request, flag, status)
                           : host_requests().Request_get_status(request, flag, status);
}

HIPS_API int MPI_Cancel(MPI_Request* request) {
  return is_ours(request) ? mpi::cancel(request) : host_requests().Cancel(request);
}

// Elsewhere a handle of Fortran is the one of C.
#ifdef HIPS_MPI_ABI_OPENMPI
HIPS_API MPI_Fint MPI_Request_c2f(MPI_Request request) {
  return is_ours(&request) ? Requests::to_fortran(request) : host_requests().Request_c2f(request);
}

HIPS_API MPI_Request MPI_Request_f2c(MPI_Fint request) {
  return Requests::is_ours_in_fortran(request) ? Requests::from_fortran(request)
                                               : host_requests().Request_f2c(request);
}
#endif
}
