#include "lib/mpi/completion.hpp"

#include "lib/mpi/error.hpp"
#include "lib/mpi/host_requests.hpp"

namespace hips::mpi {
namespace {

/// Of the requests that one call completes; the first failure's handler is told of all.
class Failures {
 public:
  explicit Failures(MPI_Status* statuses) : statuses_(statuses) {}

  /// `place` is that of the request's status.
  void add(const Finished& end, int place) {
    if (end.code == MPI_SUCCESS) return;
    if (comm_ == MPI_Comm{}) comm_ = end.comm;
    set(place, end.code);
  }
  /// Whether MPI_ERROR of the statuses counts, which it does only where something has failed.
  [[nodiscard]] bool any() const { return comm_ != MPI_Comm{}; }
  void set(int place, int code) {
    if (statuses_ != MPI_STATUSES_IGNORE) statuses_[place].MPI_ERROR = code;
  }
  /// What the function gives.
  [[nodiscard]] int outcome(int host_code) const {
    return any() ? raise_code(comm_, MPI_ERR_IN_STATUS) : host_code;
  }

 private:
  MPI_Status* statuses_;
  MPI_Comm comm_{};
};

/// Of one that has just been moved on with the others.
bool has_ended(HipsRequest& request) {
  return request.has_ended() && request.test();
}

}  // namespace

int complete_one(HipsRequest& request, MPI_Request& handle, MPI_Status* status) {
  set_empty(status);
  const Finished end = finish(request, handle);
  return end.code == MPI_SUCCESS ? MPI_SUCCESS : raise_code(end.comm, end.code);
}

int complete_all(Mixed& mixed, int host_code, int count, MPI_Status* statuses) {
  Failures failures(statuses);
  // The host says how its own ended only where one of them failed.
  if (host_code == MPI_SUCCESS)
    for (int i = 0; i < count; ++i) failures.set(i, MPI_SUCCESS);
  for (Mixed::Ours& one : mixed.ours()) failures.add(finish(*one.request, one.handle), one.index);
  return failures.outcome(host_code);
}

int try_any(Mixed& mixed, int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  const int code = host_requests().Testany(count, requests, index, flag, status);
  if (code != MPI_SUCCESS || (*flag && *index != MPI_UNDEFINED)) return code;
  mixed.test();
  bool is_any_active = false;
  for (Mixed::Ours& one : mixed.ours()) {
    if (!one.request->active()) continue;
    is_any_active = true;
    if (!has_ended(*one.request)) continue;
    *index = one.index;
    *flag = 1;
    return complete_one(*one.request, one.handle, status);
  }
  if (is_any_active) *flag = 0;
  return MPI_SUCCESS;
}

int try_some(Mixed& mixed, int count, MPI_Request* requests, int* num_done, int* indices,
             MPI_Status* statuses) {
  const int code = host_requests().Testsome(count, requests, num_done, indices, statuses);
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) return code;
  const bool has_hosts = *num_done != MPI_UNDEFINED;
  const int num_hosts = has_hosts ? *num_done : 0;
  Failures failures(statuses);
  if (code == MPI_SUCCESS)
    for (int i = 0; i < num_hosts; ++i) failures.set(i, MPI_SUCCESS);
  int num = num_hosts;
  mixed.test();
  bool is_any_active = false;
  for (Mixed::Ours& one : mixed.ours()) {
    if (!one.request->active()) continue;
    is_any_active = true;
    if (!has_ended(*one.request)) continue;
    if (statuses != MPI_STATUSES_IGNORE) set_empty(&statuses[num]);
    failures.set(num, MPI_SUCCESS);
    failures.add(finish(*one.request, one.handle), num);
    indices[num++] = one.index;
  }
  *num_done = has_hosts || is_any_active ? num : MPI_UNDEFINED;
  return failures.outcome(code);
}

}  // namespace hips::mpi
