#include "lib/mpi/iallreduce.hpp"

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "lib/mpi/comm_record.hpp"
#include "lib/mpi/error.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/host_requests.hpp"
#include "lib/mpi/inside.hpp"
#include "lib/mpi/nonblocking_request.hpp"
#include "lib/mpi/process.hpp"

namespace hips::mpi {
namespace {

/// Carries a call that has been accepted, or says why not; null where the host is to do it, on all ranks.
using Made = Result<std::unique_ptr<HipsRequest>>;

struct Nonblocking {
  static constexpr bool kStarts = true;
  const char* name = "MPI_Iallreduce";

  int call_host(const ReductionCall& call, MPI_Request* request) const {
    if (call.count.is_large()) {
      using Large = int(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*);
      static auto* const large = of_host<Large>("PMPI_Iallreduce_c");
      return large(call.in, call.out, call.count.value(), call.type, call.op, call.comm, request);
    }
    return host_requests().Iallreduce(call.in, call.out, call.count.small(), call.type, call.op, call.comm,
                                      request);
  }
  static CommRecord* record(Process& process, MPI_Comm comm) {
    CommRecord* const record = CommRecord::existing(process, comm);
    if (record == nullptr && process.reports())
      process.report().add_declined(
          "MPI_Iallreduce before the first blocking collective of its communicator");
    return record;
  }
  Made make(Process&, CommRecord& record, const ReductionCall& call, const HipsCall& ours) const {
    const auto args =
        comm::Communicator::allreduce_args(call.source(), call.out, ours.count, ours.type, ours.op);
    return make_nonblocking(record, name, args, nullptr);
  }
};

struct Persistent {
  static constexpr bool kStarts = false;
  const AllreduceInit& init;
  MPI_Info info;
  const char* name = init.name;

  int call_host(const ReductionCall& call, MPI_Request* request) const {
    if (call.count.is_large())
      return init.host_large(call.in, call.out, call.count.value(), call.type, call.op, call.comm, info,
                             request);
    return init.host(call.in, call.out, call.count.small(), call.type, call.op, call.comm, info, request);
  }
  static CommRecord* record(Process& process, MPI_Comm comm) { return CommRecord::of(process, comm); }
  Made make(Process& process, CommRecord& record, const ReductionCall& call, const HipsCall& ours) const {
    auto own = record.make_another(process);
    if (!own) {
      const std::string shortage = record.shortage(own.error());
      if (shortage.empty()) return fail(own.error());
      if (process.reports()) process.report().add_declined(shortage);
      return nullptr;
    }
    auto made = (*own)->allreduce_init(call.source(), call.out, ours.count, ours.type, ours.op);
    if (!made) return fail(made.error());
    return std::make_unique<HipsRequest>(record.shared_from_this(), std::move(*own), std::move(*made), name,
                                         ours.bytes());
  }
};

/// Makes, starts where that is the form's, and gives the handle away.
template <typename Form>
int take(Process& process, CommRecord& record, const Form& form, const ReductionCall& call,
         const HipsCall& ours, MPI_Request* request) {
  Made made = form.make(process, record, call, ours);
  if (!made) return raise_error(call.comm, record, made.error(), form.name);
  if (!*made) return form.call_host(call, request);
  return hand_out(call.comm, std::move(*made), Form::kStarts, request);
}

template <typename Form>
int route(Process& process, const Form& form, const ReductionCall& call, MPI_Request* request) {
  // Null handles and addresses are errors, and the host has the words for them.
  if (call.comm == MPI_Comm{} || call.comm == host()->no_comm || request == nullptr)
    return form.call_host(call, request);
  CommRecord* const record = Form::record(process, call.comm);
  if (record == nullptr) return form.call_host(call, request);
  if (!record->failure().ok()) return raise_error(call.comm, *record, record->failure(), form.name);
  if (record->communicator() == nullptr) {
    if (process.reports()) process.report().add_declined(record->declined());
    return form.call_host(call, request);
  }
  const auto ours = accept(process, *record, call);
  if (!ours) return form.call_host(call, request);
  if (record->guard().way(GuardClass::of(ours->bytes(), ours->op)) == Way::kHost) {
    leave_to_host(process, *record, "the host is faster, says the guard");
    return form.call_host(call, request);
  }
  return take(process, *record, form, call, *ours, request);
}

template <typename Form>
int enter(const Form& form, const ReductionCall& call, MPI_Request* request) {
  if (t_inside) return form.call_host(call, request);
  Process* const process = Process::active();
  if (process == nullptr) return form.call_host(call, request);
  const Inside inside;
  // Nothing may be thrown into a program of C or Fortran.
  try {
    return route(*process, form, call, request);
  } catch (const std::bad_alloc&) {
    return raise_code(call.comm, MPI_ERR_NO_MEM);
  } catch (const std::exception&) {
    return raise_code(call.comm, MPI_ERR_INTERN);
  }
}

}  // namespace

int iallreduce(const ReductionCall& call, MPI_Request* request) {
  return enter(Nonblocking{}, call, request);
}

int allreduce_init(const AllreduceInit& init, const ReductionCall& call, MPI_Info info,
                   MPI_Request* request) {
  return enter(Persistent{init, info}, call, request);
}

}  // namespace hips::mpi
