#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/result.hpp"
#include "tools/hips/job/launcher.hpp"
#include "tools/hips/run/program.hpp"

namespace hips::cli {

/// The library that is preloaded into programs of one MPI, and the names that belong to that MPI.
struct Interposer {
  MpiAbi abi;
  std::string_view option;    ///< value of --mpi: "openmpi"
  std::string_view mpi;       ///< name in messages: "Open MPI"
  std::string_view library;   ///< "libhips_mpi.so"
  std::string_view feature;   ///< option of the build: "mpi"
  std::string_view launcher;  ///< program that starts the ranks: "mpirun"
};

/// All interposers, built or not.
std::span<const Interposer> interposers();

/// The interposer of an MPI; null for kUnknown.
const Interposer* interposer_of(MpiAbi abi);

/// The interposer for a program. In this order: by the libraries that the program needs; by --mpi, if those
/// do not tell (a script, Python); by the launcher; Open MPI's.
///
/// Threads  pure; any thread.
/// Errors   kInvalidArgument: an unknown name, or the name of another MPI than the program's.
Result<const Interposer*> choose_interposer(const std::optional<std::string>& mpi_option,
                                            const MpiProgram& program, const Launcher& launcher);

}  // namespace hips::cli
