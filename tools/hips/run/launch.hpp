#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"
#include "tools/hips/job/launcher.hpp"
#include "tools/hips/run/interposers.hpp"
#include "tools/hips/run/program.hpp"

namespace hips::cli {

/// The request of a `hips run` command line.
struct LaunchRequest {
  std::optional<std::string> topology;  ///< -t, or HIPS_TOPO
  std::optional<std::string> algorithm;
  std::optional<std::string> pattern;
  std::optional<std::string> mpi;      ///< --mpi
  std::vector<std::string> others{};   ///< further options as they were typed, for messages
  std::vector<std::string> command{};  ///< the program and its arguments
};

/// How the program is to run.
struct Launch {
  const Interposer* interposer;
  std::optional<std::string>
      topology{};         ///< "bcube:3,1/2" if each server has two ranks; nullopt: none is named
  std::string warning{};  ///< what is probably not what the user wants; "" if nothing
};

/// Decides whether and how the program can run under the launcher that started this process.
///
/// Threads  pure; any thread.
/// Errors   one sentence that ends with what to type instead. kInvalidArgument: a malformed or unsuitable
///          topology, a number of ranks that does not fit, no launcher, another MPI than the program's.
///          kUnsupported: a launcher that does not start programs of that MPI, a program that is static or
///          calls the HiPS library instead of MPI.
Result<Launch> check_launch(const LaunchRequest& request, const MpiProgram& program,
                            const Launcher& launcher);

/// LD_PRELOAD with `library` in front; unchanged if it already contains `library`.
///
/// In front, because a profiling tool before it would intercept MPI_Allreduce and call PMPI_Allreduce, which
/// bypasses HiPS silently.
std::string add_to_preload(std::string_view preload, std::string_view library);

}  // namespace hips::cli
