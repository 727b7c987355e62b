#include "lib/mpi/collectives.hpp"

#include <exception>
#include <new>

#include "lib/mpi/barrier_call.hpp"
#include "lib/mpi/bcast_call.hpp"
#include "lib/mpi/carry.hpp"
#include "lib/mpi/comm_record.hpp"
#include "lib/mpi/error.hpp"
#include "lib/mpi/gather_calls.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/inside.hpp"
#include "lib/mpi/process.hpp"
#include "lib/mpi/reduce_call.hpp"
#include "lib/mpi/reduce_scatter_calls.hpp"

namespace hips::mpi {
namespace {

int route(Process& process, ProgramCall& call) {
  // A null handle is an error, and the host has the words for it.
  if (call.comm == MPI_Comm{} || call.comm == host()->no_comm) return call.on_host();
  CommRecord* const record =
      call.sets_up() ? CommRecord::of(process, call.comm) : CommRecord::existing(process, call.comm);
  if (record == nullptr) return call.on_host();
  if (!record->failure().ok()) return raise_error(call.comm, *record, record->failure(), call.name);
  return accepts(process, *record, call) ? carry(process, *record, call) : call.on_host();
}

int enter(ProgramCall&& call) {
  if (t_inside) return call.on_host();
  Process* const process = Process::active();
  if (process == nullptr) return call.on_host();
  const Inside inside;
  // Nothing may be thrown into a program of C or Fortran.
  try {
    return route(*process, call);
  } catch (const std::bad_alloc&) {
    return raise_code(call.comm, MPI_ERR_NO_MEM);
  } catch (const std::exception&) {
    return raise_code(call.comm, MPI_ERR_INTERN);
  }
}

}  // namespace

int barrier(MPI_Comm comm) {
  return enter(BarrierCall(comm));
}

int bcast(void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm) {
  return enter(BcastCall(buffer, count, type, root, comm));
}

int reduce(const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  return enter(ReduceCall(in, out, count, type, op, root, comm));
}

int reduce_scatter(const void* in, void* out, Counts counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return enter(ReduceScatterCountsCall(in, out, counts, type, op, comm));
}

int reduce_scatter_block(const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm) {
  return enter(ReduceScatterBlockCall(in, out, count, type, op, comm));
}

int allgather(const void* in, Count in_count, MPI_Datatype in_type, void* out, Count out_count,
              MPI_Datatype out_type, MPI_Comm comm) {
  return enter(AllgatherCall(in, in_count, in_type, out, out_count, out_type, comm));
}

int allgatherv(const void* in, Count in_count, MPI_Datatype in_type, void* out, Counts counts,
               Places displacements, MPI_Datatype out_type, MPI_Comm comm) {
  return enter(AllgathervCall(in, in_count, in_type, out, counts, displacements, out_type, comm));
}

}  // namespace hips::mpi
