#include "lib/base/log.hpp"
#include "lib/base/wait/clock.hpp"
#include "lib/comm/fork_guard.hpp"
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
  if (record.counts() && done.code == MPI_SUCCESS) {
    const std::int64_t ns = clock.now_ns() - begin_ns;
    record.count({.calls = 1, .bytes = call.bytes(), .time_ns = ns});
    record.add_time(call.call_class(), true, ns);
  }
  return done;
}

/// Executes a call natively, with the time for the report.
int call_native(CommRecord* record, const NativeCollective& native, const CollectiveArguments& passed,
                const std::optional<CallClass>& of = {}) {
  if (record == nullptr || !record->counts()) return native.call(passed);
  const SystemClock& clock = SystemClock::instance();
  const std::int64_t begin_ns = clock.now_ns();
  const int code = native.call(passed);
  record->add_time(of, false, clock.now_ns() - begin_ns);
  return code;
}

/// Ends a trial that took `ns` here, and decides after the last one of its class. `code` is that of the program's call.
int end_trial(CommRecord& record, const NativeCollective& native, MPI_Comm comm, CallClass of,
              std::int64_t ns, int code) {
  Guard& guard = record.guard();
  guard.add_sample(of, ns, SystemClock::instance().now_ns());
  if (!guard.complete(of)) return code;
  const SystemClock& clock = SystemClock::instance();
  const std::int64_t begin_ns = clock.now_ns();
  const Status status = guard.is_review(of) ? mean_over_ranks(*record.communicator(), guard.samples(of))
                                            : max_over_ranks(*record.communicator(), guard.samples(of));
  record.add_trial_time(0, clock.now_ns() - begin_ns);
  if (!status.ok()) {
    // Other ranks may not have seen it.
    guard.begin_again(of);
    if (record.leaves_after(status)) record.leave_hips();
    return raise_error(comm, record, status, native.name(CallForm::kBlocking));
  }
  if (const TuningDecision* const decision = guard.decide(of)) {
    MpiProcess::instance().keep_decision(record.scope(), of, *decision);
    record.note_decision(of, *decision);
    log::info(log::Subsystem::kMpi, "{}: {}, {} to {} bytes: HiPS {} ns, native MPI {} ns: {} executes them",
              record.name(), to_string(of.kind), of.least_bytes(), of.most_bytes(), decision->hips_ns,
              decision->native_ns, decision->winner == TuningChoice::kNative ? "native MPI" : "HiPS");
  }
  return code;
}

/// Executes the call after a trial that native MPI has refused on this rank: the others' part of that trial.
int call_owed(CommRecord& record, const NativeCollective& native, const CollectiveArguments& passed) {
  const CallClass trial = record.pay();
  const std::int64_t begin_ns = SystemClock::instance().now_ns();
  const int code = native.call(passed);
  if (is_refusal(code)) {
    record.take_back_delegated();
    record.owe(trial);
    return code;
  }
  return end_trial(record, native, passed.comm, trial, SystemClock::instance().now_ns() - begin_ns, code);
}

/// Makes the next trial of an undecided class.
int run_trial(CommRecord& record, const NativeCollective& native, ProgramCall& call) {
  const MPI_Comm comm = call.passed.comm;
  const char* const function = native.name(CallForm::kBlocking);
  const CallClass of = call.call_class();
  comm::Communicator& communicator = *record.communicator();
  // A call that is refused on this rank alone does not take place, so its arguments must not be compared.
  if (const Status wrong = comm::check_arguments(call.args, record.rank(), record.size()); !wrong.ok())
    return raise_error(comm, record, wrong, function);
  if (const int code = call.check_types(); code != MPI_SUCCESS) return code;
  const SystemClock& clock = SystemClock::instance();
  std::int64_t begin_ns = clock.now_ns();
  const Status status = record.guard().is_review(of)
                            ? Status::success()
                            : compare_arguments(communicator, call.args, record.guard(), of);
  record.add_trial_time(clock.now_ns() - begin_ns, 0);
  if (!status.ok()) {
    // Of a communicator that has not failed all ranks know at this call what they passed.
    if (communicator.failure().ok())
      record.leave_hips();
    else
      return end_failed(record, native, call, status);
    return raise_error(comm, record, status, function);
  }

  const bool is_native = record.guard().next(of) == TuningChoice::kNative;
  if (is_native)
    delegate_by_guard(record.guard().is_review(of) ? "native MPI in a review by the guard"
                                                   : "trial of native MPI by the guard",
                      record);
  begin_ns = clock.now_ns();
  const auto [code, failed_everywhere, is_too_long] =
      is_native ? ExecutedCall{.code = call_native(&record, native, call.passed, of)}
                : execute_and_count(record, native, call);
  if (is_too_long) record.guard().give_to_native(of);
  if (failed_everywhere) return code;
  if (is_native && is_refusal(code)) {
    record.take_back_delegated();
    record.owe(of);
    return code;
  }
  // After an error of this rank alone the others count the trial, so this rank does, too.
  return end_trial(record, native, comm, of, clock.now_ns() - begin_ns, code);
}

}  // namespace

CommRecord* set_up_or_delegate(const NativeCollective& native, const CollectiveArguments& passed,
                               JudgeCall judge, int& code) {
  CommRecord* record = record_of(passed.comm);
  if (record == nullptr) {
    if (is_null(passed.comm))
      report_delegated("MPI_COMM_NULL");
    else if (judge != nullptr)
      record = CommRecord::make(MpiProcess::instance(), passed.comm);
  }
  if (record != nullptr && record->waits() && judge != nullptr) {
    const JudgedCall judged = judge(passed, *record);
    // What native MPI refuses on this rank does not take place: it moves no set-up, and does not count.
    const bool is_refused = judged.eligibility == Eligibility::kInvalidArgument;
    const bool is_due = record->is_due(MpiProcess::instance());
    if (is_refused || !is_due) {
      code =
          call_native(record, native, passed,
                      judged.eligibility == Eligibility::kEligible ? std::optional(judged.of) : std::nullopt);
      if (is_refused && is_due)
        report_refused(*record, native.name(CallForm::kBlocking), passed);
      else if (!is_refusal(code) && judged.eligibility == Eligibility::kEligible)
        record->note_waiting(judged.bytes, judged.of);  // also one that failed on this rank alone
      else
        record->note_waiting();
      return nullptr;
    }
    record->adopt(MpiProcess::instance());
  }
  if (record != nullptr && record->owes()) {
    code = call_owed(*record, native, passed);
    return nullptr;
  }
  switch (admit_record(record, native.name(CallForm::kBlocking), code)) {
    case Admission::kHips:
      return record;
    case Admission::kNative:
      code = call_native(record, native, passed);
      break;
    case Admission::kFailed:
      break;
  }
  return nullptr;
}

int delegate(CommRecord& record, const NativeCollective& native, const CollectiveArguments& passed,
             Eligibility eligibility) {
  delegate_as(eligibility, record, native, CallForm::kBlocking, passed);
  return take_back_refused(record, call_native(&record, native, passed));
}

int call_by_function(CommRecord& record, const NativeCollective& native, FunctionCall& call) {
  if (call.eligibility() != Eligibility::kEligible)
    return delegate(record, native, call.passed, call.eligibility());
  if (record.guard().begin_call(call.call_class()) != TuningChoice::kHips)
    return call_guarded(record, native, call);
  prepare(record, native, call);
  return execute_counted(record, native, call);
}

int call_guarded(CommRecord& record, const NativeCollective& native, ProgramCall& call) {
  if (record.guard().choice(call.call_class()) == TuningChoice::kNative) {
    delegate_by_guard("faster in the trials", record);
    const int code = call_native(&record, native, call.passed, call.call_class());
    if (is_refusal(code)) record.guard().take_back_call(call.call_class());
    return take_back_refused(record, code);
  }
  prepare(record, native, call);
  return run_trial(record, native, call);
}

int execute_counted(CommRecord& record, const NativeCollective& native, ProgramCall& call) {
  return execute_and_count(record, native, call).code;
}

void note_unpacked(CommRecord& record, const char* function, int code) {
  if (!is_refusal(code)) record.note_delegated(function);
}

bool is_too_long(CommRecord& record, const ProgramCall& call, const Status& status) {
  return status.code == Code::kUnsupported && is_bytes(call.args.type) && !comm::in_forked_child() &&
         record.communicator()->failure().ok();
}

int end_failed(CommRecord& record, const NativeCollective& native, const ProgramCall& call,
               const Status& status) {
  const CollectiveArguments& passed = call.passed;
  if (is_too_long(record, call, status)) return delegate(record, native, passed, Eligibility::kOtherType);
  // The call did not take place.
  if (status.code == Code::kInvalidArgument) record.guard().take_back_call(call.call_class());
  if (record.leaves_after(status)) {
    const bool is_later = record.communicator()->failed_call() > status.call;
    record.leave_hips();
    // A reduction in place may have changed its input.
    if (is_later && (!reduces(call.args.collective) || call.args.in != call.args.out))
      return native.call(passed);
  }
  return raise_error(passed.comm, record, status, native.name(CallForm::kBlocking));
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
