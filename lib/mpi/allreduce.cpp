#include "lib/mpi/allreduce.hpp"

#include <cstdint>
#include <exception>
#include <new>
#include <string>

#include "lib/base/clock.hpp"
#include "lib/base/log.hpp"
#include "lib/comm/watched_communicator.hpp"
#include "lib/mpi/comm_record.hpp"
#include "lib/mpi/error.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/predefined.hpp"
#include "lib/mpi/preload_tls.hpp"
#include "lib/mpi/process.hpp"
#include "lib/mpi/trial.hpp"

namespace hips::mpi {
namespace {

using AllreduceFunction = int(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);

/// Inside a call of this thread: whatever the host or a tool calls in turn belongs to it and is not counted.
thread_local bool t_inside HIPS_TLS_OF_PRELOADED = false;

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

/// A call that HiPS can carry, in its own words.
struct HipsCall {
  std::uint64_t count;
  DataType type;
  ReduceOp op;
  [[nodiscard]] std::uint64_t bytes() const { return count * size_of(type); }
};

int run(Process& process, CommRecord& record, const Call& call, const HipsCall& ours) {
  const void* in = call.in == MPI_IN_PLACE ? call.out : call.in;
  SystemClock& clock = SystemClock::instance();
  const std::int64_t begin_ns = process.reports() ? clock.now_ns() : 0;
  const Status status = record.communicator()->allreduce(in, call.out, ours.count, ours.type, ours.op);
  if (!status.ok()) return raise_error(call.comm, record, status);
  if (process.reports()) record.count({1, ours.bytes(), clock.now_ns() - begin_ns});
  return MPI_SUCCESS;
}

/// Before the host carries a call that HiPS could; the peers all do the same.
void leave_to_host(Process& process, CommRecord& record, const char* reason) {
  // A peer that passed another op or a count of another size may wait for us in HiPS: let it find out.
  record.communicator()->note_declined("MPI_Allreduce of a size and op that the host MPI carries");
  if (process.reports()) process.report().add_declined(reason);
}

/// A call whose class has no verdict yet: the next trial, and the verdict after the last one.
int run_trial(Process& process, CommRecord& record, const Call& call, const HipsCall& ours) {
  const auto& [count, type, op] = ours;
  const GuardClass of = GuardClass::of(ours.bytes(), op);
  comm::Communicator& communicator = *record.communicator();
  Guard& guard = record.guard();
  // A call that is refused here alone has not taken place, so it must not be announced either.
  const void* in = call.in == MPI_IN_PLACE ? call.out : call.in;
  if (const Status wrong =
          comm::check_arguments(comm::Communicator::allreduce_args(in, call.out, count, type, op),
                                communicator.rank(), communicator.size());
      !wrong.ok())
    return raise_error(call.comm, record, wrong);
  if (const Status status = announce(communicator, count, type, op); !status.ok()) {
    record.fail(status);
    return raise_error(call.comm, record, status);
  }

  const Way way = guard.next(of);
  if (way == Way::kHost) leave_to_host(process, record, "trial of the host by the guard");
  const SystemClock& clock = SystemClock::instance();
  const std::int64_t begin_ns = clock.now_ns();
  const int code = way == Way::kHost ? call_host(call) : run(process, record, call, ours);
  // HiPS has failed on all ranks. An error of the host is this rank's own, and the others go on.
  if (way == Way::kHips && code != MPI_SUCCESS) return code;
  guard.took(of, clock.now_ns() - begin_ns);
  if (!guard.complete(of)) return code;
  if (const Status status = max_over_ranks(communicator, guard.samples(of)); !status.ok())
    return raise_error(call.comm, record, status);
  const GuardVerdict verdict = guard.settle(of);
  log::info(log::Subsystem::kMpi, "{}: {}, {} to {} bytes: HiPS {} ns, host {} ns, goes to {}", record.name(),
            to_string(of.op), of.least_bytes(), of.most_bytes(), verdict.hips_ns, verdict.host_ns,
            verdict.winner == Way::kHost ? "the host" : "HiPS");
  return code;
}

/// A call that HiPS could carry.
int take(Process& process, CommRecord& record, const Call& call, const Reduction& reduction) {
  const HipsCall ours{static_cast<std::uint64_t>(call.count), reduction.type, reduction.op};
  switch (record.guard().way(GuardClass::of(ours.bytes(), ours.op))) {
    case Way::kHips:
      return run(process, record, call, ours);
    case Way::kHost:
      leave_to_host(process, record, "the host is faster, says the guard");
      return call_host(call);
    case Way::kTrial:
      break;
  }
  return run_trial(process, record, call, ours);
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
  if (verdict == Verdict::kTake) return take(process, *record, call, reduction);
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
