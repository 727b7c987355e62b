#include "lib/mpi/requests/completion.hpp"

#include "lib/mpi/communicators/error.hpp"
#include "lib/mpi/native/native_mpi.hpp"

namespace hips::mpi {
namespace {

/// The failures among the requests that one call completes. The handler of the first one is called for all.
class Failures {
 public:
  explicit Failures(MPI_Status* statuses) : statuses_(statuses) {}

  /// `place` is where the request's status belongs.
  void add(const RequestOutcome& outcome, int place) {
    if (outcome.code == MPI_SUCCESS) return;
    if (comm_ == MPI_Comm{}) comm_ = outcome.comm;
    set(place, outcome.code);
  }
  /// Whether MPI_ERROR of the statuses is valid, which it is only where a request has failed.
  [[nodiscard]] bool any() const { return comm_ != MPI_Comm{}; }
  void set(int place, int code) {
    if (statuses_ != MPI_STATUSES_IGNORE) statuses_[place].MPI_ERROR = code;
  }
  /// The return value of the function.
  [[nodiscard]] int code(int native_code) const {
    return any() ? raise_code(comm_, MPI_ERR_IN_STATUS) : native_code;
  }

 private:
  MPI_Status* statuses_;
  MPI_Comm comm_{};
};

/// For one that has just made progress with the others.
bool has_ended(MpiRequest& request) {
  return request.has_ended() && request.test();
}

}  // namespace

int complete_one(MpiRequest& request, MPI_Request& handle, MPI_Status* status) {
  set_empty(status);
  const RequestOutcome outcome = finish(request, handle);
  return outcome.code == MPI_SUCCESS ? MPI_SUCCESS : raise_code(outcome.comm, outcome.code);
}

int complete_all(MixedRequests& mixed, int native_code, int count, MPI_Status* statuses) {
  Failures failures(statuses);
  // Native MPI sets MPI_ERROR of its own requests only where one of them failed.
  if (native_code == MPI_SUCCESS)
    for (int i = 0; i < count; ++i) failures.set(i, MPI_SUCCESS);
  for (MixedRequests::Ours& one : mixed.ours()) failures.add(finish(*one.request, one.handle), one.index);
  return failures.code(native_code);
}

int try_any(MixedRequests& mixed, int count, MPI_Request* requests, int* index, int* flag,
            MPI_Status* status) {
  const int code = native_requests().Testany(count, requests, index, flag, status);
  if (code != MPI_SUCCESS || (*flag && *index != MPI_UNDEFINED)) return code;
  mixed.test();
  bool is_any_active = false;
  for (MixedRequests::Ours& one : mixed.ours()) {
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

int try_some(MixedRequests& mixed, int count, MPI_Request* requests, int* num_done, int* indices,
             MPI_Status* statuses) {
  const int code = native_requests().Testsome(count, requests, num_done, indices, statuses);
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) return code;
  const bool has_native = *num_done != MPI_UNDEFINED;
  const int num_native = has_native ? *num_done : 0;
  Failures failures(statuses);
  if (code == MPI_SUCCESS)
    for (int i = 0; i < num_native; ++i) failures.set(i, MPI_SUCCESS);
  int num = num_native;
  mixed.test();
  bool is_any_active = false;
  for (MixedRequests::Ours& one : mixed.ours()) {
    if (!one.request->active()) continue;
    is_any_active = true;
    if (!has_ended(*one.request)) continue;
    if (statuses != MPI_STATUSES_IGNORE) set_empty(&statuses[num]);
    failures.set(num, MPI_SUCCESS);
    failures.add(finish(*one.request, one.handle), num);
    indices[num++] = one.index;
  }
  *num_done = has_native || is_any_active ? num : MPI_UNDEFINED;
  return failures.code(code);
}

}  // namespace hips::mpi
