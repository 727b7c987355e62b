#pragma once

#include <cstdint>

namespace hips::mpi {

/// The decision when to adopt one communicator: as soon as the calls that native MPI has executed on it would have been
/// shorter by more than a set-up takes. That costs at most twice what the better choice would have cost (the ski rental rule).
/// Depends only on what MPI makes equal on all ranks, so all adopt at the same call.
///
/// Threads  one at a time, like the communicator.
class Adoption {
 public:
  Adoption() = default;
  Adoption(int size, bool one_node);
  /// The processes have met: the communicator can be derived, which takes a fraction of a set-up.
  void note_met(int size);
  /// The calls so far saved nothing, as far as is known.
  void begin_again() { saved_ns_ = 0; }

  /// Adds a call that native MPI has executed, of a vector of this size.
  void add(std::uint64_t bytes) {
    saved_ns_ += saved_per_call_ns_ + static_cast<std::int64_t>(bytes >> bytes_shift_);
  }
  [[nodiscard]] bool is_due() const { return saved_ns_ >= set_up_ns_; }
  /// Whether it is due if the processes have met.
  [[nodiscard]] bool is_due_if_met(int size) const { return saved_ns_ >= size * kDerivedNs; }

 private:
  // Of processes of one node that have met, for each rank: 5 us with two and 40 with four ranks on two cores, and an exchange
  // of native MPI where no other communicator of these processes is left.
  static constexpr std::int64_t kDerivedNs = 15'000;

  std::int64_t set_up_ns_ = 0, saved_ns_ = 0, saved_per_call_ns_ = 0;
  int bytes_shift_ = 0;
};

}  // namespace hips::mpi
