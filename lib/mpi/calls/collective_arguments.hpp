#pragma once

#include <mpi.h>

#include <cstdint>

namespace hips::mpi {

/// The arguments of a collective as the program passed them. Handles and special addresses of Fortran are
/// already converted to C. signatures.def says which of them each function has.
///
/// Owns     nothing.
/// Threads  a value.
struct CollectiveArguments {
  const void* in = nullptr;
  std::int64_t in_count = 0;
  MPI_Datatype in_type{};
  void* out = nullptr;
  std::int64_t count = 0;
  const void* counts = nullptr;  ///< by rank: int, or MPI_Count if is_large
  const void* displs = nullptr;  ///< by rank: int, or MPI_Aint if is_large
  MPI_Datatype type{};
  MPI_Op op{};
  int root = 0;
  MPI_Comm comm{};
  bool is_large = false;  ///< the call is of a large-count function (MPI_Bcast_c)

  [[nodiscard]] std::int64_t count_of(int rank) const {
    return is_large ? static_cast<const MPI_Count*>(counts)[rank] : static_cast<const int*>(counts)[rank];
  }
  [[nodiscard]] std::int64_t displacement_of(int rank) const {
    return is_large ? static_cast<const MPI_Aint*>(displs)[rank] : static_cast<const int*>(displs)[rank];
  }
};

/// The form in which the program calls a collective.
enum class CallForm { kBlocking, kNonblocking, kPersistent };
inline constexpr int kNumCallForms = 3;

/// A collective of native MPI in its three forms. Each calls the function that the program called, the
/// large-count one if `is_large`, and returns native MPI's error code. They also work under an MPI of another
/// ABI, because they do not read the handles.
struct NativeCollective {
  int index;  ///< 0 to kNumNativeCollectives - 1
  const char*
      names[kNumCallForms];  ///< "MPI_Bcast", "MPI_Ibcast", "MPI_Bcast_init"; null: HiPS has no such form
  int (*call)(const CollectiveArguments& passed);
  int (*start)(const CollectiveArguments& passed, MPI_Request* request);
  int (*init)(const CollectiveArguments& passed, MPI_Info info, MPI_Request* request);

  [[nodiscard]] const char* name(CallForm form) const { return names[static_cast<int>(form)]; }
};
enum {
#define HIPS_COLLECTIVE(Class, ...) kIndexOf##Class,
#include "lib/mpi/signatures.def"
  kNumNativeCollectives
};

}  // namespace hips::mpi
