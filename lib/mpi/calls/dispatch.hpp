#pragma once

#include <mpi.h>

#include <memory>
#include <new>
#include <type_traits>

#include "lib/mpi/calls/function_call.hpp"
#include "lib/mpi/calls/program_call.hpp"
#include "lib/mpi/communicators/comm_record.hpp"
#include "lib/mpi/communicators/error.hpp"
#include "lib/mpi/process/mpi_process.hpp"
#include "lib/mpi/process/thread_state.hpp"

namespace hips::mpi {

// Every collective of the program enters here, in one of three forms, and is executed by HiPS or by native
// MPI. `Call` is its ProgramCall.
//
// HiPS executes calls with data on intra-communicators of two ranks or more. Reductions have predefined types and
// operations, or become a FunctionCall. Calls that only move data may have any type, because by MPI's rules its size
// in bytes is equal on all ranks; native MPI packs and unpacks types that are derived or have gaps. MPI's rules
// make all of these properties equal on all ranks, so the ranks decide alike. Every other call goes to native
// MPI unchanged.
//
// If the guard is on (guard_mode.hpp), the first calls of each class are trials, of native MPI and HiPS in
// alternation. After them the faster library executes the class. HiPS compares the arguments of the ranks in
// each of its calls and before each trial. A rank that waits in HiPS learns which peers delegated the call.
// If native MPI has won, all ranks delegate the class: different arguments, a dead rank and HIPS_TIMEOUT then
// have the same effect as without HiPS.
//
// All functions return the program's error code, after the error handler of the communicator has seen it. None
// throws.
//
// Threads  as the functions of MPI.

/// Executes a blocking call. It counts for the adoption of its communicator, and sets it up where that is due, unless it
/// is a barrier.
///
/// Cost     for a call with the handles of this thread's last one: about 120 instructions besides those of
/// the
///          communicator.
template <typename Call>
int call_blocking(const CollectiveArguments& passed);

/// Starts a non-blocking call. HiPS executes it if it would execute the blocking form and the communicator has
/// been set up. It never sets one up, because it must not wait for other ranks. The guard's decisions for the
/// blocking form apply; HiPS executes an undecided class, without a trial. Data is packed here and unpacked at
/// the completion of the request; meanwhile the program may free types and arrays of counts.
template <typename Call>
int start_nonblocking(const CollectiveArguments& passed, MPI_Request* request);

/// Initialises a persistent call and decides here which library executes all its starts. It may wait for the
/// other ranks and set up a communicator. HiPS has no persistent form of calls that pack.
template <typename Call>
int init_persistent(const CollectiveArguments& passed, MPI_Info info, MPI_Request* request);

namespace detail {

/// The result of a call of HiPS. Only this rank sees an error of packing; all ranks see an error of HiPS.
struct ExecutedCall {
  int code = MPI_SUCCESS;
  bool failed_everywhere = false;
  bool is_too_long = false;  ///< on all ranks, so that native MPI has executed it
};

/// Whether HiPS could execute a call, and the size of what it moves.
struct JudgedCall {
  Eligibility eligibility = Eligibility::kEligible;
  std::uint64_t bytes = 0;
  CallClass of;  ///< where it is eligible
};
using JudgeCall = JudgedCall (*)(const CollectiveArguments& passed, const CommRecord& record);

/// The path of a blocking call whose communicator has no record, or a record without a HiPS communicator. Returns the record
/// if HiPS can execute the call, after set-up; else null, with the program's error code. `judge` is null where the call
/// sets nothing up.
///
/// Cost     on a communicator that is not adopted: that of native MPI and less than 50 ns.
CommRecord* set_up_or_delegate(const NativeCollective& native, const CollectiveArguments& passed,
                               JudgeCall judge, int& code);
/// Gives a blocking call that HiPS does not support to native MPI. First it reports the call, and records it for
/// peers that passed other arguments and wait in HiPS for this rank.
int delegate(CommRecord& record, const NativeCollective& native, const CollectiveArguments& passed,
             Eligibility eligibility);
/// Executes a blocking call by a function of the program, or delegates it where it is not eligible.
int call_by_function(CommRecord& record, const NativeCollective& native, FunctionCall& call);
/// Executes a blocking call of a class that is undecided (as a trial) or decided for native MPI.
int call_guarded(CommRecord& record, const NativeCollective& native, ProgramCall& call);
/// Executes a blocking call in HiPS and counts it for the report.
int execute_counted(CommRecord& record, const NativeCollective& native, ProgramCall& call);
/// Records for the peers, which wait for this rank in HiPS, that it cannot pack its data; not where native MPI refuses the
/// arguments, since then they wait for its next call.
void note_unpacked(CommRecord& record, const char* function, int code);
/// Whether HiPS has refused a call on all ranks, before anything was sent, because its elements are longer than the slices of
/// this communicator: native MPI executes it.
bool is_too_long(CommRecord& record, const ProgramCall& call, const Status& status);
/// The program's error code after an error of HiPS. Where ranks only disagree, native MPI executes this call if it is a later
/// one, and all later calls.
int end_failed(CommRecord& record, const NativeCollective& native, const ProgramCall& call,
               const Status& status);
/// Error code of the exception that is being handled.
int raise_exception(MPI_Comm comm);
/// Records for the peers, which wait for this rank in HiPS, that it has no memory for `function`.
void note_shortage(CommRecord& record, const char* function);

/// Returns the record whose communicator executes a call that becomes a request. Null: native MPI has executed
/// the call, or it failed; `code` is the program's error code. The call counts for the adoption of its communicator.
CommRecord* record_for_request(const NativeCollective& native, const CollectiveArguments& passed,
                               JudgeCall judge, MPI_Request* request, int& code);
CommRecord* record_for_init(const NativeCollective& native, const CollectiveArguments& passed, MPI_Info info,
                            MPI_Request* request, int& code);
int start_nonblocking(CommRecord& record, const NativeCollective& native, ProgramCall& call, MakeCall make,
                      MPI_Request* request);
int init_persistent(CommRecord& record, const NativeCollective& native, ProgramCall& call, MakeCall make,
                    MPI_Info info, MPI_Request* request);

/// Whether calls of this kind have a form that reduces by a function of the program.
template <typename Call>
inline constexpr bool kHasFunctionForm =
    std::is_constructible_v<Call, const CollectiveArguments&, const CommRecord&, const Reduction&>;

template <typename Call>
std::unique_ptr<ProgramCall> make_of(const CollectiveArguments& passed, const CommRecord& record,
                                     const Reduction& reduction) {
  return std::make_unique<Call>(passed, record, reduction);
}

/// Calls `body` with the call, or with a FunctionCall where the program passes a function of its own.
template <typename Call, typename Body>
auto with_call(const CollectiveArguments& passed, const CommRecord& record, const Body& body) {
  Call call(passed, record);
  if constexpr (kHasFunctionForm<Call>) {
    if (FunctionCall::may_be(call.eligibility())) {
      FunctionCall by_function(passed, record, make_of<Call>);
      return body(static_cast<ProgramCall&>(by_function));
    }
  }
  return body(static_cast<ProgramCall&>(call));
}

/// Makes the same on the heap.
template <typename Call>
std::unique_ptr<ProgramCall> make(const CollectiveArguments& passed, const CommRecord& record) {
  auto call = std::make_unique<Call>(passed, record);
  if constexpr (kHasFunctionForm<Call>) {
    if (FunctionCall::may_be(call->eligibility()))
      return std::make_unique<FunctionCall>(passed, record, make_of<Call>);
  }
  return call;
}

template <typename Call>
JudgedCall judge(const CollectiveArguments& passed, const CommRecord& record) {
  return with_call<Call>(passed, record, [](const ProgramCall& call) {
    JudgedCall judged;
    judged.eligibility = call.eligibility();
    if (judged.eligibility == Eligibility::kEligible) {
      judged.bytes = call.bytes();
      judged.of = call.call_class();
    }
    return judged;
  });
}

/// A blocking call whose short form is not eligible.
template <typename Call>
[[gnu::noinline]] int call_otherwise(CommRecord& record, const NativeCollective& native,
                                     const CollectiveArguments& passed, Eligibility eligibility) {
  if constexpr (kHasFunctionForm<Call>) {
    if (FunctionCall::may_be(eligibility)) {
      FunctionCall by_function(passed, record, make_of<Call>);
      return call_by_function(record, native, by_function);
    }
  }
  return delegate(record, native, passed, eligibility);
}

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
  if (const int code = call.check_types(); code != MPI_SUCCESS) {
    record.guard().take_back_call(call.call_class());
    return {.code = code};
  }
  if (const int code = call.pack(); code != MPI_SUCCESS) {
    note_unpacked(record, native.name(CallForm::kBlocking), code);
    record.guard().take_back_call(call.call_class());
    return {.code = raise_code(call.passed.comm, code)};
  }
  if (const Status status = record.communicator()->call(call.args); !status.ok()) {
    const bool too_long = is_too_long(record, call, status);
    return {end_failed(record, native, call, status), true, too_long};
  }
  const int code = call.unpack();
  return {.code = code == MPI_SUCCESS ? code : raise_code(call.passed.comm, code)};
}

/// Calls `body()`, or `native()` if the call is inside another one or HiPS is inactive. Catches all exceptions,
/// because the program may be C or Fortran.
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

// The path of a small call is inlined here; functions of detail have the rest.
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
      record =
          detail::set_up_or_delegate(native, passed, Call::kSetsUp ? detail::judge<Call> : nullptr, code);
      if (record == nullptr) return code;
    }
    Call call(passed, *record);
    if (call.eligibility() != Eligibility::kEligible)
      return detail::call_otherwise<Call>(*record, native, passed, call.eligibility());
    if (record->guard().begin_call(call.call_class()) != TuningChoice::kHips)
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
        CommRecord* const record =
            detail::record_for_request(native, passed, detail::judge<Call>, request, code);
        if (record == nullptr) return code;
        return detail::with_call<Call>(passed, *record, [&](ProgramCall& call) {
          return detail::start_nonblocking(*record, native, call, detail::make<Call>, request);
        });
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
        return detail::with_call<Call>(passed, *record, [&](ProgramCall& call) {
          return detail::init_persistent(*record, native, call, detail::make<Call>, info, request);
        });
      },
      [&] { return native.init(passed, info, request); });
}

}  // namespace hips::mpi
