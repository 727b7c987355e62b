#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::cli {

/// Which MPI a program was built with.
enum class MpiAbi {
  kUnknown,  ///< the program needs no MPI library: a script, Python, a wrapper
  kOpenMpi,
  kMpich,  ///< MPICH, MVAPICH, Intel MPI: one ABI
};

struct MpiProgram {
  std::string path;
  MpiAbi abi = MpiAbi::kUnknown;
  std::string mpi_library;          ///< the library that determined `abi`: "libmpi.so.40"
  bool uses_hips_library = false;   ///< it links libhips.so, and no MPI itself
  bool makes_no_mpi_calls = false;  ///< it links no MPI, and can neither load a library nor start a program
  bool is_static = false;  ///< an ELF program that loads no libraries, so that LD_PRELOAD has no effect
  bool is_secure = false;  ///< it gets rights that its caller has not, so that the loader ignores LD_PRELOAD
};

/// The file that execvp() would execute for `name`.
///
/// Errors   kInvalidArgument: not found (sys_errno ENOENT) or not executable (EACCES).
Result<std::string> find_program(const std::string& name, std::string_view path_variable);

/// Finds the MPI that the program at `path` needs, itself or through its libraries. For the latter asks the program's
/// own dynamic loader, since only that knows all the rules for finding libraries: some milliseconds. Runs no code of the
/// program.
MpiProgram inspect_program(const std::string& path);

/// The MPI that a library belongs to: "libmpi.so.40" is Open MPI's, "libmpi.so.12" that of Intel MPI and
/// MVAPICH, "libmpich.so.12" MPICH's.
MpiAbi abi_of_library(std::string_view soname);

}  // namespace hips::cli
