#pragma once

#include "lib/mpi/calls/program_call.hpp"
#include "lib/mpi/native/buffer_type.hpp"

namespace hips::mpi {

/// MPI_Bcast of any type. Counts bytes, because ranks may pass different types of the same type signature.
class BcastCall final : public ProgramCall {
 public:
  static const NativeCollective kNative;
  BcastCall(const CollectiveArguments& arguments, const CommRecord& record);

  void prepare(CommRecord& record) override;
  int check_types() override;
  int pack() override;
  int unpack() override;
  [[nodiscard]] bool packs() const override { return !type_.plain; }
  int keep() override;

 private:
  Eligibility accept(const CommRecord& record);

  BufferType type_;
  bool is_root_ = false;
  PackedBuffer packed_;
  KeptType kept_type_;
};

}  // namespace hips::mpi
