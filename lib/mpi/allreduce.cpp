#include "lib/mpi/allreduce.hpp"

#include <cstdint>
#include <exception>
#include <new>

#include "lib/mpi/carry.hpp"
#include "lib/mpi/comm_record.hpp"
#include "lib/mpi/error.hpp"
#include "lib/mpi/guard.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/inside.hpp"
#include "lib/mpi/process.hpp"
#include "lib/mpi/reduction_call.hpp"

namespace hips::mpi {
namespace {

constexpr const char* kName = "MPI_Allreduce";

/// Also under an MPI of another ABI: its handles pass through our arguments unread.
int call_host(const ReductionCall& call) {
  if (call.count.is_large()) {
    using Large = int(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
    static auto* const large = of_host<Large>("PMPI_Allreduce_c");
    return large(call.in, call.out, call.count.value(), call.type, call.op, call.comm);
  }
  static auto* const function = of_host<decltype(PMPI_Allreduce)>("PMPI_Allreduce");
  return function(call.in, call.out, call.count.small(), call.type, call.op, call.comm);
}

class HostedAllreduce final : public HostedCall {
 public:
  HostedAllreduce(const ReductionCall& call, const HipsCall& ours)
      : HostedCall(kName, call.comm), call_(call) {
    args = comm::Communicator::allreduce_args(call.source(), call.out, ours.count, ours.type, ours.op);
  }
  [[nodiscard]] int on_host() const override { return call_host(call_); }

 private:
  const ReductionCall& call_;
};

/// A call of this thread that went straight to HiPS: the next one alike does, too, as handles of predefined
/// objects are never reused, that of the communicator not before num_removed() has changed, and what the
/// guard has given HiPS once it leaves there.
struct Straight {
  MPI_Comm comm;
  MPI_Datatype type;
  MPI_Op op;
  std::int64_t count;
  CommRecord* record;
  std::uint64_t num_removed;
  HipsCall ours;

  [[nodiscard]] bool is_like(const ReductionCall& call) const {
    return comm == call.comm && type == call.type && op == call.op && count == call.count.value();
  }
};
thread_local Straight t_straight HIPS_TLS_OF_PRELOADED{};

int go_straight(CommRecord& record, const ReductionCall& call, const HipsCall& ours) {
  const Status status =
      record.communicator()->allreduce(call.source(), call.out, ours.count, ours.type, ours.op);
  return status.ok() ? MPI_SUCCESS : raise_error(call.comm, record, status, kName);
}

int route(Process& process, const ReductionCall& call) {
  if (call.comm == MPI_Comm{} || call.comm == host()->no_comm) {
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
  if (!ours) return call_host(call);
  // Of a small call every step is felt: straight on where nothing is to be decided or counted.
  if (!process.reports() && record->guard().way(GuardClass::of(ours->bytes(), ours->op)) == Way::kHips) {
    t_straight = {call.comm, call.type, call.op, call.count.value(), record, process.num_removed(), *ours};
    return go_straight(*record, call, *ours);
  }
  HostedAllreduce hosted(call, *ours);
  return carry(process, *record, hosted);
}

}  // namespace

int allreduce(const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const ReductionCall call{in, out, count, type, op, comm};
  if (t_inside) return call_host(call);
  Process* process = Process::active();
  if (!process) return call_host(call);
  const Inside inside;
  // Nothing may be thrown into a program of C or Fortran.
  try {
    const Straight& last = t_straight;
    if (last.is_like(call) && last.record != nullptr && last.num_removed == process->num_removed() &&
        last.record->failure().ok())
      return go_straight(*last.record, call, last.ours);
    return route(*process, call);
  } catch (const std::bad_alloc&) {
    return host()->Comm_call_errhandler(comm, MPI_ERR_NO_MEM), MPI_ERR_NO_MEM;
  } catch (const std::exception&) {
    return host()->Comm_call_errhandler(comm, MPI_ERR_INTERN), MPI_ERR_INTERN;
  }
}

}  // namespace hips::mpi
