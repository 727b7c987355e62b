#pragma once

#include <functional>

#include "lib/base/result.hpp"

namespace hips::lab {

/// Runs `body` as the first process of PID, network and mount namespaces of its own, and gives its exit code.
///
/// When that process ends, or this one ends for whatever reason - a crash and SIGKILL too - the kernel kills
/// all processes in the namespace, and with them go the network and everything in it: nothing is left to
/// clean up, and nothing of the host's network was touched. SIGINT, SIGTERM and SIGHUP are passed on to
/// `body`, which finds them blocked and reads them from a signalfd; `lifeline` becomes readable when this
/// process is gone. Where we are not root a user namespace is made around it all.
///
/// Errors   kUnsupported: namespaces cannot be made; says what is needed. kSystem.
Result<int> run_in_sandbox(const std::function<int(int lifeline)>& body);

}  // namespace hips::lab
