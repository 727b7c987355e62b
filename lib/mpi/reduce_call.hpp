#pragma once

#include <mpi.h>

#include "lib/mpi/count.hpp"
#include "lib/mpi/program_call.hpp"

namespace hips::mpi {

/// MPI_Reduce and MPI_Ireduce.
class ReduceCall final : public ProgramCall {
 public:
  ReduceCall(const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm of)
      : ProgramCall(kNames, of), in_(in), out_(out), count_(count), type_(type), op_(op), root_(root) {}

  [[nodiscard]] int on_host() const override;
  [[nodiscard]] int start_on_host(MPI_Request* request) const override;
  bool accept(const CommRecord& record, const char*& reason) override;

 private:
  static constexpr CallNames kNames{"MPI_Reduce", "MPI_Ireduce"};

  const void* in_;
  void* out_;
  Count count_;
  MPI_Datatype type_;
  MPI_Op op_;
  int root_;
};

}  // namespace hips::mpi
