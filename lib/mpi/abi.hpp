#pragma once

#include <mpi.h>

#include <cstring>
#include <string_view>

#include "lib/mpi/host_symbol.hpp"

// The interposer is compiled once for each ABI of MPI, against that ABI's mpi.h, from the same sources: a
// library for programs of Open MPI, one for those of MPICH and its relatives. What differs beyond mpi.h is
// here and in abi_openmpi.cpp and abi_mpich.cpp.

#if defined(OPEN_MPI)
#define HIPS_MPI_ABI_OPENMPI 1
#elif defined(MPICH_VERSION)
#define HIPS_MPI_ABI_MPICH 1
#else
#error "mpi.h is neither Open MPI's nor MPICH's"
#endif

namespace hips::mpi {

struct Host;

/// Of this build: "libhips_mpi.so".
extern const std::string_view kInterposerName;

/// A predefined handle of the host. Open MPI's are addresses of objects in its library, which we are not
/// linked with; MPICH's are numbers.
///
/// Threads  a value.
template <typename Handle>
struct Predefined {
#ifdef HIPS_MPI_ABI_OPENMPI
  const char* object;
  /// Null where the host has none.
  [[nodiscard]] Handle handle() const {
    return static_cast<Handle>(host_symbol(object));
  }
#else
  Handle number;
  [[nodiscard]] Handle handle() const {
    return number;
  }
#endif
};

/// `standard` as the standard names it, `object` as Open MPI's library does.
#ifdef HIPS_MPI_ABI_OPENMPI
#define HIPS_MPI_PREDEFINED(standard, object) \
  { object }
#else
#define HIPS_MPI_PREDEFINED(standard, object) \
  { standard }
#endif

/// Does MPI_Pack take elements at MPI_BOTTOM? MPICH 4.0 says that there is a null pointer.
#ifdef HIPS_MPI_ABI_OPENMPI
inline constexpr bool kPackTakesBottom = true;
#else
inline constexpr bool kPackTakesBottom = false;
#endif

/// Do error codes of ours in classes of the standard keep their text? MPICH 4.0 gives them another; those in
/// a class of ours keep theirs.
#ifdef HIPS_MPI_ABI_OPENMPI
inline constexpr bool kErrorTextInStandardClass = true;
#else
inline constexpr bool kErrorTextInStandardClass = false;
#endif

/// Is the MPI that is loaded one of this ABI? Once host_is_loaded().
bool host_is_of_abi();

/// Fills the predefined handles in; false where the host has other ones.
bool look_up_handles(Host& host);

/// A function of the host that is to get the program's arguments as they came, also where host() is null.
/// Null where the host has none.
///
/// Handles of Open MPI hold those of any ABI, so its library is harmless in every program. MPICH's do not
/// hold Open MPI's: there this ends a process whose MPI is another, and says what to type instead.
void* host_function(const char* name);

/// The same, of its type.
template <typename Function>
Function* of_host(const char* name) {
  return reinterpret_cast<Function*>(host_function(name));
}

/// How the host moves our calls on, which it does not have to offer; see host_progress.hpp.
struct HostProgress {
  using Callback = int();
  using Function = int(Callback*);
  Function* add = nullptr;
  Function* remove = nullptr;
};
HostProgress look_up_host_progress();

/// A handle in a pointer, for callbacks that hand one through, and back.
template <typename Handle>
void* to_context(Handle handle) {
  static_assert(sizeof(Handle) <= sizeof(void*));
  void* context = nullptr;
  std::memcpy(&context, &handle, sizeof handle);
  return context;
}

template <typename Handle>
Handle from_context(void* context) {
  Handle handle;
  std::memcpy(&handle, &context, sizeof handle);
  return handle;
}

}  // namespace hips::mpi
