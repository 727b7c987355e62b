#include "lib/mpi/carry.hpp"

#include <new>

#include "lib/base/clock.hpp"
#include "lib/base/log.hpp"
#include "lib/mpi/comm_record.hpp"
#include "lib/mpi/error.hpp"
#include "lib/mpi/process.hpp"
#include "lib/mpi/reduction_call.hpp"
#include "lib/mpi/trial.hpp"

namespace hips::mpi {
namespace {

/// How a call of HiPS ended. What packing says is this rank's own error; what HiPS says is everybody's.
struct Ended {
  int code = MPI_SUCCESS;
  bool everywhere = false;
};

Ended run(Process& process, CommRecord& record, HostedCall& call) {
  SystemClock& clock = SystemClock::instance();
  const std::int64_t begin_ns = process.reports() ? clock.now_ns() : 0;
  if (const int code = call.pack(); code != MPI_SUCCESS) {
    // The others wait for this rank in HiPS.
    record.communicator()->note_declined(call.name);
    return {raise_code(call.comm, code), false};
  }
  const Status status = record.communicator()->call(call.args);
  if (!status.ok()) return {raise_error(call.comm, record, status, call.name), true};
  if (const int code = call.unpack(); code != MPI_SUCCESS) return {raise_code(call.comm, code), false};
  if (process.reports())
    record.count({.calls = 1,
                  .bytes = call.args.count * size_of(call.args.type),
                  .time_ns = clock.now_ns() - begin_ns});
  return {};
}

/// A call whose class has no verdict yet: the next trial, and the verdict after the last one.
int run_trial(Process& process, CommRecord& record, HostedCall& call) {
  const GuardClass of = call.guard_class();
  comm::Communicator& communicator = *record.communicator();
  Guard& guard = record.guard();
  // A call that is refused here alone has not taken place, so it must not be announced either.
  if (const Status wrong = comm::check_arguments(call.args, communicator.rank(), communicator.size());
      !wrong.ok())
    return raise_error(call.comm, record, wrong, call.name);
  if (const Status status = announce(communicator, call.args); !status.ok()) {
    record.fail(status);
    return raise_error(call.comm, record, status, call.name);
  }

  const Way way = guard.next(of);
  if (way == Way::kHost) leave_to_host(process, record, "trial of the host by the guard");
  const SystemClock& clock = SystemClock::instance();
  const std::int64_t begin_ns = clock.now_ns();
  const auto [code, everywhere] =
      way == Way::kHost ? Ended{call.on_host(), false} : run(process, record, call);
  // An error of this rank's own changes nothing for the others, who count the trial: so does this one.
  if (everywhere) return code;
  guard.took(of, clock.now_ns() - begin_ns);
  if (!guard.complete(of)) return code;
  if (const Status status = max_over_ranks(communicator, guard.samples(of)); !status.ok())
    return raise_error(call.comm, record, status, call.name);
  if (const GuardVerdict* const verdict = guard.settle(of))
    log::info(log::Subsystem::kMpi, "{}: {}, {} to {} bytes: HiPS {} ns, host {} ns, goes to {}",
              record.name(), to_string(of.kind), of.least_bytes(), of.most_bytes(), verdict->hips_ns,
              verdict->host_ns, verdict->winner == Way::kHost ? "the host" : "HiPS");
  return code;
}

}  // namespace

void prepare(CommRecord& record, HostedCall& call) {
  try {
    call.prepare(record);
  } catch (const std::bad_alloc&) {
    record.communicator()->note_declined(call.name);
    throw;
  }
}

int carry(Process& process, CommRecord& record, HostedCall& call) {
  switch (record.guard().way(call.guard_class())) {
    case Way::kHips:
      prepare(record, call);
      return run(process, record, call).code;
    case Way::kHost:
      leave_to_host(process, record, "the host is faster, says the guard");
      return call.on_host();
    case Way::kTrial:
      break;
  }
  prepare(record, call);
  return run_trial(process, record, call);
}

}  // namespace hips::mpi
