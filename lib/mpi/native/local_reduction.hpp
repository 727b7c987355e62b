#pragma once

#include <mpi.h>

#include <optional>

#include <hips/types.hpp>

namespace hips::mpi {

/// A type and an operation of native MPI as an operation of HiPS on elements of bytes: one of
/// hips_op_create() whose function is MPI_Reduce_local. So native MPI calls a function of the program in the
/// convention of its language, and says what its own operations mean: which of two equal pairs MPI_MINLOC takes, what
/// .TRUE. is in Fortran, and how a complex product is rounded.
///
/// Calls with the same type and operation share one. While it exists the program may free both (type_free(),
/// op_free()), and native MPI still has them.
///
/// Owns     a share of the operation of HiPS.
/// Threads  any.
class LocalReduction {
 public:
  LocalReduction(MPI_Datatype type, MPI_Op op, bool commutes);
  LocalReduction(const LocalReduction&) = delete;
  LocalReduction& operator=(const LocalReduction&) = delete;
  ~LocalReduction();

  /// Whether there is one in this process.
  static bool any();
  /// For elements as long as the extent of the type. Empty if HiPS has as many user operations as it can have.
  [[nodiscard]] std::optional<ReduceOp> op() const { return of_hips_; }

 private:
  MPI_Datatype type_;
  MPI_Op op_;
  std::optional<ReduceOp> of_hips_;
};

/// MPI_Type_free and MPI_Op_free of the program: true, and the handle is null, where a LocalReduction still needs the type
/// or the operation, which is then freed with the last one. False where native MPI has to free it now.
///
/// Cost     a load and a test where there is no LocalReduction.
/// Threads  any.
bool type_free(MPI_Datatype* type);
bool op_free(MPI_Op* op);

}  // namespace hips::mpi
