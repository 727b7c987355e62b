#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <hips/hips.h>

#include <hips/types.hpp>

#include "lib/base/result.hpp"
#include "tools/hips-allreduce-perf/other_allreduce.hpp"

namespace hips::perf {

/// The way in which the ranks were started. It must outlive their communicators.
class PerfLaunch {
 public:
  virtual ~PerfLaunch() = default;
  /// Creates a communicator of all ranks that were started together.
  virtual hips_status_t create(const hips_comm_config_t& config, hips_comm_t* comm) = 0;
  /// The allreduce of the MPI that started the ranks; null if none did. `interposed`: MPI_Allreduce as the
  /// program finds it, including preloaded libraries; else PMPI_Allreduce.
  virtual std::unique_ptr<OtherAllreduce> native_mpi(bool interposed) = 0;
  /// Ends the ranks. Not called after a failure, because it might wait for peers forever.
  virtual void finish() = 0;

  /// Detects how this process was started: by the HIPS_ variables, else by an MPI launcher.
  ///
  /// Errors   kInvalidArgument: neither; the message says how to start. kUnsupported: an MPI launcher, but
  /// this
  ///          build has no MPI.
  static Result<std::unique_ptr<PerfLaunch>> detect(int* argc, char*** argv);

  /// Is this the process that prints errors common to all ranks: rank 0, or a process without a launcher? Can
  /// be called before a communicator exists.
  static bool reports();
};

/// Defined in launch_mpi.cpp or, in a build without MPI, in launch_no_mpi.cpp.
Result<std::unique_ptr<PerfLaunch>> launch_by_mpi(int* argc, char*** argv);

}  // namespace hips::perf
