#pragma once

#include <string>
#include <string_view>

#include "lib/base/config.hpp"
#include "lib/base/result.hpp"
#include "lib/comm/bootstrap.hpp"
#include "tools/hips/launcher.hpp"

namespace hips::cli {

/// How the ranks of a job that somebody started find each other.
struct Meeting {
  enum class How {
    kAlone,       ///< one process: nobody to meet
    kRendezvous,  ///< at rank 0's address
    kByPmix,      ///< the launcher gives no address, but carries one: hips-meet
  };
  How how = How::kAlone;
  comm::TcpRendezvous rendezvous{};  ///< kRendezvous
};

/// HIPS_RANK, HIPS_SIZE and HIPS_ROOT, or torchrun's variables; else the launcher's rank and size with
/// HIPS_ROOT, where it is set; else PMIx under mpirun and srun --mpi=pmix, and the first host of the step
/// under srun. `command` is the one that meets, for errors: "doctor".
///
/// Threads  pure; any thread.
/// Errors   kInvalidArgument: a variable is missing or wrong. kUnsupported: the launcher does not tell where
/// rank 0
///          is; says what to type.
Result<Meeting> find_meeting(std::string_view command, const Config& config, const Environment& environment,
                             const Launcher& launcher);

/// "node003" of "node[003-005,9],other", as Slurm writes lists of hosts.
std::string first_host(std::string_view list);

}  // namespace hips::cli
