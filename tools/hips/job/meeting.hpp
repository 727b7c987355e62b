#pragma once

#include <string>
#include <string_view>

#include "lib/base/config/config.hpp"
#include "lib/base/result.hpp"
#include "lib/comm/setup/bootstrap.hpp"
#include "tools/hips/job/launcher.hpp"

namespace hips::cli {

/// How the ranks of a job find each other.
struct Meeting {
  enum class How {
    kAlone,       ///< there is one process
    kRendezvous,  ///< all connect to rank 0's address
    kByPmix,      ///< hips-meet exchanges rank 0's address through PMIx
  };
  How how = How::kAlone;
  comm::TcpRendezvous rendezvous{};  ///< kRendezvous
};

/// Decides how the ranks meet. In this order: HIPS_RANK, HIPS_SIZE and HIPS_ROOT, or torchrun's variables;
/// the launcher's rank and size with HIPS_ROOT, if that is set; PMIx under mpirun and srun --mpi=pmix; the
/// first node of the step under srun. `command` is the name for messages, such as "doctor".
///
/// Threads  pure; any thread.
/// Errors   kInvalidArgument: a variable is missing or invalid. kUnsupported: the launcher does not tell rank
///          0's address; the message says what to type.
Result<Meeting> find_meeting(std::string_view command, const Config& config, const Environment& environment,
                             const Launcher& launcher);

}  // namespace hips::cli
