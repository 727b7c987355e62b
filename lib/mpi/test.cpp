#include "lib/mpi/completion.hpp"
#include "lib/mpi/host_requests.hpp"
#include "lib/mpi/mixed.hpp"
#include "lib/mpi/request_calls.hpp"
#include "lib/mpi/request_guard.hpp"

namespace hips::mpi {

int test(MPI_Request* request, int* flag, MPI_Status* status) {
  return with_request(
      *request,
      [&](const Process& process, HipsRequest& ours) {
        *flag = ours.test();
        if (*flag) return complete_one(ours, *request, status);
        // A program that asks for nothing else still moves its messages.
        process.progress_host();
        return MPI_SUCCESS;
      },
      [&] { return with_inactive(1, request, [&] { return host_requests().Test(request, flag, status); }); });
}

int testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  return with_requests(
      [&](const Process& process) {
        Mixed mixed(count, requests);
        if (mixed.has_stale()) return raise_code(host()->world, MPI_ERR_REQUEST);
        if (!mixed.test()) {
          *flag = 0;
          process.progress_host();
          return MPI_SUCCESS;
        }
        // The host completes its own all together or leaves them.
        const int code = host_requests().Testall(count, requests, flag, statuses);
        if ((code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) || !*flag) return code;
        return complete_all(mixed, code, count, statuses);
      },
      [&] {
        return with_inactive(count, requests,
                             [&] { return host_requests().Testall(count, requests, flag, statuses); });
      });
}

int testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  return with_requests(
      [&](const Process& process) {
        Mixed mixed(count, requests);
        if (mixed.has_stale()) return raise_code(host()->world, MPI_ERR_REQUEST);
        const int code = try_any(mixed, count, requests, index, flag, status);
        if (code != MPI_SUCCESS || *flag) return code;
        *index = MPI_UNDEFINED;
        process.progress_host();
        return MPI_SUCCESS;
      },
      [&] {
        return with_inactive(count, requests,
                             [&] { return host_requests().Testany(count, requests, index, flag, status); });
      });
}

int testsome(int count, MPI_Request* requests, int* num_done, int* indices, MPI_Status* statuses) {
  return with_requests(
      [&](const Process& process) {
        Mixed mixed(count, requests);
        if (mixed.has_stale()) return raise_code(host()->world, MPI_ERR_REQUEST);
        const int code = try_some(mixed, count, requests, num_done, indices, statuses);
        if (code == MPI_SUCCESS && *num_done == 0) process.progress_host();
        return code;
      },
      [&] {
        return with_inactive(count, requests, [&] {
          return host_requests().Testsome(count, requests, num_done, indices, statuses);
        });
      });
}

int request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  return with_request(
      request,
      [&](const Process& process, HipsRequest& ours) {
        *flag = ours.test();
        if (*flag)
          set_empty(status);
        else
          process.progress_host();
        return MPI_SUCCESS;
      },
      [&] {
        return with_inactive(1, &request,
                             [&] { return host_requests().Request_get_status(request, flag, status); });
      });
}

}  // namespace hips::mpi
