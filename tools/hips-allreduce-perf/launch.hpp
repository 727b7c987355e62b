#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <hips/hips.h>

#include <hips/types.hpp>

#include "lib/base/result.hpp"

namespace hips::perf {

/// An allreduce of the MPI that started the ranks, to be held against.
class HostMpi {
 public:
  virtual ~HostMpi() = default;
  /// Its name and version, on one line.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Does it have this type with this operation?
  [[nodiscard]] virtual bool has(DataType type, ReduceOp op) const = 0;
  virtual void allreduce(const void* in, void* out, std::uint64_t count, DataType type, ReduceOp op) = 0;
};

/// How this process was started. It lives as long as the program uses what started it.
class Launch {
 public:
  virtual ~Launch() = default;
  /// hips_comm_create() for all ranks that were started together.
  virtual hips_status_t create(const hips_comm_config_t& config, hips_comm_t* comm) = 0;
  /// Null where no MPI started the ranks. `interposed`: as the program finds it, with whatever library has
  /// been put in front; else behind all of those.
  virtual std::unique_ptr<HostMpi> host_mpi(bool interposed) = 0;
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
