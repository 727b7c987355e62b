#include "lib/mpi/allreduce.hpp"

#include <cstdint>
#include <exception>
#include <new>
#include <string>

#include "lib/base/clock.hpp"
#include "lib/mpi/comm_record.hpp"
#include "lib/mpi/error.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/predefined.hpp"
#include "lib/mpi/process.hpp"

namespace hips::mpi {
namespace {

using AllreduceFunction = int(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);

/// Inside a call of this thread: whatever the host or a tool calls in turn belongs to it and is not counted.
thread_local bool t_inside = false;

class Inside {
 public:
  Inside() { t_inside = true; }
  ~Inside() { t_inside = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

struct Call {
  const void* in;
  void* out;
  int count;
  MPI_Datatype type;
  MPI_Op op;
  MPI_Comm comm;
};

/// Also under an MPI of another ABI: its handles pass through our arguments unread.
int call_host(const Call& call) {
  static auto* const function = reinterpret_cast<AllreduceFunction*>(host_symbol("PMPI_Allreduce"));
  return function(call.in, call.out, call.count, call.type, call.op, call.comm);
}

enum class Verdict { kTake, kOtherType, kOtherOp, kNotAllowed, kNothing, kNegative };

/// On a communicator that has a plan.
Verdict judge(const Call& call, const Reduction& reduction) {
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
  if (call.count == 0) return Verdict::kNothing;
  if (call.count < 0) return Verdict::kNegative;
  return Verdict::kTake;
}

/// For the report.
std::string reason_for(Verdict verdict, const Call& call) {
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
    case Verdict::kNegative:
      return "negative count";
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
    case Verdict::kNegative:
      return "MPI_Allreduce of a negative count";
  }
  return "MPI_Allreduce";
}

int run(Process& process, CommRecord& record, const Call& call, const Reduction& reduction) {
  const void* in = call.in == MPI_IN_PLACE ? call.out : call.in;
  const auto count = static_cast<std::uint64_t>(call.count);
  SystemClock& clock = SystemClock::instance();
  const std::int64_t begin_ns = process.reports() ? clock.now_ns() : 0;
  const Status status = record.communicator()->allreduce(in, call.out, count, reduction.type, reduction.op);
  if (!status.ok()) return raise_error(call.comm, record, status);
  if (process.reports()) record.count({1, count * size_of(reduction.type), clock.now_ns() - begin_ns});
  return MPI_SUCCESS;
}

int route(Process& process, const Call& call) {
  if (call.comm == nullptr || call.comm == host()->no_comm) {
    if (process.reports()) process.report().add_declined("MPI_COMM_NULL");
    return call_host(call);
  }
  CommRecord* record = CommRecord::of(process, call.comm);
  if (!record) return call_host(call);
  if (!record->failure().ok()) return raise_error(call.comm, *record, record->failure());
  if (!record->communicator()) {
    if (process.reports()) process.report().add_declined(record->declined());
    return call_host(call);
  }
  const Reduction reduction = reduction_of(call.type, call.op);
  const Verdict verdict = judge(call, reduction);
  if (verdict == Verdict::kTake) return run(process, *record, call, reduction);
  // A peer that passed another type, op or count may wait for us in HiPS: let it find out.
  record->communicator()->note_declined(note_for(verdict));
  if (process.reports()) process.report().add_declined(reason_for(verdict, call));
  return call_host(call);
}

}  // namespace

int allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const Call call{in, out, count, type, op, comm};
  if (t_inside) return call_host(call);
  Process* process = Process::active();
  if (!process) return call_host(call);
  const Inside inside;
  // Nothing may be thrown into a program of C or Fortran.
  try {
    return route(*process, call);
  } catch (const std::bad_alloc&) {
    return host()->Comm_call_errhandler(comm, MPI_ERR_NO_MEM), MPI_ERR_NO_MEM;
  } catch (const std::exception&) {
    return host()->Comm_call_errhandler(comm, MPI_ERR_INTERN), MPI_ERR_INTERN;
  }
}

}  // namespace hips::mpi
