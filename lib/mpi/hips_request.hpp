#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>

#include <hips/status.hpp>

#include "lib/comm/communicator.hpp"
#include "lib/comm/request.hpp"

namespace hips::mpi {

class CommRecord;
class HostedCall;

/// A non-blocking or persistent call that HiPS carries, behind a handle of MPI.
///
/// It keeps what its communicator hangs on alive: MPI allows to free a communicator whose calls are under
/// way.
///
/// Threads  one at a time, as MPI asks of a request.
class HipsRequest {
 public:
  /// A non-blocking call, to be started once, on the record's communicator. `unpacks`, if any, is unpacked
  /// when it has ended well, and owns what is packed.
  HipsRequest(std::shared_ptr<CommRecord> record, std::unique_ptr<comm::Request> call, const char* function,
              std::uint64_t bytes, std::unique_ptr<HostedCall> unpacks);
  /// A persistent one, on a communicator of its own: MPI matches persistent calls by the order of their
  /// initialisation and lets each rank start them in any order, where calls of one communicator of HiPS match
  /// by the order of their start.
  HipsRequest(std::shared_ptr<CommRecord> record, std::unique_ptr<comm::Communicator> own,
              std::unique_ptr<comm::Request> call, const char* function, std::uint64_t bytes);
  ~HipsRequest();
  HipsRequest(const HipsRequest&) = delete;
  HipsRequest& operator=(const HipsRequest&) = delete;

  [[nodiscard]] CommRecord& record() const { return *record_; }
  /// That made it, for errors: "MPI_Iallreduce".
  [[nodiscard]] const char* function() const { return function_; }
  [[nodiscard]] bool persistent() const { return own_ != nullptr; }
  /// Started, and not finished yet.
  [[nodiscard]] bool active() const { return active_; }
  /// Do the two move each other on while one is waited for?
  [[nodiscard]] bool shares_communicator_with(const HipsRequest& other) const {
    return record_ == other.record_ && !own_ && !other.own_;
  }

  /// Of one that is not active.
  Status start();
  /// Would test() be true? Moves nothing.
  [[nodiscard]] bool has_ended() { return !active_ || end_ || call_->has_ended(); }
  /// Moves calls on without waiting. True where it has ended or is not active.
  bool test();
  /// Blocks until test() would be true; no other thread may need HiPS meanwhile.
  void wait();
  /// How it ended: what HiPS says, and what the host says of unpacking.
  struct End {
    Status status;
    int unpacked = MPI_SUCCESS;
  };
  /// Once test() is true; it is not active from then on.
  End finish();

 private:
  void end(Status status);

  std::shared_ptr<CommRecord> record_;
  std::unique_ptr<comm::Communicator> own_;
  std::unique_ptr<HostedCall> unpacks_;
  std::unique_ptr<comm::Request> call_;  // goes before what carries it, and before its buffers
  const char* function_;
  std::uint64_t bytes_;
  bool active_ = false;
  std::optional<End> end_;
};

}  // namespace hips::mpi
