// The functions of native MPI for each line of signatures.def.

#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include "lib/mpi/calls/barrier_call.hpp"
#include "lib/mpi/calls/bcast_call.hpp"
#include "lib/mpi/calls/gather_calls.hpp"
#include "lib/mpi/calls/reduction_calls.hpp"
#include "lib/mpi/native/abi.hpp"
#include "lib/mpi/signatures.hpp"

namespace hips::mpi {

// Open MPI had persistent forms under other names before MPI 4. Native MPI may be newer than mpi.h.
#if MPI_VERSION < 4 && defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define HIPS_INIT_NAME(Name) "MPIX_" #Name "_init"
#else
#define HIPS_INIT_NAME(Name) "MPI_" #Name "_init"
#endif

// Types of parameters, and arguments converted to them.
#define HIPS_TYPE_OF_C(name) TypesOfC::name
#define HIPS_TYPE_OF_LARGE_C(name) TypesOfLargeC::name
#define HIPS_VALUE_OF_C(name) static_cast<TypesOfC::name>(a.name)
#define HIPS_VALUE_OF_LARGE_C(name) static_cast<TypesOfLargeC::name>(a.name)

// In each form `a` is the arguments.
// clang-format off
#define HIPS_COLLECTIVE(Class, Name, name, NAME, counts, persistence, ...)                               \
  const NativeCollective Class::kNative = {                                                              \
      .index = kIndexOf##Class,                                                                          \
      .names = {"MPI_" #Name, "MPI_I" #name,                                                             \
                HIPS_IF_##persistence(HIPS_INIT_NAME(Name)) HIPS_UNLESS_##persistence(nullptr)},         \
      .call = [](const CollectiveArguments& a) {                                                         \
        HIPS_IF_LARGE_##counts(if (a.is_large) {                                                         \
          static constinit NativeFunction<int(HIPS_MAP(HIPS_TYPE_OF_LARGE_C, __VA_ARGS__))> large;       \
          return large.get("PMPI_" #Name "_c")(HIPS_MAP(HIPS_VALUE_OF_LARGE_C, __VA_ARGS__));            \
        })                                                                                               \
        static constinit NativeFunction<int(HIPS_MAP(HIPS_TYPE_OF_C, __VA_ARGS__))> function;            \
        return function.get("PMPI_" #Name)(HIPS_MAP(HIPS_VALUE_OF_C, __VA_ARGS__));                      \
      },                                                                                                 \
      .start = [](const CollectiveArguments& a, MPI_Request* request) {                                  \
        HIPS_IF_LARGE_##counts(if (a.is_large) {                                                         \
          using Large = int(HIPS_MAP(HIPS_TYPE_OF_LARGE_C, __VA_ARGS__), MPI_Request*);                  \
          static constinit NativeFunction<Large> large;                                                  \
          return large.get("PMPI_I" #name "_c")(HIPS_MAP(HIPS_VALUE_OF_LARGE_C, __VA_ARGS__), request);  \
        })                                                                                               \
        using Function = int(HIPS_MAP(HIPS_TYPE_OF_C, __VA_ARGS__), MPI_Request*);                       \
        static constinit NativeFunction<Function> function;                                              \
        return function.get("PMPI_I" #name)(HIPS_MAP(HIPS_VALUE_OF_C, __VA_ARGS__), request);            \
      },                                                                                                 \
      .init = HIPS_UNLESS_##persistence(nullptr)                                                         \
          HIPS_IF_##persistence([](const CollectiveArguments& a, MPI_Info info, MPI_Request* request) {  \
        HIPS_IF_LARGE_##counts(if (a.is_large) {                                                         \
          using Large = int(HIPS_MAP(HIPS_TYPE_OF_LARGE_C, __VA_ARGS__), MPI_Info, MPI_Request*);        \
          static constinit NativeFunction<Large> large;                                                  \
          return large.get("PMPI_" #Name "_init_c")(HIPS_MAP(HIPS_VALUE_OF_LARGE_C, __VA_ARGS__),        \
                                                    info, request);                                      \
        })                                                                                               \
        using Function = int(HIPS_MAP(HIPS_TYPE_OF_C, __VA_ARGS__), MPI_Info, MPI_Request*);             \
        static constinit NativeFunction<Function> function;                                              \
        return function.get("PMPI_" #Name "_init", "PMPIX_" #Name "_init")(                              \
            HIPS_MAP(HIPS_VALUE_OF_C, __VA_ARGS__), info, request);                                      \
      }),                                                                                                \
  };
#include "lib/mpi/signatures.def"
// clang-format on

}  // namespace hips::mpi
