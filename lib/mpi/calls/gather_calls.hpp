#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/mpi/calls/program_call.hpp"
#include "lib/mpi/native/buffer_type.hpp"

namespace hips::mpi {

/// The common part of MPI_Allgather and MPI_Allgatherv. Counts sections in bytes, because ranks may pass
/// different types of the same type signature.
class AnyAllgatherCall : public ProgramCall {
 public:
  void prepare(CommRecord& record) override;
  int check_types() override;
  int pack() override;
  int unpack() override;
  [[nodiscard]] bool packs() const override { return !type_.plain || !in_type_.plain; }
  int keep() override;

 protected:
  using ProgramCall::ProgramCall;
  /// For constructors of derived classes.
  void accept(const CommRecord& record) { set_eligibility(eligibility_on(record)); }

  /// The section of a rank as the program passed it: its elements, and its offset from `out` in elements.
  [[nodiscard]] virtual std::int64_t section_of(int rank) const = 0;
  [[nodiscard]] virtual std::int64_t begin_of(int rank) const = 0;

 private:
  Eligibility eligibility_on(const CommRecord& record);
  /// For a call that packs: the section's offset in the packed data, its elements, its address in `out`.
  [[nodiscard]] std::size_t packed_begin(int rank) const;
  [[nodiscard]] std::int64_t elements(int rank) const;
  [[nodiscard]] std::byte* address(int rank) const;

  int rank_ = 0, size_ = 0;
  BufferType type_, in_type_;
  PackedBuffer packed_in_, packed_out_;
  std::vector<std::int64_t> begins_;  ///< of the packed sections, in bytes
  KeptType kept_type_;
};

/// MPI_Allgather.
class AllgatherCall final : public AnyAllgatherCall {
 public:
  static const NativeCollective kNative;
  AllgatherCall(const CollectiveArguments& arguments, const CommRecord& record);

 private:
  [[nodiscard]] std::int64_t section_of(int /*rank*/) const override { return passed.count; }
  [[nodiscard]] std::int64_t begin_of(int rank) const override { return rank * passed.count; }
};

/// MPI_Allgatherv.
class AllgathervCall final : public AnyAllgatherCall {
 public:
  static const NativeCollective kNative;
  AllgathervCall(const CollectiveArguments& arguments, const CommRecord& record);

 private:
  [[nodiscard]] std::int64_t section_of(int rank) const override { return passed.count_of(rank); }
  [[nodiscard]] std::int64_t begin_of(int rank) const override { return passed.displacement_of(rank); }
};

}  // namespace hips::mpi
