#pragma once

#include <mpi.h>

#include "lib/mpi/program_call.hpp"

namespace hips::mpi {

/// MPI_Barrier and MPI_Ibarrier.
class BarrierCall final : public ProgramCall {
 public:
  explicit BarrierCall(MPI_Comm of) : ProgramCall(kNames, of) { args.collective = Collective::kBarrier; }

  [[nodiscard]] int on_host() const override {
    static auto* const function = of_host<decltype(PMPI_Barrier)>("PMPI_Barrier");
    return function(comm);
  }
  [[nodiscard]] int start_on_host(MPI_Request* request) const override {
    static auto* const function = of_host<decltype(PMPI_Ibarrier)>("PMPI_Ibarrier");
    return function(comm, request);
  }
  [[nodiscard]] bool sets_up() const override { return false; }
  bool accept(const CommRecord& /*record*/, const char*& /*reason*/) override { return true; }

 private:
  static constexpr CallNames kNames{"MPI_Barrier", "MPI_Ibarrier"};
};

}  // namespace hips::mpi
