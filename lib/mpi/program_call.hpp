#pragma once

#include <mpi.h>

#include <cstddef>

#include "lib/mpi/carry.hpp"
#include "lib/mpi/host.hpp"

namespace hips::mpi {

/// What a program calls the two forms of a collective.
struct CallNames {
  const char* blocking;     ///< "MPI_Bcast"
  const char* nonblocking;  ///< "MPI_Ibcast"
};

/// A collective as the program called it, handles and special addresses already those of C: what is of one
/// collective, whether the program waits for it or has a request for it.
///
/// In turn   accept(); then nothing more where the host carries the call, else prepare(), pack(), the call of
///           HiPS, unpack().
/// Owns      memory for what has to be packed. The program's buffers are read and written from pack() on to
///           unpack().
/// Threads   one.
class ProgramCall : public HostedCall {
 public:
  ProgramCall(const CallNames& names, MPI_Comm of) : HostedCall(names.blocking, of), names_(names) {}

  /// Says in `args` what HiPS has to do, but for what prepare() completes; false where the host is to carry
  /// the call, for `reason`, which lives as long as the program. By what MPI makes equal on all ranks, or
  /// what is wrong on this one.
  virtual bool accept(const CommRecord& record, const char*& reason) = 0;
  /// Is the call worth setting a communicator up?
  [[nodiscard]] virtual bool sets_up() const { return true; }

  /// Calls the host's non-blocking form as the program did.
  [[nodiscard]] virtual int start_on_host(MPI_Request* request) const = 0;
  /// From here on the call is the non-blocking one.
  void be_nonblocking() { name = names_.nonblocking; }
  /// Does the call have memory of its own while it is under way? Once it has been accepted.
  [[nodiscard]] virtual bool packs() const { return false; }
  /// Takes hold of what the program may free before unpack(): for a call that is under way when the function
  /// returns. The host's error code.
  virtual int outlive() { return MPI_SUCCESS; }

 protected:
  ProgramCall(ProgramCall&&) = default;

  static constexpr const char* kNothing = "nothing to move";
  static constexpr const char* kWrong = "arguments that are wrong here";

  /// Type and operation of a reduction; as MPI_Allreduce decides.
  bool accept_reduction(MPI_Datatype type, MPI_Op op, const char*& reason);
  void set_in(const void* in) { args.in = static_cast<const std::byte*>(in); }
  void set_out(void* out) { args.out = static_cast<std::byte*>(out); }

 private:
  const CallNames& names_;
};

/// On a communicator that has a plan: does HiPS accept the call? Else the report and the peers know why not.
bool accepts(Process& process, CommRecord& record, ProgramCall& call);

}  // namespace hips::mpi
