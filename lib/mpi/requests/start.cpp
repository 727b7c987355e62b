#include "lib/mpi/communicators/comm_record.hpp"
#include "lib/mpi/native/native_mpi.hpp"
#include "lib/mpi/requests/request_calls.hpp"
#include "lib/mpi/requests/request_entry.hpp"

namespace hips::mpi {
namespace {

/// For what MPI forbids before MPI_Finalize and after it.
int refuse() {
  return MPI_ERR_REQUEST;
}

}  // namespace

int start(MPI_Request* request) {
  return with_request(
      *request,
      [](MpiProcess&, MpiRequest& ours) {
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
        RequestTable::is_ours(requests[i]) ? start(&requests[i]) : native_requests().Start(&requests[i]);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

int request_free(MPI_Request* request) {
  return with_request(
      *request,
      [&](MpiProcess&, MpiRequest& ours) {
        if (!ours.test()) return raise_code(ours.record().comm(), MPI_ERR_REQUEST);
        RequestTable::process().remove(*request);
        *request = native_mpi()->no_request;
        return MPI_SUCCESS;
      },
      [&] {
        *request = native_mpi()->no_request;
        return MPI_SUCCESS;
      });
}

int cancel(MPI_Request* request) {
  return with_request(
      *request,
      [](MpiProcess&, const MpiRequest& ours) { return raise_code(ours.record().comm(), MPI_ERR_REQUEST); },
      refuse);
}

}  // namespace hips::mpi
