#pragma once

#include <mpi.h>

#include <string>
#include <string_view>

#include "lib/mpi/native/abi.hpp"

namespace hips::mpi {

// clang-format off
/// The functions of native MPI that the interposer calls for itself, always under their profiling names: a
/// call of ours is never intercepted, neither by us nor by a tool.
#define HIPS_MPI_NATIVE_FUNCTIONS(X)                                                                  \
  X(Add_error_class) X(Add_error_code) X(Add_error_string) X(Allgather) X(Allreduce) X(Comm_call_errhandler) \
  X(Comm_create_keyval) X(Comm_get_attr) X(Comm_get_errhandler) X(Comm_get_name) X(Comm_group)        \
  X(Comm_rank) X(Comm_set_attr) X(Comm_size) X(Comm_test_inter) X(Errhandler_free)                    \
  X(Error_class) X(Finalized) X(Get_library_version) X(Group_free) X(Group_translate_ranks)           \
  X(Initialized) X(Iprobe) X(Op_commutative) X(Op_free) X(Pack) X(Query_thread) X(Reduce_local)       \
  X(Status_c2f) X(Status_f2c) X(Type_commit) X(Type_contiguous) X(Type_create_hindexed_block)         \
  X(Type_free) X(Type_get_contents) X(Type_get_envelope) X(Type_get_extent) X(Type_get_name)          \
  X(Type_get_true_extent) X(Type_size) X(Type_size_x) X(Unpack)

/// Those that the wrappers for Fortran need where its handles are not those of C.
#ifdef HIPS_MPI_ABI_OPENMPI
#define HIPS_MPI_NATIVE_FORTRAN_FUNCTIONS(X) X(Comm_f2c) X(Info_f2c) X(Op_c2f) X(Op_f2c) X(Type_c2f) X(Type_f2c)
#else
#define HIPS_MPI_NATIVE_FORTRAN_FUNCTIONS(X)
#endif
// clang-format on

/// The MPI library of this process, as far as we use it.
///
/// The interposer is not linked with it. It is preloaded into the command that `hips run` starts, which may
/// be a shell or the Python that starts or loads the MPI program later; a link would load an MPI library into
/// all of them, and not always the one that the program uses.
struct NativeMpi {
#define HIPS_MPI_NATIVE_MEMBER(name) decltype(&PMPI_##name) name = nullptr;
  HIPS_MPI_NATIVE_FUNCTIONS(HIPS_MPI_NATIVE_MEMBER)
  HIPS_MPI_NATIVE_FORTRAN_FUNCTIONS(HIPS_MPI_NATIVE_MEMBER)
#undef HIPS_MPI_NATIVE_MEMBER

  MPI_Comm world{};
  MPI_Comm self{};
  MPI_Comm no_comm{};
  MPI_Comm probed{};  ///< a probe of it makes progress with all messages of this process
  MPI_Datatype no_type{};
  MPI_Op no_op{};
  MPI_Op and_op{};  ///< MPI_BAND
  MPI_Request no_request{};
  MPI_Datatype byte_type{};
  MPI_Errhandler errors_are_fatal{};
};

/// Looked up at the first call; null when the process has no MPI of this library's ABI.
///
/// Threads  any.
const NativeMpi* native_mpi();

/// Native MPI's functions for requests, under their profiling names. Unlike those of native_mpi() they are
/// called under any MPI, since every request of the program passes through them: under one of another ABI
/// with arguments that nobody has read (native_address()).
struct NativeRequests {
#define HIPS_REQUEST_FUNCTION(Name, ...) decltype(&PMPI_##Name) Name = nullptr;
#ifdef HIPS_MPI_ABI_OPENMPI
#define HIPS_REQUEST_CONVERSION(Name) decltype(&PMPI_##Name) Name = nullptr;
#endif
#include "lib/mpi/signatures.def"
};

namespace detail {
NativeRequests look_up_native_requests();
}

/// Threads  any.
inline const NativeRequests& native_requests() {
  static const NativeRequests functions = detail::look_up_native_requests();
  return functions;
}

/// Name and version in what MPI_Get_library_version gives: "Open MPI v4.1.4" of "Open MPI v4.1.4, package:
/// ...", "MPICH 4.0.2" of "MPICH Version:\t4.0.2" and further lines.
///
/// Threads  pure; any thread.
std::string native_version_of(std::string_view library_version);

}  // namespace hips::mpi
