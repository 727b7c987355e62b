#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>

#include <hips/types.hpp>

#include "lib/mpi/count.hpp"

namespace hips::mpi {

class CommRecord;
class Process;

/// A reduction to all ranks, blocking or not, as the program called it.
struct ReductionCall {
  const void* in;
  void* out;
  Count count;
  MPI_Datatype type;
  MPI_Op op;
  MPI_Comm comm;

  /// Where the input lies.
  [[nodiscard]] const void* source() const { return in == MPI_IN_PLACE ? out : in; }
};

/// A call that HiPS can carry, in its own words.
struct HipsCall {
  std::uint64_t count;
  DataType type;
  ReduceOp op;
  [[nodiscard]] std::uint64_t bytes() const { return count * size_of(type); }
};

/// On a communicator that has a plan: the call in HiPS' words, or empty where type, op or count are the
/// host's, which the report and the peers then know. By what MPI makes equal on all ranks.
std::optional<HipsCall> accept(Process& process, CommRecord& record, const ReductionCall& call);

/// Before the host carries a call that HiPS could; the peers all do the same. `reason` is for the report.
void leave_to_host(Process& process, CommRecord& record, const char* reason);

}  // namespace hips::mpi
