#pragma once

#include <memory>

#include "lib/mpi/calls/program_call.hpp"
#include "lib/mpi/native/buffer_type.hpp"
#include "lib/mpi/native/element_layout.hpp"
#include "lib/mpi/native/local_reduction.hpp"

namespace hips::mpi {

/// A reduction by a function of the program (MPI_Op_create), on elements of any type: HiPS reduces them as bytes in their
/// order in memory, and native MPI calls the function. Where a type has gaps, a copy of the elements is reduced, and only their
/// data is written to the output.
///
/// Its parts are those of the call of the same collective that it makes of the reduction.
class FunctionCall final : public ProgramCall {
 public:
  using Make = std::unique_ptr<ProgramCall> (*)(const CollectiveArguments& passed, const CommRecord& record,
                                                const Reduction& reduction);
  FunctionCall(const CollectiveArguments& arguments, const CommRecord& record, Make make);

  /// Whether a call that is not eligible may be one of these.
  static bool may_be(Eligibility eligibility) {
    return eligibility == Eligibility::kOtherType || eligibility == Eligibility::kOtherOp;
  }

  void prepare(CommRecord& record) override;
  int check_types() override;
  int pack() override;
  int unpack() override;
  [[nodiscard]] bool packs() const override { return layout_.has_gaps; }
  [[nodiscard]] bool is_kept() const override { return true; }

 private:
  Eligibility accept(const CommRecord& record, Make make);

  ElementLayout layout_;
  bool commutes_ = false;
  std::unique_ptr<LocalReduction> reduction_;  ///< made by prepare(): native MPI needs none
  std::unique_ptr<ProgramCall> call_;
  std::size_t num_results_ = 0;  ///< elements that this rank gets
  PackedBuffer elements_,
      results_;  ///< of a type with gaps: whole elements, and the data of those that this rank gets
};

}  // namespace hips::mpi
