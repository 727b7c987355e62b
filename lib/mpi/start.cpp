#include "lib/mpi/comm_record.hpp"
#include "lib/mpi/host_requests.hpp"
#include "lib/mpi/request_calls.hpp"
#include "lib/mpi/request_guard.hpp"

namespace hips::mpi {
namespace {

/// What MPI forbids after MPI_Finalize as before it.
int refuse() {
  return MPI_ERR_REQUEST;
}

}  // namespace

int start(MPI_Request* request) {
  return with_request(
      *request,
      [](Process&, HipsRequest& ours) {
        CommRecord& record = ours.record();
        if (!ours.persistent() || ours.active()) return raise_code(record.comm(), MPI_ERR_REQUEST);
        const Status status = ours.start();
        return status.ok() ? MPI_SUCCESS : raise_error(record.comm(), record, status, "MPI_Start");
      },
      refuse);
}

int startall(int count, MPI_Request* requests) {
  for (int i = 0; i < count; ++i) {
    const int code =
        Requests::is_ours(requests[i]) ? start(&requests[i]) : host_requests().Start(&requests[i]);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

int request_free(MPI_Request* request) {
  return with_request(
      *request,
      [&](Process&, HipsRequest& ours) {
        if (!ours.test()) return raise_code(ours.record().comm(), MPI_ERR_REQUEST);
        Requests::process().remove(*request);
        *request = host()->no_request;
        return MPI_SUCCESS;
      },
      [&] {
        *request = host()->no_request;
        return MPI_SUCCESS;
      });
}

int cancel(MPI_Request* request) {
  return with_request(
      *request,
      [](Process&, const HipsRequest& ours) { return raise_code(ours.record().comm(), MPI_ERR_REQUEST); },
      refuse);
}

}  // namespace hips::mpi
