#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

#include <hips/hips.h>

#include "lib/base/result.hpp"
#include "lib/base/sections.hpp"
#include "lib/comm/coalesced.hpp"
#include "lib/comm/communicator.hpp"

/// What the files of the C API share: capi.cpp (communicators, memory, errors), capi_args.cpp (arguments),
/// capi_calls.cpp (collectives), capi_ops.cpp (functions of the program), capi_requests.cpp.
namespace hips::comm::capi {

/// A communicator, and what its next call can use again.
struct Shared {
  explicit Shared(std::unique_ptr<Communicator> made) : communicator(std::move(made)) {}
  ~Shared();
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  /// Sections of these counts and places; the last ones are kept, as making them takes longer than a small
  /// call.
  std::shared_ptr<const Sections> sections(std::uint64_t count);
  std::shared_ptr<const Sections> sections(std::span<const std::uint64_t> counts,
                                           std::span<const std::uint64_t> places);

  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<Coalescer> coalescer;       ///< from the first call on that needs it
  std::atomic<hips_request*> spare{nullptr};  ///< the last request that has ended
  std::shared_ptr<const Sections> last_sections;
};

/// The message that hips_last_error() gives this thread.
std::string& last_error();
hips_status_t finish(const Status& status);

/// Runs a call that gives a Status; no exception leaves the C API.
template <typename Call>
hips_status_t guarded(Call&& call) {
  try {
    return finish(call());
  } catch (const Error& error) {
    return finish(error.status());
  } catch (const std::bad_alloc&) {
    // Assigning the message could fail for the same reason; a short one fits into the string itself.
    last_error() = "out of memory";
    return HIPS_ERR_OUT_OF_MEMORY;
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
Result<CallArgs> barrier_args(const char* call, hips_comm_t comm);

}  // namespace hips::comm::capi

struct hips_comm {
  std::shared_ptr<hips::comm::capi::Shared> shared;
};

struct hips_request {
  std::shared_ptr<hips::comm::capi::Shared> shared;  ///< outlives the call; null in a spare one
  std::unique_ptr<hips::comm::Request> call;
  bool persistent = false;
  /// For another call, once this one has ended: not where it holds an op of the program's.
  bool reusable = true;
};
