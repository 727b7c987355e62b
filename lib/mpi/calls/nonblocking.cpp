#include <optional>
#include <string>
#include <utility>

#include "lib/mpi/calls/admission.hpp"
#include "lib/mpi/calls/dispatch.hpp"
#include "lib/mpi/requests/mpi_request.hpp"

namespace hips::mpi::detail {
namespace {

/// Starts a call of native MPI, whose time the report does not know.
int start_natively(const NativeCollective& native, const CollectiveArguments& passed, MPI_Request* request) {
  const int code = native.start(passed, request);
  MpiProcess& process = MpiProcess::instance();
  if (code == MPI_SUCCESS && process.reports()) process.report().add_untimed();
  return code;
}

/// Whether HiPS executes a call that becomes a request, now that its communicator can: by its arguments and
/// by the guard's decision. An undecided class is HiPS'.
bool admit_call(CommRecord& record, const NativeCollective& native, CallForm form, const ProgramCall& call) {
  Eligibility eligibility = call.eligibility();
  if (eligibility == Eligibility::kEligible && form == CallForm::kPersistent && call.packs())
    eligibility = Eligibility::kOtherType;
  if (eligibility == Eligibility::kEligible && is_user(call.args.op) && record.computes_elsewhere())
    eligibility = Eligibility::kOtherOp;
  if (eligibility != Eligibility::kEligible) {
    delegate_as(eligibility, record, native, form, call.passed);
    return false;
  }
  if (record.guard().choice_of_requests(call.call_class()) != TuningChoice::kNative) return true;
  delegate_by_guard("faster in the trials", record);
  return false;
}

}  // namespace

CommRecord* record_for_request(const NativeCollective& native, const CollectiveArguments& passed,
                               JudgeCall judge, MPI_Request* request, int& code) {
  // Null handles and addresses are errors, which native MPI reports.
  CommRecord* record = request != nullptr ? record_of(passed.comm) : nullptr;
  const char* const function = native.name(CallForm::kNonblocking);
  MpiProcess& process = MpiProcess::instance();
  if (request != nullptr && record == nullptr && !is_null(passed.comm)) {
    // A record that only counts is made without the other ranks.
    if (process.terms() != nullptr && !process.terms()->at_once)
      record = CommRecord::make(process, passed.comm);
    else if (process.reports())
      report_delegated(std::string(function) + " before the first blocking collective of its communicator");
  }
  if (record != nullptr && record->waits()) {
    const JudgedCall judged = judge(passed, *record);
    code = start_natively(native, passed, request);
    record->note_waiting(!is_refusal(code) && judged.eligibility == Eligibility::kEligible
                             ? std::optional(judged.bytes)
                             : std::nullopt);
    return nullptr;
  }
  const Admission admission = admit_record(record, function, code);
  if (admission == Admission::kNative) code = start_natively(native, passed, request);
  return admission == Admission::kHips ? record : nullptr;
}

CommRecord* record_for_init(const NativeCollective& native, const CollectiveArguments& passed, MPI_Info info,
                            MPI_Request* request, int& code) {
  CommRecord* record = nullptr;
  if (request != nullptr && !is_null(passed.comm)) {
    record = record_of(passed.comm);
    if (record == nullptr) record = CommRecord::make(MpiProcess::instance(), passed.comm);
    // Who prepares a call means to make it often.
    if (record != nullptr && record->waits()) record->adopt(MpiProcess::instance());
  }
  const Admission admission = admit_record(record, native.name(CallForm::kPersistent), code);
  if (admission == Admission::kNative) code = native.init(passed, info, request);
  return admission == Admission::kHips ? record : nullptr;
}

int start_nonblocking(CommRecord& record, const NativeCollective& native, ProgramCall& passed_call,
                      MakeCall make, MPI_Request* request) {
  const MPI_Comm comm = passed_call.passed.comm;
  const char* const function = native.name(CallForm::kNonblocking);
  if (!admit_call(record, native, CallForm::kNonblocking, passed_call))
    return take_back_refused(record, start_natively(native, passed_call.passed, request));
  std::unique_ptr<KeptCall> kept;
  if (passed_call.is_kept()) kept = std::make_unique<KeptCall>(passed_call.passed, record, make);
  ProgramCall& call = kept ? *kept->call : passed_call;
  prepare(record, native, call, CallForm::kNonblocking);
  if (const int code = call.check_types(); code != MPI_SUCCESS) return code;
  int code = call.pack();
  if (code == MPI_SUCCESS && kept) code = call.keep();
  if (code != MPI_SUCCESS) {
    note_unpacked(record, function, code);
    return raise_code(comm, code);
  }
  record.note_request();
  auto made = MpiRequest::make_nonblocking(record, function, call, std::move(kept));
  if (!made && is_too_long(record, call, made.error())) {
    delegate_as(Eligibility::kOtherType, record, native, CallForm::kNonblocking, passed_call.passed);
    return take_back_refused(record, start_natively(native, passed_call.passed, request));
  }
  if (!made) return raise_error(comm, record, made.error(), function);
  return give_handle(comm, std::move(*made), true, request);
}

int init_persistent(CommRecord& record, const NativeCollective& native, ProgramCall& passed_call,
                    MakeCall make, MPI_Info info, MPI_Request* request) {
  const MPI_Comm comm = passed_call.passed.comm;
  const char* const function = native.name(CallForm::kPersistent);
  if (!admit_call(record, native, CallForm::kPersistent, passed_call))
    return take_back_refused(record, native.init(passed_call.passed, info, request));
  std::unique_ptr<KeptCall> kept;
  if (passed_call.is_kept()) kept = std::make_unique<KeptCall>(passed_call.passed, record, make);
  ProgramCall& call = kept ? *kept->call : passed_call;
  prepare(record, native, call, CallForm::kPersistent);
  if (const int code = call.check_types(); code != MPI_SUCCESS) return code;
  auto own = record.make_another(MpiProcess::instance());
  if (!own) {
    const std::string shortage = record.shortage(own.error());
    if (shortage.empty()) return raise_error(comm, record, own.error(), function);
    report_delegated(shortage);
    return native.init(call.passed, info, request);
  }
  auto made = MpiRequest::make_persistent(record, std::move(*own), function, call, std::move(kept));
  if (!made && is_too_long(record, call, made.error())) {
    delegate_as(Eligibility::kOtherType, record, native, CallForm::kPersistent, passed_call.passed);
    return take_back_refused(record, native.init(passed_call.passed, info, request));
  }
  if (!made) return raise_error(comm, record, made.error(), function);
  return give_handle(comm, std::move(*made), false, request);
}

}  // namespace hips::mpi::detail
