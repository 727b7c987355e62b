#include "lib/mpi/native/native_mpi.hpp"
#include "lib/mpi/requests/completion.hpp"
#include "lib/mpi/requests/request_calls.hpp"
#include "lib/mpi/requests/request_entry.hpp"

namespace hips::mpi {
namespace {

/// Whether this thread may block in HiPS, where no other thread's requests of the same communicator make
/// progress meanwhile.
bool may_block(const MpiProcess& process) {
  return process.thread_mode() == ThreadMode::kSingle;
}

}  // namespace

int wait(MPI_Request* request, MPI_Status* status) {
  return with_request(
      *request,
      [&](const MpiProcess& process, MpiRequest& ours) {
        AlternatingWait alternating(process);
        while (!ours.test()) {
          if (may_block(process))
            ours.wait();
          else
            alternating.next();
        }
        return complete_one(ours, *request, status);
      },
      [&] { return with_inactive(1, request, [&] { return native_requests().Wait(request, status); }); });
}

int waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  return with_requests(
      [&](const MpiProcess& process) {
        MixedRequests mixed(count, requests);
        if (mixed.has_stale()) return raise_code(native_mpi()->world, MPI_ERR_REQUEST);
        AlternatingWait alternating(process);
        while (!mixed.test()) {
          if (mixed.wait_for_ours(process, false)) continue;
          if (may_block(process) && alternating.has_waited_long())
            mixed.wait_for_first();
          else
            alternating.next();
        }
        const int code = native_requests().Waitall(count, requests, statuses);
        if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) return code;
        return complete_all(mixed, code, count, statuses);
      },
      [&] {
        return with_inactive(count, requests,
                             [&] { return native_requests().Waitall(count, requests, statuses); });
      });
}

int waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  return with_requests(
      [&](const MpiProcess& process) {
        MixedRequests mixed(count, requests);
        if (mixed.has_stale()) return raise_code(native_mpi()->world, MPI_ERR_REQUEST);
        AlternatingWait alternating(process);
        for (;;) {
          int flag = 0;
          const int code = try_any(mixed, count, requests, index, &flag, status);
          if (code != MPI_SUCCESS || flag) return code;
          if (!mixed.has_active()) return native_requests().Waitany(count, requests, index, status);
          if (!mixed.wait_for_ours(process, true)) alternating.next();
        }
      },
      [&] {
        return with_inactive(count, requests,
                             [&] { return native_requests().Waitany(count, requests, index, status); });
      });
}

int waitsome(int count, MPI_Request* requests, int* num_done, int* indices, MPI_Status* statuses) {
  return with_requests(
      [&](const MpiProcess& process) {
        MixedRequests mixed(count, requests);
        if (mixed.has_stale()) return raise_code(native_mpi()->world, MPI_ERR_REQUEST);
        AlternatingWait alternating(process);
        for (;;) {
          const int code = try_some(mixed, count, requests, num_done, indices, statuses);
          if (code != MPI_SUCCESS || *num_done != 0) return code;
          if (!mixed.wait_for_ours(process, true)) alternating.next();
        }
      },
      [&] {
        return with_inactive(count, requests, [&] {
          return native_requests().Waitsome(count, requests, num_done, indices, statuses);
        });
      });
}

}  // namespace hips::mpi
