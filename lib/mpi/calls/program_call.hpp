#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "lib/comm/calls/call_args.hpp"
#include "lib/mpi/calls/collective_arguments.hpp"
#include "lib/mpi/process/thread_state.hpp"
#include "lib/mpi/tuning/guard.hpp"

namespace hips::mpi {

class CommRecord;

/// A collective as the program called it, in any form. Each collective has a derived class that translates its
/// arguments for HiPS. signatures.def has the names and arguments of the functions.
///
/// Order    the constructor decides whether HiPS can execute the call, and fills in `args`; then prepare(),
///          check_types(), pack(), the call of HiPS, unpack().
/// Owns     memory for packed data. Arguments and buffers are the program's; the buffers are read and written
///          from pack() to unpack().
/// Threads  one.
class ProgramCall {
 public:
  /// True if the blocking call sets up a communicator that has no record yet.
  static constexpr bool kSetsUp = true;

  virtual ~ProgramCall() = default;
  ProgramCall(const ProgramCall&) = delete;
  ProgramCall& operator=(const ProgramCall&) = delete;

  /// If it is not kEligible, native MPI executes the call and no other member is valid.
  [[nodiscard]] Eligibility eligibility() const { return eligibility_; }
  /// Adds to `args` the parts that need memory: sections, and buffers for packed data. May throw
  /// std::bad_alloc.
  virtual void prepare(CommRecord& /*record*/) {}
  /// After prepare(): native MPI's error code where it refuses the types, which its error handler has seen. The call then does
  /// not take place.
  virtual int check_types() { return MPI_SUCCESS; }
  /// Packs before and unpacks after the call of HiPS, if HiPS cannot use the program's buffers directly.
  /// Returns native MPI's error code.
  virtual int pack() { return MPI_SUCCESS; }
  virtual int unpack() { return MPI_SUCCESS; }
  /// True if pack() or unpack() copies data.
  [[nodiscard]] virtual bool packs() const { return false; }
  /// True if a request keeps the call until it has ended: for unpack(), or for what the program may free meanwhile.
  [[nodiscard]] virtual bool is_kept() const { return packs(); }
  /// For a request, after pack(): duplicates the type that the program may free before unpack(). Returns native
  /// MPI's error code.
  virtual int keep() { return MPI_SUCCESS; }

  /// Calls with the same class share a tuning decision.
  [[nodiscard]] CallClass call_class() const {
    const CallKind kind =
        args.collective == Collective::kAllreduce ? CallKind(args.op) : CallKind(args.collective);
    return CallClass::of(bytes_ | 1, kind);  // a barrier has no bytes
  }
  /// Size of the vector that the call reduces or moves.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  const CollectiveArguments& passed;  ///< the program's arguments
  comm::CallArgs args;                ///< the arguments for HiPS

 protected:
  /// For derived classes whose constructor fills in `args` afterwards.
  explicit ProgramCall(const CollectiveArguments& arguments) : passed(arguments) {}
  /// For derived classes that pass all arguments for HiPS.
  ProgramCall(const CollectiveArguments& arguments, comm::CallArgs of_hips, std::uint64_t bytes,
              Eligibility eligibility)
      : passed(arguments), args(std::move(of_hips)), bytes_(bytes), eligibility_(eligibility) {}

  /// Sets the number of elements, of `size` bytes each.
  void set_count(std::uint64_t count, std::uint64_t size) {
    args.count = count;
    bytes_ = count * size;
  }
  void set_count(std::uint64_t count, const Reduction& reduction) {
    args.count = count * reduction.parts;
    bytes_ = count * reduction.size;
  }
  void set_bytes(std::uint64_t bytes) { bytes_ = bytes; }
  void set_in(const void* in) { args.in = static_cast<const std::byte*>(in); }
  void set_out(void* out) { args.out = static_cast<std::byte*>(out); }
  void set_eligibility(Eligibility eligibility) { eligibility_ = eligibility; }
  [[nodiscard]] bool in_place() const { return passed.in == MPI_IN_PLACE; }

 private:
  std::uint64_t bytes_ = 0;
  Eligibility eligibility_ = Eligibility::kEligible;
};

/// Makes the ProgramCall of one collective.
using MakeCall = std::unique_ptr<ProgramCall> (*)(const CollectiveArguments& passed,
                                                  const CommRecord& record);

/// A call, with its arguments, that outlives the function that the program called.
struct KeptCall {
  KeptCall(const CollectiveArguments& arguments, const CommRecord& record, MakeCall make)
      : passed(arguments), call(make(passed, record)) {}

  CollectiveArguments passed;
  std::unique_ptr<ProgramCall> call;
};

}  // namespace hips::mpi
