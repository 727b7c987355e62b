#pragma once

#include "lib/mpi/calls/program_call.hpp"

namespace hips::mpi {

/// MPI_Barrier.
class BarrierCall final : public ProgramCall {
 public:
  static const NativeCollective kNative;
  /// Setting up a communicator for barriers alone does not pay.
  static constexpr bool kSetsUp = false;

  BarrierCall(const CollectiveArguments& arguments, const CommRecord& /*record*/)
      : ProgramCall(arguments, {.collective = Collective::kBarrier}, 0, Eligibility::kEligible) {}
};

}  // namespace hips::mpi
