#pragma once

#include <mpi.h>

#include <string>

#include "lib/mpi/calls/program_call.hpp"

namespace hips::mpi {

// Who executes a call: what the three forms share, apart from the fast path of dispatch.hpp.

enum class Admission { kHips, kNative, kFailed };

/// Whether `comm` is no communicator, which native MPI reports.
bool is_null(MPI_Comm comm);

/// Reports a call that goes to native MPI.
void report_delegated(const std::string& reason);
/// Notes and reports a call that HiPS does not accept: a peer that passed something else may wait for this
/// rank in HiPS.
void delegate_as(Eligibility eligibility, CommRecord& record, const NativeCollective& native, CallForm form,
                 const CollectiveArguments& passed);
/// Notes and reports a call that HiPS could execute; the peers all delegate it, too, unless they passed
/// another operation or a count of another size.
void delegate_by_guard(const char* reason, CommRecord& record);

/// Whether HiPS can execute calls of `function` on the communicator. kNative: there is no record, or it says
/// why not, which is reported. kFailed: `code` is the program's.
Admission admit_record(CommRecord* record, const char* function, int& code);

}  // namespace hips::mpi
