#include "lib/mpi/native/native_mpi.hpp"
#include "lib/mpi/requests/completion.hpp"
#include "lib/mpi/requests/request_calls.hpp"
#include "lib/mpi/requests/request_entry.hpp"

namespace hips::mpi {

int test(MPI_Request* request, int* flag, MPI_Status* status) {
  return with_request(
      *request,
      [&](const MpiProcess& process, MpiRequest& ours) {
        *flag = ours.test();
        if (*flag) return complete_one(ours, *request, status);
        // MPI requires progress of native messages even in a program that tests nothing else.
        process.progress_native();
        return MPI_SUCCESS;
      },
      [&] {
        return with_inactive(1, request, [&] { return native_requests().Test(request, flag, status); });
      });
}

int testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  return with_requests(
      [&](const MpiProcess& process) {
        MixedRequests mixed(count, requests);
        if (mixed.has_stale()) return raise_code(native_mpi()->world, MPI_ERR_REQUEST);
        if (!mixed.test()) {
          *flag = 0;
          process.progress_native();
          return MPI_SUCCESS;
        }
        // Native MPI completes all of its own or none.
        const int code = native_requests().Testall(count, requests, flag, statuses);
        if ((code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) || !*flag) return code;
        return complete_all(mixed, code, count, statuses);
      },
      [&] {
        return with_inactive(count, requests,
                             [&] { return native_requests().Testall(count, requests, flag, statuses); });
      });
}

int testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  return with_requests(
      [&](const MpiProcess& process) {
        MixedRequests mixed(count, requests);
        if (mixed.has_stale()) return raise_code(native_mpi()->world, MPI_ERR_REQUEST);
        const int code = try_any(mixed, count, requests, index, flag, status);
        if (code != MPI_SUCCESS || *flag) return code;
        *index = MPI_UNDEFINED;
        process.progress_native();
        return MPI_SUCCESS;
      },
      [&] {
        return with_inactive(count, requests,
                             [&] { return native_requests().Testany(count, requests, index, flag, status); });
      });
}

int testsome(int count, MPI_Request* requests, int* num_done, int* indices, MPI_Status* statuses) {
  return with_requests(
      [&](const MpiProcess& process) {
        MixedRequests mixed(count, requests);
        if (mixed.has_stale()) return raise_code(native_mpi()->world, MPI_ERR_REQUEST);
        const int code = try_some(mixed, count, requests, num_done, indices, statuses);
        if (code == MPI_SUCCESS && *num_done == 0) process.progress_native();
        return code;
      },
      [&] {
        return with_inactive(count, requests, [&] {
          return native_requests().Testsome(count, requests, num_done, indices, statuses);
        });
      });
}

int request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  return with_request(
      request,
      [&](const MpiProcess& process, MpiRequest& ours) {
        *flag = ours.test();
        if (*flag)
          set_empty(status);
        else
          process.progress_native();
        return MPI_SUCCESS;
      },
      [&] {
        return with_inactive(1, &request,
                             [&] { return native_requests().Request_get_status(request, flag, status); });
      });
}

}  // namespace hips::mpi
