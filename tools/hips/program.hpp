#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::cli {

/// Which MPI a program was built with.
enum class MpiAbi {
  kUnknown,  ///< no MPI library among those that it needs: a script, Python, a wrapper
  kOpenMpi,
  kMpich,  ///< MPICH, MVAPICH, Intel MPI: one ABI
};

struct Program {
  std::string path;
  MpiAbi abi = MpiAbi::kUnknown;
  std::string mpi_library;  ///< that told: "libmpi.so.40"
  bool is_static = false;   ///< an ELF program that loads no libraries: LD_PRELOAD cannot reach it
};

/// The file that execvp() would run for `name`.
///
/// Errors   kInvalidArgument: not found (sys_errno ENOENT) or not executable (EACCES).
Result<std::string> find_program(const std::string& name, std::string_view path_variable);

/// Which MPI the program at `path` needs, itself or through its libraries. Asks the program's own dynamic
/// loader, which alone knows all rules of where libraries are found; runs no code of the program.
Program inspect_program(const std::string& path);

/// The MPI that one of these library names belongs to. "libmpi.so.40" is Open MPI's, "libmpi.so.12" that of
/// Intel MPI and MVAPICH, "libmpich.so.12" MPICH's.
MpiAbi abi_of_library(std::string_view soname);

}  // namespace hips::cli
