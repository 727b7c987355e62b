#include "lib/base/log.hpp"
#include "lib/base/wait/clock.hpp"
#include "lib/mpi/calls/admission.hpp"
#include "lib/mpi/calls/dispatch.hpp"
#include "lib/mpi/tuning/trial.hpp"

namespace hips::mpi::detail {
namespace {

/// As execute(), with the time for the report.
ExecutedCall execute_and_count(CommRecord& record, const NativeCollective& native, ProgramCall& call) {
  const SystemClock& clock = SystemClock::instance();
  const std::int64_t begin_ns = record.counts() ? clock.now_ns() : 0;
  const ExecutedCall done = execute(record, native, call);
  if (record.counts() && done.code == MPI_SUCCESS)
    record.count({.calls = 1, .bytes = call.bytes(), .time_ns = clock.now_ns() - begin_ns});
  return done;
}

/// Makes the next trial of an undecided class, and decides after the last one.
int run_trial(CommRecord& record, const NativeCollective& native, ProgramCall& call) {
  const MPI_Comm comm = call.passed.comm;
  const char* const function = native.name(CallForm::kBlocking);
  const CallClass of = call.call_class();
  comm::Communicator& communicator = *record.communicator();
  Guard& guard = record.guard();
  // A call that is refused on this rank alone does not take place, so its arguments must not be compared.
  if (const Status wrong = comm::check_arguments(call.args, record.rank(), record.size()); !wrong.ok())
    return raise_error(comm, record, wrong, function);
  if (const Status status = compare_arguments(communicator, call.args); !status.ok()) {
    record.fail(status);
    return raise_error(comm, record, status, function);
  }

  const bool is_native = guard.next(of) == TuningChoice::kNative;
  if (is_native) delegate_by_guard("trial of native MPI by the guard", record);
  const SystemClock& clock = SystemClock::instance();
  const std::int64_t begin_ns = clock.now_ns();
  const auto [code, failed_everywhere] =
      is_native ? ExecutedCall{native.call(call.passed), false} : execute_and_count(record, native, call);
  if (failed_everywhere) return code;
  // After an error of this rank alone the others count the trial, so this rank does, too.
  guard.add_sample(of, clock.now_ns() - begin_ns);
  if (!guard.complete(of)) return code;
  if (const Status status = max_over_ranks(communicator, guard.samples(of)); !status.ok())
    return raise_error(comm, record, status, function);
  if (const TuningDecision* const decision = guard.decide(of))
    log::info(log::Subsystem::kMpi, "{}: {}, {} to {} bytes: HiPS {} ns, native MPI {} ns: {} executes them",
              record.name(), to_string(of.kind), of.least_bytes(), of.most_bytes(), decision->hips_ns,
              decision->native_ns, decision->winner == TuningChoice::kNative ? "native MPI" : "HiPS");
  return code;
}

}  // namespace

CommRecord* set_up_or_delegate(const NativeCollective& native, const CollectiveArguments& passed,
                               SizeOfCall size_of, int& code) {
  CommRecord* record = record_of(passed.comm);
  if (record == nullptr) {
    if (is_null(passed.comm))
      report_delegated("MPI_COMM_NULL");
    else if (size_of != nullptr)
      record = CommRecord::make(MpiProcess::instance(), passed.comm);
  }
  if (record != nullptr && record->waits() && size_of != nullptr) {
    if (!record->is_due()) {
      const std::optional<std::uint64_t> bytes = size_of(passed, *record);
      code = native.call(passed);
      // What this rank alone was refused did not take place: the others do not count it either.
      record->note_waiting(code == MPI_SUCCESS ? bytes : std::nullopt);
      return nullptr;
    }
    record->adopt(MpiProcess::instance());
  }
  switch (admit_record(record, native.name(CallForm::kBlocking), code)) {
    case Admission::kHips:
      return record;
    case Admission::kNative:
      code = native.call(passed);
      break;
    case Admission::kFailed:
      break;
  }
  return nullptr;
}

int delegate(CommRecord& record, const NativeCollective& native, const CollectiveArguments& passed,
             Eligibility eligibility) {
  delegate_as(eligibility, record, native, CallForm::kBlocking, passed);
  return native.call(passed);
}

int call_guarded(CommRecord& record, const NativeCollective& native, ProgramCall& call) {
  if (record.guard().choice(call.call_class()) == TuningChoice::kNative) {
    delegate_by_guard("faster in the trials", record);
    return native.call(call.passed);
  }
  prepare(record, native, call);
  return run_trial(record, native, call);
}

int execute_counted(CommRecord& record, const NativeCollective& native, ProgramCall& call) {
  return execute_and_count(record, native, call).code;
}

int raise_exception(MPI_Comm comm) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return raise_code(comm, MPI_ERR_NO_MEM);
  } catch (...) {
    return raise_code(comm, MPI_ERR_INTERN);
  }
}

void note_shortage(CommRecord& record, const char* function) {
  record.note_delegated(function);
}

}  // namespace hips::mpi::detail
