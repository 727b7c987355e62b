#pragma once

#include <mpi.h>

#include <atomic>
#include <cstring>
#include <string_view>

#include "lib/mpi/native/native_symbol.hpp"

// The interposer is compiled once for each ABI of MPI, from the same sources against that ABI's mpi.h: one
// library for programs of Open MPI, one for those of MPICH and its relatives. Differences that mpi.h does not
// hide are here and in abi_openmpi.cpp and abi_mpich.cpp.

#if defined(OPEN_MPI)
#define HIPS_MPI_ABI_OPENMPI 1
#elif defined(MPICH_VERSION)
#define HIPS_MPI_ABI_MPICH 1
#else
#error "mpi.h is neither Open MPI's nor MPICH's"
#endif

namespace hips::mpi {

struct NativeMpi;

/// File name of this build: "libhips_mpi.so".
extern const std::string_view kInterposerName;

/// A predefined handle of native MPI. Open MPI's are addresses of objects in its library, which the
/// interposer is not linked with; MPICH's are numbers.
///
/// Threads  a value.
template <typename Handle>
struct Predefined {
#ifdef HIPS_MPI_ABI_OPENMPI
  const char* object;
  /// Null where native MPI has none.
  [[nodiscard]] Handle handle() const {
    return static_cast<Handle>(native_symbol(object));
  }
#else
  Handle number;
  [[nodiscard]] Handle handle() const {
    return number;
  }
#endif
};

/// `standard` is the name in the standard, `object` the one in Open MPI's library.
#ifdef HIPS_MPI_ABI_OPENMPI
#define HIPS_MPI_PREDEFINED(standard, object) \
  { object }
#else
#define HIPS_MPI_PREDEFINED(standard, object) \
  { standard }
#endif

/// Whether MPI_Pack accepts elements at MPI_BOTTOM. MPICH 4.0 reports a null pointer.
#ifdef HIPS_MPI_ABI_OPENMPI
inline constexpr bool kPackTakesBottom = true;
#else
inline constexpr bool kPackTakesBottom = false;
#endif

/// Whether error codes that we add to classes of the standard keep their text. MPICH 4.0 replaces it, but
/// keeps the text of codes in a class of our own.
#ifdef HIPS_MPI_ABI_OPENMPI
inline constexpr bool kErrorTextInStandardClass = true;
#else
inline constexpr bool kErrorTextInStandardClass = false;
#endif

/// Whether native MPI refuses a call whose output buffer is also its input, which should be MPI_IN_PLACE.
#ifdef HIPS_MPI_ABI_OPENMPI
inline constexpr bool kRefusesAliases = false;
/// MPI_Comm_free deletes the attributes of a communicator at once, and not when its last request has ended.
inline constexpr bool kFreesAtOnce = true;
#else
inline constexpr bool kRefusesAliases = true;
inline constexpr bool kFreesAtOnce = false;
#endif

/// Whether the MPI that is loaded has this ABI. Valid once native_is_loaded().
bool native_has_our_abi();

/// Fills in the predefined handles; false where native MPI has others.
bool look_up_handles(NativeMpi& native);

/// A function of native MPI that gets the program's arguments unchanged, also where native_mpi() is null.
/// Null where native MPI has none.
///
/// Handles of Open MPI are wide enough for those of any ABI, so its interposer is harmless in every program.
/// MPICH's are too narrow for Open MPI's: under another MPI this prints what to type instead and exits.
void* native_address(const char* name);

namespace detail {
/// The address that `find` returns for `name`, else for `other_name` if that is not null. Stored in
/// `address`.
void* look_up(std::atomic<void*>& address, void* (*find)(const char*), const char* name,
              const char* other_name);
}  // namespace detail

/// A function of native MPI, looked up at its first call, under its second name where it has none of the
/// first. `kLookUp` finds addresses.
///
/// Cost     get() is a load and a test.
/// Threads  any.
/// Example  static constinit NativeFunction<decltype(PMPI_Barrier)> function;
///          return function.get("PMPI_Barrier")(comm);
template <typename Function, void* (*kLookUp)(const char*) = native_address>
class NativeFunction {
 public:
  Function* get(const char* name, const char* other_name = nullptr) {
    void* const known = address_.load(std::memory_order_relaxed);
    return reinterpret_cast<Function*>(
        known != nullptr ? known : detail::look_up(address_, kLookUp, name, other_name));
  }

 private:
  std::atomic<void*> address_{nullptr};
};

/// How native MPI calls back from its progress engine, which is optional; see progress_hook.hpp.
struct ProgressHook {
  using Callback = int();
  using Function = int(Callback*);
  Function* add = nullptr;
  Function* remove = nullptr;
};
ProgressHook look_up_progress_hook();

/// Stores a handle in a pointer, for callbacks with a context, and reads it back.
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
