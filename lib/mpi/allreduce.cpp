#include "lib/mpi/allreduce.hpp"

#include <cstdint>
#include <exception>
#include <new>

#include "lib/base/clock.hpp"
#include "lib/base/log.hpp"
#include "lib/comm/watched_communicator.hpp"
#include "lib/mpi/comm_record.hpp"
#include "lib/mpi/error.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/inside.hpp"
#include "lib/mpi/process.hpp"
#include "lib/mpi/reduction_call.hpp"
#include "lib/mpi/trial.hpp"

namespace hips::mpi {
namespace {

using AllreduceFunction = int(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);

constexpr const char* kName = "MPI_Allreduce";

/// Also under an MPI of another ABI: its handles pass through our arguments unread.
int call_host(const ReductionCall& call) {
  static auto* const function = reinterpret_cast<AllreduceFunction*>(host_symbol("PMPI_Allreduce"));
  return function(call.in, call.out, call.count, call.type, call.op, call.comm);
}

int run(Process& process, CommRecord& record, const ReductionCall& call, const HipsCall& ours) {
  SystemClock& clock = SystemClock::instance();
  const std::int64_t begin_ns = process.reports() ? clock.now_ns() : 0;
  const Status status =
      record.communicator()->allreduce(call.source(), call.out, ours.count, ours.type, ours.op);
  if (!status.ok()) return raise_error(call.comm, record, status, kName);
  if (process.reports())
    record.count({.calls = 1, .bytes = ours.bytes(), .time_ns = clock.now_ns() - begin_ns});
  return MPI_SUCCESS;
}

/// A call whose class has no verdict yet: the next trial, and the verdict after the last one.
int run_trial(Process& process, CommRecord& record, const ReductionCall& call, const HipsCall& ours) {
  const auto& [count, type, op] = ours;
  const GuardClass of = GuardClass::of(ours.bytes(), op);
  comm::Communicator& communicator = *record.communicator();
  Guard& guard = record.guard();
  // A call that is refused here alone has not taken place, so it must not be announced either.
  if (const Status wrong =
          comm::check_arguments(comm::Communicator::allreduce_args(call.source(), call.out, count, type, op),
                                communicator.rank(), communicator.size());
      !wrong.ok())
    return raise_error(call.comm, record, wrong, kName);
  if (const Status status = announce(communicator, count, type, op); !status.ok()) {
    record.fail(status);
    return raise_error(call.comm, record, status, kName);
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
    return raise_error(call.comm, record, status, kName);
  const GuardVerdict verdict = guard.settle(of);
  log::info(log::Subsystem::kMpi, "{}: {}, {} to {} bytes: HiPS {} ns, host {} ns, goes to {}", record.name(),
            to_string(of.op), of.least_bytes(), of.most_bytes(), verdict.hips_ns, verdict.host_ns,
            verdict.winner == Way::kHost ? "the host" : "HiPS");
  return code;
}

/// A call that HiPS could carry.
int take(Process& process, CommRecord& record, const ReductionCall& call, const HipsCall& ours) {
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

int route(Process& process, const ReductionCall& call) {
  if (call.comm == nullptr || call.comm == host()->no_comm) {
    if (process.reports()) process.report().add_declined("MPI_COMM_NULL");
    return call_host(call);
  }
  CommRecord* record = CommRecord::of(process, call.comm);
  if (!record) return call_host(call);
  if (!record->failure().ok()) return raise_error(call.comm, *record, record->failure(), kName);
  if (!record->communicator()) {
    if (process.reports()) process.report().add_declined(record->declined());
    return call_host(call);
  }
  const auto ours = accept(process, *record, call);
  return ours ? take(process, *record, call, *ours) : call_host(call);
}

}  // namespace

int allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const ReductionCall call{in, out, count, type, op, comm};
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
