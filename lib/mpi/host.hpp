#pragma once

#include <mpi.h>

#include "lib/mpi/abi.hpp"

namespace hips::mpi {

// clang-format off
/// The host's functions that we call, always under their profiling names: a call of ours is never intercepted,
/// neither by us nor by a tool.
#define HIPS_MPI_HOST_FUNCTIONS(X)                                                                    \
  X(Add_error_class) X(Add_error_code) X(Add_error_string) X(Allgather) X(Allreduce)                  \
  X(Comm_call_errhandler) X(Comm_create_keyval) X(Comm_get_attr) X(Comm_get_errhandler)               \
  X(Comm_get_name) X(Comm_group) X(Comm_rank) X(Comm_set_attr) X(Comm_size) X(Comm_test_inter)        \
  X(Errhandler_free) X(Finalized) X(Get_library_version) X(Group_free) X(Group_translate_ranks)       \
  X(Initialized) X(Iprobe) X(Pack) X(Query_thread) X(Status_c2f) X(Status_f2c) X(Type_commit)         \
  X(Type_contiguous) X(Type_create_hindexed_block) X(Type_free) X(Type_get_envelope)                  \
  X(Type_get_contents) X(Type_get_extent) X(Type_get_name) X(Type_size) X(Type_size_x) X(Unpack)

/// Those that wrappers of ours for Fortran need where its handles are not those of C.
#ifdef HIPS_MPI_ABI_OPENMPI
#define HIPS_MPI_HOST_FORTRAN_FUNCTIONS(X) X(Comm_f2c) X(Info_f2c) X(Op_f2c) X(Type_f2c)
#else
#define HIPS_MPI_HOST_FORTRAN_FUNCTIONS(X)
#endif
// clang-format on

/// The MPI library of this process, as we use it.
///
/// We do not link against it. The interposer is preloaded into whatever `hips run` starts, also into the
/// shell or the Python that starts or loads the MPI program later; a link would drag an MPI library into all
/// of them, and not always the one that the program brings along.
struct Host {
#define HIPS_MPI_HOST_MEMBER(name) decltype(&PMPI_##name) name = nullptr;
  HIPS_MPI_HOST_FUNCTIONS(HIPS_MPI_HOST_MEMBER)
  HIPS_MPI_HOST_FORTRAN_FUNCTIONS(HIPS_MPI_HOST_MEMBER)
#undef HIPS_MPI_HOST_MEMBER

  MPI_Comm world{};
  MPI_Comm self{};
  MPI_Comm no_comm{};
  MPI_Comm probed{};  ///< where a probe moves all messages of this process on
  MPI_Datatype no_type{};
  MPI_Request no_request{};
  MPI_Datatype byte_type{};
  MPI_Errhandler errors_are_fatal{};
};

/// The host, looked up at the first call; null when the process has no MPI of the ABI that this library is
/// for.
///
/// Threads  any.
const Host* host();

}  // namespace hips::mpi
