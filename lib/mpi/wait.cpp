#include "lib/mpi/completion.hpp"
#include "lib/mpi/host_requests.hpp"
#include "lib/mpi/mixed.hpp"
#include "lib/mpi/request_calls.hpp"
#include "lib/mpi/request_guard.hpp"

namespace hips::mpi {
namespace {

/// May this thread block in HiPS, which then serves no other thread's requests of the same communicator?
bool may_block(const Process& process) {
  return process.thread_mode() == ThreadMode::kSingle;
}

}  // namespace

int wait(MPI_Request* request, MPI_Status* status) {
  return with_request(
      *request,
      [&](const Process& process, HipsRequest& ours) {
        Turns turns(process);
        while (!ours.test()) {
          if (may_block(process))
            ours.wait();
          else
            turns.next();
        }
        return complete_one(ours, *request, status);
      },
      [&] { return with_inactive(1, request, [&] { return host_requests().Wait(request, status); }); });
}

int waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  return with_requests(
      [&](const Process& process) {
        Mixed mixed(count, requests);
        if (mixed.has_stale()) return raise_code(host()->world, MPI_ERR_REQUEST);
        Turns turns(process);
        while (!mixed.test()) {
          if (mixed.wait_for_ours(process, false)) continue;
          if (may_block(process) && turns.has_waited_long())
            mixed.wait_for_first();
          else
            turns.next();
        }
        const int code = host_requests().Waitall(count, requests, statuses);
        if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) return code;
        return complete_all(mixed, code, count, statuses);
      },
      [&] {
        return with_inactive(count, requests,
                             [&] { return host_requests().Waitall(count, requests, statuses); });
      });
}

int waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  return with_requests(
      [&](const Process& process) {
        Mixed mixed(count, requests);
        if (mixed.has_stale()) return raise_code(host()->world, MPI_ERR_REQUEST);
        Turns turns(process);
        for (;;) {
          int flag = 0;
          const int code = try_any(mixed, count, requests, index, &flag, status);
          if (code != MPI_SUCCESS || flag) return code;
          if (!mixed.has_active()) return host_requests().Waitany(count, requests, index, status);
          if (!mixed.wait_for_ours(process, true)) turns.next();
        }
      },
      [&] {
        return with_inactive(count, requests,
                             [&] { return host_requests().Waitany(count, requests, index, status); });
      });
}

int waitsome(int count, MPI_Request* requests, int* num_done, int* indices, MPI_Status* statuses) {
  return with_requests(
      [&](const Process& process) {
        Mixed mixed(count, requests);
        if (mixed.has_stale()) return raise_code(host()->world, MPI_ERR_REQUEST);
        Turns turns(process);
        for (;;) {
          const int code = try_some(mixed, count, requests, num_done, indices, statuses);
          if (code != MPI_SUCCESS || *num_done != 0) return code;
          if (!mixed.wait_for_ours(process, true)) turns.next();
        }
      },
      [&] {
        return with_inactive(count, requests, [&] {
          return host_requests().Waitsome(count, requests, num_done, indices, statuses);
        });
      });
}

}  // namespace hips::mpi
