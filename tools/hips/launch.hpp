#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"
#include "tools/hips/interposers.hpp"
#include "tools/hips/launcher.hpp"
#include "tools/hips/program.hpp"

namespace hips::cli {

/// What the user asked `hips run` for.
struct LaunchRequest {
  std::optional<std::string> topology;  ///< -t, or HIPS_TOPO
  std::optional<std::string> algorithm;
  std::optional<std::string> pattern;
  std::optional<std::string> mpi;    ///< --mpi
  std::vector<std::string> command;  ///< the program and its arguments
};

/// How the program is to run.
struct Launch {
  const Interposer* interposer;
  std::optional<std::string> topology;  ///< "bcube:3,1/2" where each server has two ranks; none was named
};

/// Whether the program can run as asked, under the launcher that started us, and how.
///
/// Threads  pure; any thread.
/// Errors   one sentence that ends with what to type instead. kInvalidArgument: a malformed or unsuitable
///          topology, algorithm or pattern, a number of ranks that does not fit, no launcher, another MPI
///          than the program's. kUnsupported: a launcher that does not start programs of that MPI.
Result<Launch> check_launch(const LaunchRequest& request, const Program& program, const Launcher& launcher);

/// LD_PRELOAD with `library` in front of what is there already; unchanged where it is in it.
///
/// In front, because a profiling tool that came first would take MPI_Allreduce and call PMPI_Allreduce, which
/// passes HiPS by without a word.
std::string add_to_preload(std::string_view preload, std::string_view library);

}  // namespace hips::cli
