#pragma once

#include <mpi.h>

#include <memory>
#include <new>
#include <type_traits>

#include "lib/mpi/calls/program_call.hpp"
#include "lib/mpi/communicators/comm_record.hpp"
#include "lib/mpi/communicators/error.hpp"
#include "lib/mpi/process/mpi_process.hpp"
#include "lib/mpi/process/thread_state.hpp"

namespace hips::mpi {

// Every collective of the program enters here, in one of three forms, and is executed by HiPS or by native
// MPI. `Call` is its ProgramCall.
//
// HiPS executes a call on an intra-communicator of two ranks or more that it supports, where there is data to
// move. Reductions: of predefined types and operations that HiPS has. Data that is only moved: of any type,
// since MPI makes its bytes equal on all ranks; native MPI packs and unpacks elements that are not of one
// predefined type without gaps. All of that is equal on all ranks by MPI's rules. Every other call goes to
// native MPI unchanged.
//
// Where the guard is on (guard_mode.hpp), the first calls of each class are trials of native MPI and of HiPS
// in alternation, and the slower one executes none of that class again. HiPS compares the ranks' arguments in
// each of its calls and before each trial; a rank that waits in HiPS finds peers that went to native MPI.
// HiPS does not see calls that all ranks delegate after native MPI has won: different arguments, a dead rank
// and HIPS_TIMEOUT have the same effect there as without HiPS.
//
// All return the program's error code, passed through the error handler of the communicator. Nothing is
// thrown.
//
// Threads  as the functions of MPI.

/// A blocking call. Sets its communicator up if that has no record yet, unless it is a barrier.
///
/// Cost     for a call with the handles of this thread's last one: about 120 instructions besides those of
/// the
///          communicator.
template <typename Call>
int call_blocking(const CollectiveArguments& passed);

/// A non-blocking call. Takes what it would take of the blocking form on communicators that have been set up;
/// it never sets one up, as it must not wait for other ranks. The guard's decisions for the blocking form
/// apply; an undecided class is executed by HiPS, and no trial is made of it. Data is packed here and
/// unpacked when the request is completed; meanwhile the program may free types and arrays of counts.
template <typename Call>
int start_nonblocking(const CollectiveArguments& passed, MPI_Request* request);

/// Initialises a persistent call, which is decided here for all its starts. May wait for the other ranks, and
/// sets a communicator up. Calls that pack have no persistent form.
template <typename Call>
int init_persistent(const CollectiveArguments& passed, MPI_Info info, MPI_Request* request);

namespace detail {

/// How a call of HiPS ended. An error of packing is this rank's own, one of HiPS reaches all ranks.
struct ExecutedCall {
  int code = MPI_SUCCESS;
  bool failed_everywhere = false;
};

/// A blocking call whose communicator has no record, or one that executes nothing. Returns the record if it
/// can now, else null, and the program's error code.
CommRecord* set_up_or_delegate(const NativeCollective& native, const CollectiveArguments& passed,
                               bool sets_up, int& code);
/// A blocking call that HiPS does not accept: native MPI executes it, after it has been reported and noted
/// for peers that passed something else and wait in HiPS for this rank.
int delegate(CommRecord& record, const NativeCollective& native, const CollectiveArguments& passed,
             Eligibility eligibility);
/// A blocking call of a class that the guard has not given to HiPS: a trial, or native MPI's.
int call_guarded(CommRecord& record, const NativeCollective& native, ProgramCall& call);
/// A blocking call that is counted for the report.
int execute_counted(CommRecord& record, const NativeCollective& native, ProgramCall& call);
/// Error code of the exception that is being handled.
int raise_exception(MPI_Comm comm);
/// Tells the peers, which wait for this rank in HiPS, that it has no memory for `function`.
void note_shortage(CommRecord& record, const char* function);

/// The record whose communicator executes a call that becomes a request, else null, and the program's error
/// code.
CommRecord* record_for_request(const NativeCollective& native, const CollectiveArguments& passed,
                               MPI_Request* request, int& code);
CommRecord* record_for_init(const NativeCollective& native, const CollectiveArguments& passed, MPI_Info info,
                            MPI_Request* request, int& code);
int start_nonblocking(CommRecord& record, const NativeCollective& native, ProgramCall& call, MakeCall make,
                      MPI_Request* request);
int init_persistent(CommRecord& record, const NativeCollective& native, ProgramCall& call, MPI_Info info,
                    MPI_Request* request);

/// Completes the call's arguments.
template <typename Call>
void prepare(CommRecord& record, const NativeCollective& native, Call& call,
             CallForm form = CallForm::kBlocking) {
  try {
    call.prepare(record);
  } catch (const std::bad_alloc&) {
    note_shortage(record, native.name(form));
    throw;
  }
}

template <typename Call>
[[gnu::always_inline]] inline ExecutedCall execute(CommRecord& record, const NativeCollective& native,
                                                   Call& call) {
  if (const int code = call.pack(); code != MPI_SUCCESS) {
    // The others wait for this rank in HiPS.
    record.note_delegated(native.name(CallForm::kBlocking));
    return {raise_code(call.passed.comm, code), false};
  }
  const Status status = record.communicator()->call(call.args);
  if (!status.ok())
    return {raise_error(call.passed.comm, record, status, native.name(CallForm::kBlocking)), true};
  const int code = call.unpack();
  return {code == MPI_SUCCESS ? code : raise_code(call.passed.comm, code), false};
}

/// Calls `body()`, or `native()` where the call is inside another or HiPS is inactive. Nothing may be thrown
/// into a program of C or Fortran.
template <typename Body, typename Native>
[[gnu::always_inline]] inline int enter(MPI_Comm comm, const Body& body, const Native& native) {
  if (t_state.is_inside || MpiProcess::active() == nullptr) return native();
  const Inside inside;
  try {
    return body();
  } catch (...) {
    return raise_exception(comm);
  }
}

}  // namespace detail

// Everything that a small call passes through is inlined here; the rest is behind functions of detail.
template <typename Call>
[[gnu::noinline]] int call_blocking(const CollectiveArguments& passed) {
  static_assert(std::is_final_v<Call>, "so that its functions are called directly");
  const NativeCollective& native = Call::kNative;
  if (t_state.is_inside || MpiProcess::active() == nullptr) return native.call(passed);
  const Inside inside;
  try {
    CommRecord* record = record_of(passed.comm);
    if (record == nullptr || record->communicator() == nullptr) {
      int code = MPI_SUCCESS;
      record = detail::set_up_or_delegate(native, passed, Call::kSetsUp, code);
      if (record == nullptr) return code;
    }
    Call call(passed, *record);
    if (call.eligibility() != Eligibility::kEligible)
      return detail::delegate(*record, native, passed, call.eligibility());
    if (record->guard().choice(call.call_class()) != TuningChoice::kHips)
      return detail::call_guarded(*record, native, call);
    detail::prepare(*record, native, call);
    if (record->counts()) return detail::execute_counted(*record, native, call);
    return detail::execute(*record, native, call).code;
  } catch (...) {
    return detail::raise_exception(passed.comm);
  }
}

template <typename Call>
[[gnu::noinline]] int start_nonblocking(const CollectiveArguments& passed, MPI_Request* request) {
  const NativeCollective& native = Call::kNative;
  return detail::enter(
      passed.comm,
      [&] {
        int code = MPI_SUCCESS;
        CommRecord* const record = detail::record_for_request(native, passed, request, code);
        if (record == nullptr) return code;
        Call call(passed, *record);
        return detail::start_nonblocking(
            *record, native, call,
            [](const CollectiveArguments& kept, const CommRecord& of) -> std::unique_ptr<ProgramCall> {
              return std::make_unique<Call>(kept, of);
            },
            request);
      },
      [&] { return native.start(passed, request); });
}

template <typename Call>
[[gnu::noinline]] int init_persistent(const CollectiveArguments& passed, MPI_Info info,
                                      MPI_Request* request) {
  const NativeCollective& native = Call::kNative;
  return detail::enter(
      passed.comm,
      [&] {
        int code = MPI_SUCCESS;
        CommRecord* const record = detail::record_for_init(native, passed, info, request, code);
        if (record == nullptr) return code;
        Call call(passed, *record);
        return detail::init_persistent(*record, native, call, info, request);
      },
      [&] { return native.init(passed, info, request); });
}

}  // namespace hips::mpi
