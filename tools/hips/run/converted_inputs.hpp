#pragma once

#include <optional>
#include <string>

#include "lib/base/result.hpp"

namespace hips::cli {

/// Inputs that the library preloaded into MPI programs does not read, in forms that it does.
///
/// A converted input is a file in memory whose descriptor the program inherits. It is named /proc/PID/fd/N,
/// which also works for programs that a script starts, and it is gone when the processes are: nothing has to
/// be removed. Each rank converts for itself; equal inputs give equal texts.

/// The spec to use in place of `spec`, whose topology file names servers by lists; nothing for other specs. A
/// file that describes no more than a family's spec becomes that spec.
///
/// Errors   those of topology::load_topology(). kSystem: no file in memory can be made.
Result<std::optional<std::string>> converted_topology(const std::string& spec);

/// The JSON file to use in place of `path`, a plan in another format; nothing where it is JSON. The plan is
/// proved first, where `topology` is given and has as many ranks.
///
/// Errors   those of plan::read_plan_file() and plan::prove_stored(). kSystem: as above.
Result<std::optional<std::string>> converted_plan_file(const std::string& path,
                                                       const std::optional<std::string>& topology);

}  // namespace hips::cli
