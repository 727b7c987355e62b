#pragma once

#include <mpi.h>

#include <string>

#include "lib/mpi/calls/program_call.hpp"

namespace hips::mpi {

// The choice between HiPS and native MPI, for all three forms of a call. dispatch.hpp has the fast path.

enum class Admission { kHips, kNative, kFailed };

/// True for MPI_COMM_NULL. Native MPI reports that error.
bool is_null(MPI_Comm comm);

/// Reports a call that goes to native MPI.
void report_delegated(const std::string& reason);
/// Records and reports a call that HiPS does not support. Peers that passed other arguments may wait for
/// this rank in HiPS; the record tells them.
void delegate_as(Eligibility eligibility, CommRecord& record, const NativeCollective& native, CallForm form,
                 const CollectiveArguments& passed);
/// Reports a call whose arguments native MPI refuses. It takes place on no rank, and is not recorded.
void report_refused(const CommRecord& record, const char* function, const CollectiveArguments& passed);
/// True if native MPI has refused a call by the arguments of this rank alone: the call did not take place here, and the
/// peers, which know nothing of it, wait for this rank's next call.
bool is_refusal(int code);
/// After delegate_as() or delegate_by_guard(), with the code that native MPI has returned: a call that it has refused is
/// removed from the record. Returns the code.
int take_back_refused(CommRecord& record, int code);
/// Records and reports a supported call that the guard gives to native MPI. All peers delegate it, too,
/// unless they passed another operation or size class.
void delegate_by_guard(const char* reason, CommRecord& record);

/// Says whether HiPS can execute calls of `function` on the communicator. kNative: there is no record, or the
/// record is unsupported, which is reported. kFailed: `code` is the error code for the program.
Admission admit_record(CommRecord* record, const char* function, int& code);

}  // namespace hips::mpi
