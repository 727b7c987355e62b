#include "lib/mpi/reduction_call.hpp"

#include <string>

#include "lib/mpi/comm_record.hpp"
#include "lib/mpi/predefined.hpp"
#include "lib/mpi/process.hpp"

namespace hips::mpi {
namespace {

enum class Verdict { kTake, kOtherType, kOtherOp, kNotAllowed, kNothing, kWrong };

/// On a communicator that has a plan.
Verdict judge(const ReductionCall& call, const Reduction& reduction) {
  switch (reduction.verdict) {
    case Reduction::Verdict::kTake:
      break;
    case Reduction::Verdict::kOtherType:
      return Verdict::kOtherType;
    case Reduction::Verdict::kOtherOp:
      return Verdict::kOtherOp;
    case Reduction::Verdict::kNotAllowed:
      return Verdict::kNotAllowed;
  }
  if (call.count.value() == 0) return Verdict::kNothing;
  if (!may_be(call.count.value(), static_cast<std::int64_t>(size_of(reduction.type)))) return Verdict::kWrong;
  return Verdict::kTake;
}

/// For the report.
std::string reason_for(Verdict verdict, const ReductionCall& call) {
  switch (verdict) {
    case Verdict::kTake:
      break;
    case Verdict::kOtherType:
      return "type " + name_of_type(call.type);
    case Verdict::kOtherOp:
      return "op " + name_of_op(call.op);
    case Verdict::kNotAllowed:
      return name_of_op(call.op) + " of " + name_of_type(call.type);
    case Verdict::kNothing:
      return "count 0";
    case Verdict::kWrong:
      return "negative or impossible count";
  }
  return {};
}

/// For peers that passed something else and wait in HiPS: literals, because they are read later.
const char* note_for(Verdict verdict) {
  switch (verdict) {
    case Verdict::kTake:
      break;
    case Verdict::kOtherType:
      return "MPI_Allreduce of another type";
    case Verdict::kOtherOp:
      return "MPI_Allreduce of another op";
    case Verdict::kNotAllowed:
      return "MPI_Allreduce of an op that is not for its type";
    case Verdict::kNothing:
      return "MPI_Allreduce of count 0";
    case Verdict::kWrong:
      return "MPI_Allreduce of a negative or impossible count";
  }
  return "MPI_Allreduce";
}

/// A peer that passed another type, op or count may wait for us in HiPS: lets it find out.
[[gnu::noinline]] void decline(Process& process, CommRecord& record, const ReductionCall& call,
                               Verdict verdict) {
  record.communicator()->note_declined(note_for(verdict));
  if (process.reports()) process.report().add_declined(reason_for(verdict, call));
}

}  // namespace

std::optional<HipsCall> accept(Process& process, CommRecord& record, const ReductionCall& call) {
  const Reduction reduction = reduction_of(call.type, call.op);
  const Verdict verdict = judge(call, reduction);
  if (verdict == Verdict::kTake)
    return HipsCall{static_cast<std::uint64_t>(call.count.value()), reduction.type, reduction.op};
  decline(process, record, call, verdict);
  return std::nullopt;
}

void leave_to_host(Process& process, CommRecord& record, const char* reason) {
  // A peer that passed another op or a count of another size may wait for us in HiPS: let it find out.
  record.communicator()->note_declined("a collective of a kind and size that the host MPI carries");
  if (process.reports()) process.report().add_declined(reason);
}

}  // namespace hips::mpi
