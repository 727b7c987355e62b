#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/result.hpp"
#include "tools/hips/launcher.hpp"
#include "tools/hips/program.hpp"

namespace hips::cli {

/// A library that is preloaded into programs of one MPI, and what belongs to that MPI.
struct Interposer {
  MpiAbi abi;
  std::string_view option;    ///< of --mpi: "openmpi"
  std::string_view mpi;       ///< as messages call it: "Open MPI"
  std::string_view library;   ///< "libhips_mpi.so"
  std::string_view feature;   ///< of the build: "mpi"
  std::string_view launcher;  ///< what starts its programs: "mpirun"
};

/// All that there are, whether they were built or not.
std::span<const Interposer> interposers();

/// That of an MPI.
///
/// Errors   null: kUnknown, which is none.
const Interposer* interposer_of(MpiAbi abi);

/// The one for a program: by the libraries that it needs; where those do not tell (a script, Python), by
/// --mpi; else by its launcher; else Open MPI's.
///
/// Threads  pure; any thread.
/// Errors   kInvalidArgument: an unknown name, or one of another MPI than the program's.
Result<const Interposer*> choose_interposer(const std::optional<std::string>& mpi_option,
                                            const Program& program, const Launcher& launcher);

}  // namespace hips::cli
