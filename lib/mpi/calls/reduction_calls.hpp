#pragma once

#include "lib/mpi/calls/program_call.hpp"
#include "lib/mpi/native/abi.hpp"

namespace hips::mpi {

/// Whether native MPI refuses the output of a call that moves something: no memory, or also the input.
inline bool is_refused_output(const CollectiveArguments& passed) {
  return passed.out == MPI_IN_PLACE || (kRefusesAliases && passed.in == passed.out);
}

/// Says whether HiPS can execute this reduction of `count` elements. One comparison rejects types and operations
/// that are not eligible, and counts that are 0, negative or too large.
inline Eligibility eligibility_of(const Reduction& reduction, std::int64_t count, bool is_refused_output) {
  if (static_cast<std::uint64_t>(count) - 1 < reduction.most_counts)
    return is_refused_output ? Eligibility::kInvalidArgument : Eligibility::kEligible;
  if (reduction.eligibility != Eligibility::kEligible) return reduction.eligibility;
  return count == 0 ? Eligibility::kNothingToMove : Eligibility::kInvalidArgument;
}

// Each is made of what the program passed, or of a reduction that its maker has found (function_call.hpp).

/// MPI_Allreduce of predefined types and operations. Count, type and operation are equal on all
/// ranks by MPI's rules, and decide whether HiPS executes the call.
class AllreduceCall final : public ProgramCall {
 public:
  static const NativeCollective kNative;
  AllreduceCall(const CollectiveArguments& arguments, const CommRecord& record)
      : AllreduceCall(arguments, record, reduction_of(arguments.type, arguments.op)) {}
  AllreduceCall(const CollectiveArguments& a, const CommRecord& /*record*/, const Reduction& reduction)
      : ProgramCall(a,
                    {.collective = Collective::kAllreduce,
                     .in = static_cast<const std::byte*>(a.in == MPI_IN_PLACE ? a.out : a.in),
                     .out = static_cast<std::byte*>(a.out),
                     .count = static_cast<std::uint64_t>(a.count) * reduction.parts,
                     .type = reduction.type,
                     .op = reduction.op},
                    static_cast<std::uint64_t>(a.count) * reduction.size,
                    eligibility_of(reduction, a.count, is_refused_output(a))) {}
};

/// MPI_Reduce.
class ReduceCall final : public ProgramCall {
 public:
  static const NativeCollective kNative;
  ReduceCall(const CollectiveArguments& arguments, const CommRecord& record)
      : ReduceCall(arguments, record, reduction_of(arguments.type, arguments.op)) {}
  ReduceCall(const CollectiveArguments& arguments, const CommRecord& record, const Reduction& reduction);
};

/// The common part of MPI_Reduce_scatter and MPI_Reduce_scatter_block.
class AnyReduceScatterCall : public ProgramCall {
 public:
  void prepare(CommRecord& record) override;

 protected:
  using ProgramCall::ProgramCall;
  /// For constructors of derived classes.
  void accept(const CommRecord& record, const Reduction& reduction) {
    parts_ = reduction.parts;
    set_eligibility(eligibility_on(record, reduction));
  }
  /// The number of elements of a rank's section, as the program passed it.
  [[nodiscard]] virtual std::int64_t section_of(int rank) const = 0;

 private:
  Eligibility eligibility_on(const CommRecord& record, const Reduction& reduction);

  std::uint64_t parts_ = 1;
};

/// MPI_Reduce_scatter.
class ReduceScatterCall final : public AnyReduceScatterCall {
 public:
  static const NativeCollective kNative;
  ReduceScatterCall(const CollectiveArguments& arguments, const CommRecord& record)
      : ReduceScatterCall(arguments, record, reduction_of(arguments.type, arguments.op)) {}
  ReduceScatterCall(const CollectiveArguments& arguments, const CommRecord& record,
                    const Reduction& reduction);

 private:
  [[nodiscard]] std::int64_t section_of(int rank) const override { return passed.count_of(rank); }
};

/// MPI_Reduce_scatter_block.
class ReduceScatterBlockCall final : public AnyReduceScatterCall {
 public:
  static const NativeCollective kNative;
  ReduceScatterBlockCall(const CollectiveArguments& arguments, const CommRecord& record)
      : ReduceScatterBlockCall(arguments, record, reduction_of(arguments.type, arguments.op)) {}
  ReduceScatterBlockCall(const CollectiveArguments& arguments, const CommRecord& record,
                         const Reduction& reduction);

 private:
  [[nodiscard]] std::int64_t section_of(int /*rank*/) const override { return passed.count; }
};

}  // namespace hips::mpi
