#pragma once

#include "lib/mpi/calls/program_call.hpp"

namespace hips::mpi {

/// MPI_Barrier.
class BarrierCall final : public ProgramCall {
 public:
  static const NativeCollective kNative;
  /// A communicator that has only barriers is not worth a set-up.
  static constexpr bool kSetsUp = false;

  BarrierCall(const CollectiveArguments& arguments, const CommRecord& /*record*/)
      : ProgramCall(arguments, {.collective = Collective::kBarrier}, 0, Eligibility::kEligible) {}
};

}  // namespace hips::mpi
