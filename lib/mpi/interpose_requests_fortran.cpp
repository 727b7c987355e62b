// The functions of Fortran that start and complete requests: of all bindings for Open MPI, of mpi_f08 for
// MPICH, whose other bindings call the functions of C. Where none of ours is among the requests, the host's
// own wrapper gets the arguments as they are.

#include <mpi.h>

#include <vector>

#include "lib/mpi/fortran.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/request_calls.hpp"
#include "lib/mpi/request_guard.hpp"
#include "lib/mpi/requests.hpp"

// Nothing but a compiler of Fortran declares them.
#pragma GCC diagnostic ignored "-Wmissing-declarations"

namespace mpi = hips::mpi;

namespace {

constexpr int kStatusSize = sizeof(MPI_Status) / sizeof(MPI_Fint);

bool any_of(int count, const MPI_Fint* requests) {
  if (!mpi::Requests::exist()) return false;
  for (int i = 0; i < count; ++i)
    if (mpi::Requests::is_ours_in_fortran(requests[i])) return true;
  return false;
}

/// An array of requests as C has it; Fortran's gets the changes as this goes.
class RequestsOfC {
 public:
  RequestsOfC(int count, MPI_Fint* requests) : requests_(requests) {
    for (int i = 0; i < count; ++i) all_.push_back(mpi::request_to_c(requests[i]));
  }
  ~RequestsOfC() {
    for (std::size_t i = 0; i < all_.size(); ++i) requests_[i] = mpi::request_to_fortran(all_[i]);
  }
  RequestsOfC(const RequestsOfC&) = delete;
  RequestsOfC& operator=(const RequestsOfC&) = delete;
  MPI_Request* data() { return all_.data(); }

 private:
  MPI_Fint* requests_;
  std::vector<MPI_Request> all_;
};

/// Room for statuses of C, unless Fortran's are to be ignored.
class StatusesOfC {
 public:
  StatusesOfC(int count, MPI_Fint* statuses)
      : statuses_(mpi::fortran_sentinel(statuses) == mpi::Sentinel::kStatusIgnore ? nullptr : statuses) {
    if (statuses_) all_.resize(static_cast<std::size_t>(count));
  }
  MPI_Status* data() { return statuses_ ? all_.data() : MPI_STATUSES_IGNORE; }
  /// The first `count` to Fortran.
  void store(int count) {
    if (!statuses_) return;
    for (int i = 0; i < count; ++i)
      mpi::host()->Status_c2f(&all_[static_cast<std::size_t>(i)], statuses_ + i * kStatusSize);
  }

 private:
  MPI_Fint* statuses_;
  std::vector<MPI_Status> all_;
};

/// One status, whose MPI_ERROR may have to stay as it is.
class StatusOfC {
 public:
  explicit StatusOfC(MPI_Fint* status)
      : fortran_(mpi::fortran_sentinel(status) == mpi::Sentinel::kStatusIgnore ? nullptr : status) {
    if (fortran_) mpi::host()->Status_f2c(fortran_, &status_);
  }
  MPI_Status* data() { return fortran_ ? &status_ : MPI_STATUS_IGNORE; }
  void store() {
    if (fortran_) mpi::host()->Status_c2f(&status_, fortran_);
  }

 private:
  MPI_Fint* fortran_;
  MPI_Status status_{};
};

/// From 1, and MPI_UNDEFINED as it is.
MPI_Fint index_to_fortran(int index) {
  return index == MPI_UNDEFINED ? index : index + 1;
}

/// Runs the body and hands its code over.
template <typename Body>
void call(MPI_Fint* ierror, const Body& body) {
  const int code = mpi::guarded(body);
  if (ierror) *ierror = code;
}

}  // namespace

extern "C" {

HIPS_API void HIPS_MPI_FORTRAN(start)(MPI_Fint* request, MPI_Fint* ierror) {
  if (!any_of(1, request)) {
    static auto* const next = HIPS_MPI_FORTRAN_OF_HOST(start);
    next(request, ierror);
    return;
  }
  call(ierror, [&] {
    RequestsOfC of_c(1, request);
    return mpi::start(of_c.data());
  });
}
HIPS_MPI_FORTRAN_NAMES(mpi_start, MPI_START, MPI_Start);

HIPS_API void HIPS_MPI_FORTRAN(startall)(const MPI_Fint* count, MPI_Fint* requests, MPI_Fint* ierror) {
  if (!any_of(*count, requests)) {
    static auto* const next = HIPS_MPI_FORTRAN_OF_HOST(startall);
    next(count, requests, ierror);
    return;
  }
  call(ierror, [&] {
    RequestsOfC of_c(*count, requests);
    return mpi::startall(*count, of_c.data());
  });
}
HIPS_MPI_FORTRAN_NAMES(mpi_startall, MPI_STARTALL, MPI_Startall);

HIPS_API void HIPS_MPI_FORTRAN(wait)(MPI_Fint* request, MPI_Fint* status, MPI_Fint* ierror) {
  if (!any_of(1, request)) {
    static auto* const next = HIPS_MPI_FORTRAN_OF_HOST(wait);
    next(request, status, ierror);
    return;
  }
  call(ierror, [&] {
    RequestsOfC of_c(1, request);
    StatusOfC status_of_c(status);
    const int code = mpi::wait(of_c.data(), status_of_c.data());
    status_of_c.store();
    return code;
  });
}
HIPS_MPI_FORTRAN_NAMES(mpi_wait, MPI_WAIT, MPI_Wait);

HIPS_API void HIPS_MPI_FORTRAN(waitall)(const MPI_Fint* count, MPI_Fint* requests, MPI_Fint* statuses,
                                        MPI_Fint* ierror) {
  if (!any_of(*count, requests)) {
    static auto* const next = HIPS_MPI_FORTRAN_OF_HOST(waitall);
    next(count, requests, statuses, ierror);
    return;
  }
  call(ierror, [&] {
    RequestsOfC of_c(*count, requests);
    StatusesOfC statuses_of_c(*count, statuses);
    const int code = mpi::waitall(*count, of_c.data(), statuses_of_c.data());
    statuses_of_c.store(*count);
    return code;
  });
}
HIPS_MPI_FORTRAN_NAMES(mpi_waitall, MPI_WAITALL, MPI_Waitall);

HIPS_API void HIPS_MPI_FORTRAN(waitany)(const MPI_Fint* count, MPI_Fint* requests, MPI_Fint* index,
                                        MPI_Fint* status, MPI_Fint* ierror) {
  if (!any_of(*count, requests)) {
    static auto* const next = HIPS_MPI_FORTRAN_OF_HOST(waitany);
    next(count, requests, index, status, ierror);
    return;
  }
  call(ierror, [&] {
    RequestsOfC of_c(*count, requests);
    StatusOfC status_of_c(status);
    int index_of_c = MPI_UNDEFINED;
    const int code = mpi::waitany(*count, of_c.data(), &index_of_c, status_of_c.data());
    *index = index_to_fortran(index_of_c);
    status_of_c.store();
    return code;
  });
}
HIPS_MPI_FORTRAN_NAMES(mpi_waitany, MPI_WAITANY, MPI_Waitany);

HIPS_API void HIPS_MPI_FORTRAN(waitsome)(const MPI_Fint* count, MPI_Fint* requests, MPI_Fint* num_done,
                                         MPI_Fint* indices, MPI_Fint* statuses, MPI_Fint* ierror) {
  if (!any_of(*count, requests)) {
    static auto* const next = HIPS_MPI_FORTRAN_OF_HOST(waitsome);
    next(count, requests, num_done, indices, statuses, ierror);
    return;
  }
  call(ierror, [&] {
    RequestsOfC of_c(*count, requests);
    StatusesOfC statuses_of_c(*count, statuses);
    // Stays so where the call fails before any is completed.
    *num_done = 0;
    const int code = mpi::waitsome(*count, of_c.data(), num_done, indices, statuses_of_c.data());
    const int num = *num_done == MPI_UNDEFINED ? 0 : *num_done;
    for (int i = 0; i < num; ++i) indices[i] = index_to_fortran(indices[i]);
    statuses_of_c.store(num);
    return code;
  });
}
HIPS_MPI_FORTRAN_NAMES(mpi_waitsome, MPI_WAITSOME, MPI_Waitsome);

HIPS_API void HIPS_MPI_FORTRAN(test)(MPI_Fint* request, MPI_Fint* flag, MPI_Fint* status, MPI_Fint* ierror) {
  if (!any_of(1, request)) {
    static auto* const next = HIPS_MPI_FORTRAN_OF_HOST(test);
    next(request, flag, status, ierror);
    return;
  }
  call(ierror, [&] {
    RequestsOfC of_c(1, request);
    StatusOfC status_of_c(status);
    int is_done = 0;
    const int code = mpi::test(of_c.data(), &is_done, status_of_c.data());
    *flag = mpi::logical_to_fortran(is_done);
    if (is_done) status_of_c.store();
    return code;
  });
}
HIPS_MPI_FORTRAN_NAMES(mpi_test, MPI_TEST, MPI_Test);

HIPS_API void HIPS_MPI_FORTRAN(testall)(const MPI_Fint* count, MPI_Fint* requests, MPI_Fint* flag,
                                        MPI_Fint* statuses, MPI_Fint* ierror) {
  if (!any_of(*count, requests)) {
    static auto* const next = HIPS_MPI_FORTRAN_OF_HOST(testall);
    next(count, requests, flag, statuses, ierror);
    return;
  }
  call(ierror, [&] {
    RequestsOfC of_c(*count, requests);
    StatusesOfC statuses_of_c(*count, statuses);
    int is_done = 0;
    const int code = mpi::testall(*count, of_c.data(), &is_done, statuses_of_c.data());
    *flag = mpi::logical_to_fortran(is_done);
    if (is_done) statuses_of_c.store(*count);
    return code;
  });
}
HIPS_MPI_FORTRAN_NAMES(mpi_testall, MPI_TESTALL, MPI_Testall);

HIPS_API void HIPS_MPI_FORTRAN(testany)(const MPI_Fint* count, MPI_Fint* requests, MPI_Fint* index,
                                        MPI_Fint* flag, MPI_Fint* status, MPI_Fint* ierror) {
  if (!any_of(*count, requests)) {
    static auto* const next = HIPS_MPI_FORTRAN_OF_HOST(testany);
    next(count, requests, index, flag, status, ierror);
    return;
  }
  call(ierror, [&] {
    RequestsOfC of_c(*count, requests);
    StatusOfC status_of_c(status);
    int index_of_c = MPI_UNDEFINED, is_done = 0;
    const int code = mpi::testany(*count, of_c.data(), &index_of_c, &is_done, status_of_c.data());
    *index = index_to_fortran(index_of_c);
    *flag = mpi::logical_to_fortran(is_done);
    if (is_done) status_of_c.store();
    return code;
  });
}
HIPS_MPI_FORTRAN_NAMES(mpi_testany, MPI_TESTANY, MPI_Testany);

HIPS_API void HIPS_MPI_FORTRAN(testsome)(const MPI_Fint* count, MPI_Fint* requests, MPI_Fint* num_done,
                                         MPI_Fint* indices, MPI_Fint* statuses, MPI_Fint* ierror) {
  if (!any_of(*count, requests)) {
    static auto* const next = HIPS_MPI_FORTRAN_OF_HOST(testsome);
    next(count, requests, num_done, indices, statuses, ierror);
    return;
  }
  call(ierror, [&] {
    RequestsOfC of_c(*count, requests);
    StatusesOfC statuses_of_c(*count, statuses);
    *num_done = 0;
    const int code = mpi::testsome(*count, of_c.data(), num_done, indices, statuses_of_c.data());
    const int num = *num_done == MPI_UNDEFINED ? 0 : *num_done;
    for (int i = 0; i < num; ++i) indices[i] = index_to_fortran(indices[i]);
    statuses_of_c.store(num);
    return code;
  });
}
HIPS_MPI_FORTRAN_NAMES(mpi_testsome, MPI_TESTSOME, MPI_Testsome);

HIPS_API void HIPS_MPI_FORTRAN(request_free)(MPI_Fint* request, MPI_Fint* ierror) {
  if (!any_of(1, request)) {
    static auto* const next = HIPS_MPI_FORTRAN_OF_HOST(request_free);
    next(request, ierror);
    return;
  }
  call(ierror, [&] {
    RequestsOfC of_c(1, request);
    return mpi::request_free(of_c.data());
  });
}
HIPS_MPI_FORTRAN_NAMES(mpi_request_free, MPI_REQUEST_FREE, MPI_Request_free);

HIPS_API void HIPS_MPI_FORTRAN(request_get_status)(MPI_Fint* request, MPI_Fint* flag, MPI_Fint* status,
                                                   MPI_Fint* ierror) {
  if (!any_of(1, request)) {
    static auto* const next = HIPS_MPI_FORTRAN_OF_HOST(request_get_status);
    next(request, flag, status, ierror);
    return;
  }
  call(ierror, [&] {
    StatusOfC status_of_c(status);
    int is_done = 0;
    const int code = mpi::request_get_status(mpi::request_to_c(*request), &is_done, status_of_c.data());
    *flag = mpi::logical_to_fortran(is_done);
    if (is_done) status_of_c.store();
    return code;
  });
}
HIPS_MPI_FORTRAN_NAMES(mpi_request_get_status, MPI_REQUEST_GET_STATUS, MPI_Request_get_status);

HIPS_API void HIPS_MPI_FORTRAN(cancel)(MPI_Fint* request, MPI_Fint* ierror) {
  if (!any_of(1, request)) {
    static auto* const next = HIPS_MPI_FORTRAN_OF_HOST(cancel);
    next(request, ierror);
    return;
  }
  call(ierror, [&] {
    RequestsOfC of_c(1, request);
    return mpi::cancel(of_c.data());
  });
}
HIPS_MPI_FORTRAN_NAMES(mpi_cancel, MPI_CANCEL, MPI_Cancel);
}
