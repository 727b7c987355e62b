#include "lib/mpi/program_call.hpp"

#include <string>

#include "lib/mpi/comm_record.hpp"
#include "lib/mpi/predefined.hpp"
#include "lib/mpi/process.hpp"

namespace hips::mpi {

bool ProgramCall::accept_reduction(MPI_Datatype type, MPI_Op op, const char*& reason) {
  const Reduction reduction = reduction_of(type, op);
  args.type = reduction.type;
  args.op = reduction.op;
  reason = reduction.verdict == Reduction::Verdict::kOtherType ? "reduction of another type"
           : reduction.verdict == Reduction::Verdict::kOtherOp ? "reduction by another op"
                                                               : "op that is not for its type";
  return reduction.verdict == Reduction::Verdict::kTake;
}

bool accepts(Process& process, CommRecord& record, ProgramCall& call) {
  if (record.communicator() == nullptr) {
    if (process.reports()) process.report().add_declined(record.declined());
    return false;
  }
  const char* reason = "";
  if (call.accept(record, reason)) return true;
  // A peer that passed something else may wait for us in HiPS: let it find out.
  record.communicator()->note_declined(call.name);
  if (process.reports()) process.report().add_declined(std::string(call.name) + ": " + reason);
  return false;
}

}  // namespace hips::mpi
