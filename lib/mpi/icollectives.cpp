#include "lib/mpi/icollectives.hpp"

#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "lib/mpi/barrier_call.hpp"
#include "lib/mpi/bcast_call.hpp"
#include "lib/mpi/carry.hpp"
#include "lib/mpi/comm_record.hpp"
#include "lib/mpi/error.hpp"
#include "lib/mpi/gather_calls.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/inside.hpp"
#include "lib/mpi/nonblocking_request.hpp"
#include "lib/mpi/process.hpp"
#include "lib/mpi/reduce_call.hpp"
#include "lib/mpi/reduce_scatter_calls.hpp"
#include "lib/mpi/reduction_call.hpp"

namespace hips::mpi {
namespace {

/// Moves a call to where it outlives the function that the program called.
using Move = std::function<std::unique_ptr<ProgramCall>()>;

/// Makes the request of a call that HiPS carries.
int take(CommRecord& record, ProgramCall& call, const Move& move, MPI_Request* request) {
  std::unique_ptr<ProgramCall> moved = call.packs() ? move() : nullptr;
  ProgramCall& one = moved ? *moved : call;
  prepare(record, one);
  int code = one.pack();
  if (code == MPI_SUCCESS && moved) code = one.outlive();
  if (code != MPI_SUCCESS) {
    // The others wait for this rank in HiPS.
    record.communicator()->note_declined(one.name);
    return raise_code(one.comm, code);
  }
  const MPI_Comm comm = one.comm;
  const char* const name = one.name;
  const comm::CallArgs args = one.args;
  auto made = make_nonblocking(record, name, args, std::move(moved));
  if (!made) return raise_error(comm, record, made.error(), name);
  return hand_out(comm, std::move(*made), true, request);
}

int route(Process& process, ProgramCall& call, const Move& move, MPI_Request* request) {
  // Null handles and addresses are errors, and the host has the words for them.
  if (call.comm == MPI_Comm{} || call.comm == host()->no_comm || request == nullptr)
    return call.start_on_host(request);
  CommRecord* const record = CommRecord::existing(process, call.comm);
  if (record == nullptr) {
    if (process.reports())
      process.report().add_declined(std::string(call.name) +
                                    " before the first blocking collective of its communicator");
    return call.start_on_host(request);
  }
  if (!record->failure().ok()) return raise_error(call.comm, *record, record->failure(), call.name);
  if (!accepts(process, *record, call)) return call.start_on_host(request);
  if (record->guard().way(call.guard_class()) == Way::kHost) {
    leave_to_host(process, *record, "the host is faster, says the guard");
    return call.start_on_host(request);
  }
  return take(*record, call, move, request);
}

int enter(ProgramCall& call, const Move& move, MPI_Request* request) {
  if (t_inside) return call.start_on_host(request);
  Process* const process = Process::active();
  if (process == nullptr) return call.start_on_host(request);
  const Inside inside;
  const MPI_Comm comm = call.comm;
  call.be_nonblocking();
  // Nothing may be thrown into a program of C or Fortran.
  try {
    return route(*process, call, move, request);
  } catch (const std::bad_alloc&) {
    return raise_code(comm, MPI_ERR_NO_MEM);
  } catch (const std::exception&) {
    return raise_code(comm, MPI_ERR_INTERN);
  }
}

template <typename Call>
int start(Call call, MPI_Request* request) {
  return enter(
      call, [&call] { return std::make_unique<Call>(std::move(call)); }, request);
}

}  // namespace

int ibarrier(MPI_Comm comm, MPI_Request* request) {
  return start(BarrierCall(comm), request);
}

int ibcast(void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  return start(BcastCall(buffer, count, type, root, comm), request);
}

int ireduce(const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
            MPI_Request* request) {
  return start(ReduceCall(in, out, count, type, op, root, comm), request);
}

int ireduce_scatter(const void* in, void* out, Counts counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                    MPI_Request* request) {
  return start(ReduceScatterCountsCall(in, out, counts, type, op, comm), request);
}

int ireduce_scatter_block(const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                          MPI_Request* request) {
  return start(ReduceScatterBlockCall(in, out, count, type, op, comm), request);
}

int iallgather(const void* in, Count in_count, MPI_Datatype in_type, void* out, Count out_count,
               MPI_Datatype out_type, MPI_Comm comm, MPI_Request* request) {
  return start(AllgatherCall(in, in_count, in_type, out, out_count, out_type, comm), request);
}

int iallgatherv(const void* in, Count in_count, MPI_Datatype in_type, void* out, Counts counts,
                Places displacements, MPI_Datatype out_type, MPI_Comm comm, MPI_Request* request) {
  return start(AllgathervCall(in, in_count, in_type, out, counts, displacements, out_type, comm), request);
}

}  // namespace hips::mpi
