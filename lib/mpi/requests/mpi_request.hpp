#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>

#include <hips/status.hpp>

#include "lib/base/result.hpp"
#include "lib/comm/calls/request.hpp"
#include "lib/comm/communicator.hpp"

namespace hips::mpi {

class CommRecord;
class ProgramCall;
struct KeptCall;

/// A non-blocking or persistent call that HiPS executes, behind a request handle of MPI.
///
/// Keeps the record of its communicator alive: MPI lets a program free a communicator with outstanding calls.
///
/// Threads  one at a time, as MPI requires of a request.
class MpiRequest {
 public:
  /// A non-blocking call on the record's communicator, still to be started, once. `kept` is null or holds
  /// `call`, which is unpacked when it has ended well. `function` is what the program called.
  ///
  /// Errors   as comm::Communicator::prepare_request().
  static Result<std::unique_ptr<MpiRequest>> make_nonblocking(CommRecord& record, const char* function,
                                                              const ProgramCall& call,
                                                              std::unique_ptr<KeptCall> kept);
  /// A persistent call, on a communicator of its own: MPI matches persistent calls by the order of their
  /// initialisation and lets each rank start them in any order, but calls of one communicator of HiPS match
  /// by the order of their start. `kept` is null or holds `call`, which does not pack.
  static Result<std::unique_ptr<MpiRequest>> make_persistent(CommRecord& record,
                                                             std::unique_ptr<comm::Communicator> own,
                                                             const char* function, const ProgramCall& call,
                                                             std::unique_ptr<KeptCall> kept);
  ~MpiRequest();
  MpiRequest(const MpiRequest&) = delete;
  MpiRequest& operator=(const MpiRequest&) = delete;

  [[nodiscard]] CommRecord& record() const { return *record_; }
  /// The function that made it, for errors: "MPI_Iallreduce".
  [[nodiscard]] const char* function() const { return function_; }
  [[nodiscard]] bool persistent() const { return own_ != nullptr; }
  /// Started, and not finished yet.
  [[nodiscard]] bool active() const { return active_; }
  /// Whether waiting for one makes progress with the other.
  [[nodiscard]] bool shares_communicator_with(const MpiRequest& other) const {
    return record_ == other.record_ && !own_ && !other.own_;
  }

  /// For a request that is not active.
  Status start();
  /// Whether test() would be true. Makes no progress.
  [[nodiscard]] bool has_ended() { return !active_ || end_ || call_->has_ended(); }
  /// Makes progress without waiting. True where the call has ended or is not active.
  bool test();
  /// Blocks until test() would be true; no other thread may need HiPS meanwhile.
  void wait();
  /// How the call ended: HiPS' status, and native MPI's error code of unpacking.
  struct End {
    Status status;
    int unpacked = MPI_SUCCESS;
  };
  /// Called once test() is true; the request is not active from then on.
  End finish();

 private:
  MpiRequest(CommRecord& record, std::unique_ptr<comm::Communicator> own, std::unique_ptr<KeptCall> kept,
             std::unique_ptr<comm::Request> call, const char* function, std::uint64_t bytes);
  void end(Status status);

  std::shared_ptr<CommRecord> record_;
  std::unique_ptr<comm::Communicator> own_;
  std::unique_ptr<KeptCall> kept_;
  std::unique_ptr<comm::Request> call_;  // destroyed before its communicator and its buffers
  const char* function_;
  std::uint64_t bytes_;
  bool active_ = false;
  std::optional<End> end_;
};

/// Gives the program a handle of a request, and starts it if `starts`. The program's error code, raised on
/// `comm`; there is no handle and no request then.
int give_handle(MPI_Comm comm, std::unique_ptr<MpiRequest> made, bool starts, MPI_Request* handle);

}  // namespace hips::mpi
