#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>

#include "lib/mpi/native/abi.hpp"
#include "lib/mpi/native/buffer_type.hpp"
#include "lib/mpi/native/predefined.hpp"
#include "lib/mpi/process/mpi_process.hpp"

/// For thread_local variables on the hot path. The interposer is loaded with the program, so their offsets are
/// constants and an access needs no call. (For libraries loaded later, room for such variables is scarce.)
#define HIPS_PRELOADED_TLS __attribute__((tls_model("initial-exec")))

namespace hips::mpi {

class CommRecord;

/// State that a thread keeps between calls.
///
/// It caches the handles that it resolved last: most calls pass the same ones as a call shortly before, and asking
/// native MPI or searching a table takes longer than a small call. It does not cache handles that MPI may reuse
/// for another object, except communicators: the end of a record changes num_removed(), which invalidates the
/// cache.
struct ThreadState {
  /// The thread is inside a call. MPI calls that native MPI or a tool makes meanwhile belong to that call; they
  /// go to native MPI and are not counted.
  bool is_inside = false;

  struct KnownComm {
    MPI_Comm comm{};
    CommRecord* record = nullptr;
    std::uint64_t num_removed = 0;  ///< MpiProcess::num_removed() when `record` was found; 0: none
  };
  // Programs alternate between a few: the world, rows and columns.
  static constexpr unsigned kCommBits = 2;
  std::array<KnownComm, 1U << kCommBits> comms{};
  [[nodiscard]] KnownComm& place_of(MPI_Comm comm) {
    const auto bits = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(to_context(comm)));
    return comms[bits * 0x9e3779b97f4a7c15ULL >> (64 - kCommBits)];
  }

  MPI_Datatype reduced_type{};
  MPI_Op op{};
  Reduction reduction{.eligibility = Eligibility::kOtherType};  ///< correct for null handles

  BufferType buffer_type;  ///< of a predefined type; a null handle: none
};
inline constinit thread_local ThreadState t_state HIPS_PRELOADED_TLS;

class Inside {
 public:
  Inside() { t_state.is_inside = true; }
  ~Inside() { t_state.is_inside = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

namespace detail {
CommRecord* resolve_record(MPI_Comm comm);
const Reduction& resolve_reduction(MPI_Datatype type, MPI_Op op);
std::optional<BufferType> resolve_buffer_type(MPI_Datatype type);
}  // namespace detail

/// The record of a communicator; null if it has none yet, and for MPI_COMM_NULL.
inline CommRecord* record_of(MPI_Comm comm) {
  const ThreadState::KnownComm& last = t_state.place_of(comm);
  if (last.comm != comm || last.num_removed != MpiProcess::num_removed()) return detail::resolve_record(comm);
  if (last.record == nullptr) __builtin_unreachable();  // num_removed() is never 0
  return last.record;
}

/// As find_reduction().
inline const Reduction& reduction_of(MPI_Datatype type, MPI_Op op) {
  const ThreadState& last = t_state;
  if (last.reduced_type == type && last.op == op) return last.reduction;
  return detail::resolve_reduction(type, op);
}

/// As find_buffer_type().
inline std::optional<BufferType> buffer_type_of(MPI_Datatype type) {
  const ThreadState& last = t_state;
  if (last.buffer_type.type == type && type != MPI_Datatype{}) return last.buffer_type;
  return detail::resolve_buffer_type(type);
}

}  // namespace hips::mpi
