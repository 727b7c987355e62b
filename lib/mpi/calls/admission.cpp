#include "lib/mpi/calls/admission.hpp"

#include <atomic>
#include <string>

#include <fmt/format.h>

#include "lib/mpi/communicators/comm_record.hpp"
#include "lib/mpi/communicators/error.hpp"
#include "lib/mpi/native/native_mpi.hpp"

namespace hips::mpi {
namespace {

/// True for the classes of errors that MPI finds in the arguments of one rank, before anything is sent.
bool is_of_arguments(int error_class) {
  switch (error_class) {
    case MPI_ERR_BUFFER:
    case MPI_ERR_COUNT:
    case MPI_ERR_TYPE:
    case MPI_ERR_OP:
    case MPI_ERR_ROOT:
    case MPI_ERR_ARG:
      return true;
    default:
      return false;
  }
}

/// For the report: "MPI_Reduce: type MPI_CHAR".
std::string reason_of(const char* function, const CollectiveArguments& passed, Eligibility eligibility) {
  switch (eligibility) {
    case Eligibility::kEligible:
      break;
    case Eligibility::kOtherType:
      return fmt::format("{}: type {}", function, name_of_type(passed.type));
    case Eligibility::kOtherOp:
      return fmt::format("{}: op {}", function, name_of_op(passed.op));
    case Eligibility::kOpNotForType:
      return fmt::format("{}: {} of {}", function, name_of_op(passed.op), name_of_type(passed.type));
    case Eligibility::kNothingToMove:
      return fmt::format("{}: no data", function);
    case Eligibility::kUnequalSizes:
    case Eligibility::kInvalidArgument:
      return fmt::format("{}: invalid arguments", function);
  }
  return function;
}

/// The same for peers that passed something else and wait in HiPS, "MPI_Reduce of a type that HiPS does not
/// have"; lives as long as the program.
const char* note_of(const NativeCollective& native, CallForm form, Eligibility eligibility) {
  static constexpr const char* kEndings[kNumEligibilities] = {"",
                                                              " of a type that HiPS does not have",
                                                              " by an op that HiPS does not have",
                                                              " by an op that is not for its type",
                                                              " without data",
                                                              " of different sizes to send and to receive",
                                                              " with invalid arguments"};
  // Made at the first call of a kind and kept: a program may delegate many short calls.
  static constinit std::atomic<const char*> notes[kNumNativeCollectives][kNumCallForms][kNumEligibilities]{};
  const auto ending = static_cast<std::size_t>(eligibility);
  std::atomic<const char*>& note = notes[native.index][static_cast<std::size_t>(form)][ending];
  if (const char* const known = note.load(std::memory_order_acquire)) return known;
  // Never freed. Of two threads that come here together one's text is lost, which happens at most once a
  // kind.
  const auto* const made = new std::string(std::string(native.name(form)) + kEndings[ending]);
  note.store(made->c_str(), std::memory_order_release);
  return made->c_str();
}

}  // namespace

bool is_null(MPI_Comm comm) {
  return comm == MPI_Comm{} || comm == native_mpi()->no_comm;
}

void report_delegated(const std::string& reason) {
  MpiProcess& process = MpiProcess::instance();
  if (process.reports()) process.report().add_delegated(reason);
}

void delegate_as(Eligibility eligibility, CommRecord& record, const NativeCollective& native, CallForm form,
                 const CollectiveArguments& passed) {
  record.note_delegated(note_of(native, form, eligibility));
  if (record.counts()) report_delegated(reason_of(native.name(form), passed, eligibility));
}

void report_refused(const CommRecord& record, const char* function, const CollectiveArguments& passed) {
  if (record.counts()) report_delegated(reason_of(function, passed, Eligibility::kInvalidArgument));
}

bool is_refusal(int code) {
  int error_class = MPI_SUCCESS;
  return code != MPI_SUCCESS && native_mpi()->Error_class(code, &error_class) == MPI_SUCCESS &&
         is_of_arguments(error_class);
}

int take_back_refused(CommRecord& record, int code) {
  if (is_refusal(code)) record.take_back_delegated();
  return code;
}

void delegate_by_guard(const char* reason, CommRecord& record) {
  record.note_delegated("a collective of a kind and size that native MPI executes");
  if (record.counts()) report_delegated(reason);
}

Admission admit_record(CommRecord* record, const char* function, int& code) {
  if (record == nullptr) return Admission::kNative;
  if (record->communicator() != nullptr) return Admission::kHips;
  if (record->owes()) {
    record->pay();
    return Admission::kNative;
  }
  if (record->waits()) {
    record->note_waiting();
    return Admission::kNative;
  }
  if (!record->failure().ok()) {
    code = raise_error(record->comm(), *record, record->failure(), function);
    return Admission::kFailed;
  }
  if (record->counts()) report_delegated(record->unsupported());
  return Admission::kNative;
}

}  // namespace hips::mpi
