#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <utility>

#include <hips/hips.h>

#include "lib/base/result.hpp"
#include "lib/base/sections.hpp"
#include "lib/comm/calls/coalesced.hpp"
#include "lib/comm/communicator.hpp"

/// What the files of the C API share: capi.cpp (communicators, memory, errors), capi_args.cpp (arguments),
/// capi_calls.cpp (collectives), capi_ops.cpp (user-defined operations), capi_requests.cpp.
namespace hips::comm::capi {

/// A communicator, and what its next call can reuse. Owned by its handle and by its requests: destroyed with the last of them.
///
/// Threads  as the communicator's thread mode says; all functions but the destructor from several at once.
class Shared {
 public:
  explicit Shared(std::unique_ptr<Communicator> made);
  ~Shared();
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  void hold() { holders_.fetch_add(1, std::memory_order_relaxed); }
  void let_go() {
    if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  /// A request that was complete; null: there is none.
  std::unique_ptr<hips_request> take_spare();
  /// Keeps a request for take_spare(), or frees it. It still holds this object, which may end here.
  void keep_spare(std::unique_ptr<hips_request> request);
  /// The handle ends, and what holds this object for it.
  void end_handle();

  /// An object of the communicator that another thread may still be using. Holds this one.
  struct Kept {
    Kept() = default;
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    virtual ~Kept() = default;
    /// It is never destroyed.
    virtual void stay() noexcept = 0;
    std::unique_ptr<Kept> next;
  };
  /// Frees it with the handle. Without one nobody says any more when it is not used: then it stays.
  void keep(std::unique_ptr<Kept> object) noexcept;

  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<Coalescer> coalescer;  ///< made by the first call that needs it
  SectionsCache sections;

 private:
  std::atomic<std::size_t> holders_{0};
  std::atomic<hips_request*> spare_{nullptr};
  std::mutex keeping_;
  bool handle_ended_ = false;
  std::unique_ptr<Kept> kept_;  ///< the last one
};

/// One of the holders of a Shared.
class SharedHold {
 public:
  SharedHold() = default;
  explicit SharedHold(Shared& shared) : shared_(&shared) { shared.hold(); }
  SharedHold(SharedHold&& other) noexcept : shared_(std::exchange(other.shared_, nullptr)) {}
  SharedHold& operator=(SharedHold&& other) noexcept {
    std::swap(shared_, other.shared_);
    return *this;
  }
  SharedHold(const SharedHold&) = delete;
  SharedHold& operator=(const SharedHold&) = delete;
  ~SharedHold() {
    if (shared_ != nullptr) shared_->let_go();
  }
  explicit operator bool() const { return shared_ != nullptr; }
  Shared* operator->() const { return shared_; }
  Shared& operator*() const { return *shared_; }

 private:
  Shared* shared_ = nullptr;
};

/// What hips_last_error() and hips_last_error_info() give this thread.
Status& last_error();
/// Records a failure as the last error; gives its code.
hips_status_t finish_failed(const Status& failure) noexcept;
inline hips_status_t finish(const Status& status) noexcept {
  return status.ok() ? HIPS_OK : finish_failed(status);
}
hips_status_t finish_out_of_memory() noexcept;

/// Runs a call that gives a Status; no exception leaves the C API.
template <typename Call>
hips_status_t guarded(Call&& call) {
  try {
    return finish(call());
  } catch (const Error& error) {
    return finish(error.status());
  } catch (const std::bad_alloc&) {
    return finish_out_of_memory();
  } catch (const std::exception& error) {
    return finish(Status::error(Code::kInternal, error.what()));
  }
}

/// "hips_wait: request is null"
Status null_argument(const char* call, const char* name);

// Arguments of the C API's calls as the communicator takes them; `call` is the name for errors.
Result<CallArgs> allreduce_args(const char* call, const void* in, void* out, std::uint64_t count,
                                hips_type_t type, hips_op_t op, hips_comm_t comm);
Result<CallArgs> reduce_scatter_block_args(const char* call, const void* in, void* out, std::uint64_t count,
                                           hips_type_t type, hips_op_t op, hips_comm_t comm);
Result<CallArgs> reduce_scatter_args(const char* call, const void* in, void* out, const std::uint64_t* counts,
                                     hips_type_t type, hips_op_t op, hips_comm_t comm);
Result<CallArgs> allgather_args(const char* call, const void* in, void* out, std::uint64_t count,
                                hips_type_t type, hips_comm_t comm);
Result<CallArgs> allgatherv_args(const char* call, const void* in, void* out, const std::uint64_t* counts,
                                 const std::uint64_t* displacements, hips_type_t type, hips_comm_t comm);
Result<CallArgs> bcast_args(const char* call, void* buffer, std::uint64_t count, hips_type_t type, int root,
                            hips_comm_t comm);
Result<CallArgs> reduce_args(const char* call, const void* in, void* out, std::uint64_t count,
                             hips_type_t type, hips_op_t op, int root, hips_comm_t comm);
Result<CallArgs> gather_args(const char* call, const void* in, void* out, std::uint64_t count,
                             hips_type_t type, int root, hips_comm_t comm);
Result<CallArgs> scatter_args(const char* call, const void* in, void* out, std::uint64_t count,
                              hips_type_t type, int root, hips_comm_t comm);
Result<CallArgs> alltoall_args(const char* call, const void* in, void* out, std::uint64_t count,
                               hips_type_t type, hips_comm_t comm);
Result<CallArgs> barrier_args(const char* call, hips_comm_t comm);

}  // namespace hips::comm::capi

struct hips_comm {
  hips::comm::capi::SharedHold shared;

  hips_comm() = default;
  hips_comm(const hips_comm&) = delete;
  hips_comm& operator=(const hips_comm&) = delete;
  ~hips_comm() {
    if (shared) shared->end_handle();
  }
};

struct hips_request {
  hips::comm::capi::SharedHold shared;  ///< outlives the call
  std::unique_ptr<hips::comm::Request> call;
  bool persistent = false;
  bool outstanding = false;  ///< started, and not reported as complete
  /// May become the spare request: not when it holds a user-defined op.
  bool reusable = true;
};
