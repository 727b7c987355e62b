#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <hips/hips.h>

#include <hips/types.hpp>

#include "lib/base/result.hpp"
#include "tools/hips-allreduce-perf/contender.hpp"

namespace hips::perf {

/// How this process was started. It lives as long as the program uses what started it.
class Launch {
 public:
  virtual ~Launch() = default;
  /// hips_comm_create() for all ranks that were started together.
  virtual hips_status_t create(const hips_comm_config_t& config, hips_comm_t* comm) = 0;
  /// The allreduce of the MPI that started the ranks; null where none did. `interposed`: as the program finds
  /// it, with whatever library has been put in front; else behind all of those.
  virtual std::unique_ptr<Contender> host_mpi(bool interposed) = 0;
  /// The ranks are done; not called after a failure, where waiting for peers could last for ever.
  virtual void finish() = 0;

  /// Finds out who started this process: the HIPS_ variables come first, then an MPI launcher.
  ///
  /// Errors   kInvalidArgument: neither; says how to start. kUnsupported: an MPI launcher, and this build
  /// lacks
  ///          MPI.
  static Result<std::unique_ptr<Launch>> detect(int* argc, char*** argv);

  /// Does this process speak for all? Known before any communicator is there: rank 0, or no launcher.
  static bool speaks();
};

/// launch_mpi.cpp or, in a build without MPI, launch_no_mpi.cpp.
Result<std::unique_ptr<Launch>> launch_by_mpi(int* argc, char*** argv);

}  // namespace hips::perf
