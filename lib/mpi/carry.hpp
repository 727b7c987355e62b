#pragma once

#include <mpi.h>

#include "lib/comm/call_args.hpp"
#include "lib/mpi/guard.hpp"

namespace hips::mpi {

class CommRecord;
class Process;

/// A collective of the program that HiPS could carry, and how the host would.
class HostedCall {
 public:
  HostedCall(const char* function, MPI_Comm of) : name(function), comm(of) {}
  virtual ~HostedCall() = default;
  HostedCall(const HostedCall&) = delete;
  HostedCall& operator=(const HostedCall&) = delete;

  /// Calls the host as the program did.
  [[nodiscard]] virtual int on_host() const = 0;
  /// Once it is known that HiPS may carry the call: completes `args` with what costs memory. Until then the
  /// buffers and sections in them are not there yet. May throw std::bad_alloc.
  virtual void prepare(CommRecord& /*record*/) {}
  /// Around the call of HiPS: where the program's memory is not as HiPS wants it. The host's error code.
  virtual int pack() { return MPI_SUCCESS; }
  virtual int unpack() { return MPI_SUCCESS; }

  /// Vectors that share a verdict of the guard.
  [[nodiscard]] GuardClass guard_class() const {
    const std::uint64_t bytes = args.count * size_of(args.type);
    if (args.collective == Collective::kAllreduce) return GuardClass::of(bytes, args.op);
    return GuardClass::of(bytes > 0 ? bytes : 1, args.collective);
  }

  const char* name;  ///< "MPI_Bcast"
  MPI_Comm comm;
  comm::CallArgs args;  ///< in HiPS' words

 protected:
  HostedCall(HostedCall&&) = default;
};

/// call.prepare(); where that throws std::bad_alloc, the others, who have memory and wait for this rank in
/// HiPS, hear of it first.
void prepare(CommRecord& record, HostedCall& call);

/// Carries a blocking call that HiPS could take, on a communicator that has a plan: by HiPS, by the host, or
/// as a trial, as the guard says. Gives the program's error code.
int carry(Process& process, CommRecord& record, HostedCall& call);

}  // namespace hips::mpi
