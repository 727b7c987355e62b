#pragma once

#include <mpi.h>

namespace hips::mpi {

// clang-format off
/// The host's functions that we call, always under their profiling names: a call of ours is never intercepted,
/// neither by us nor by a tool.
#define HIPS_MPI_HOST_FUNCTIONS(X)                                                                       \
  X(Add_error_code) X(Add_error_string) X(Allgather) X(Allreduce) X(Comm_call_errhandler)               \
  X(Comm_create_keyval) X(Comm_f2c) X(Comm_get_attr) X(Comm_get_errhandler) X(Comm_get_name)            \
  X(Comm_group) X(Comm_rank) X(Comm_set_attr) X(Comm_size) X(Comm_test_inter) X(Errhandler_free)        \
  X(Finalized) X(Get_library_version) X(Group_free) X(Group_translate_ranks) X(Info_f2c) X(Initialized) X(Iprobe) X(Op_f2c) X(Pack) X(Query_thread)         \
  X(Status_c2f) X(Status_f2c) X(Type_dup) X(Type_f2c) X(Type_free) X(Type_get_envelope)                 \
  X(Type_get_extent) X(Type_get_name) X(Type_size) X(Unpack)
// clang-format on

/// The MPI library of this process, as we use it.
///
/// We do not link against it. The interposer is preloaded into whatever `hips run` starts, also into the
/// shell or the Python that starts or loads the MPI program later; a link would drag an MPI library into all
/// of them, and not always the one that the program brings along.
struct Host {
#define HIPS_MPI_HOST_MEMBER(name) decltype(&PMPI_##name) name = nullptr;
  HIPS_MPI_HOST_FUNCTIONS(HIPS_MPI_HOST_MEMBER)
#undef HIPS_MPI_HOST_MEMBER

  MPI_Comm world = nullptr;
  MPI_Comm self = nullptr;
  MPI_Comm no_comm = nullptr;
  MPI_Datatype no_type = nullptr;
  MPI_Request no_request = nullptr;
  MPI_Datatype byte_type = nullptr;
  MPI_Errhandler errors_are_fatal = nullptr;
};

/// The host, looked up at the first call; null when the process has no Open MPI that we understand.
///
/// Threads  any.
const Host* host();

/// A function or object of the host, whatever MPI it is: "PMPI_Allreduce", "ompi_mpi_int"; null when there is
/// none. Also finds what was loaded with local scope (Python's modules).
void* host_symbol(const char* name);

/// True when an MPI library is already there; loads none.
bool host_is_loaded();

/// How Fortran says MPI_IN_PLACE, MPI_BOTTOM and MPI_STATUS(ES)_IGNORE: by the addresses of common blocks.
/// The program, the host's libraries and every module loaded later may each have a copy.
///
/// Threads  any.
enum class Sentinel { kNone, kInPlace, kBottom, kStatusIgnore };
Sentinel fortran_sentinel(const void* buffer);

}  // namespace hips::mpi
