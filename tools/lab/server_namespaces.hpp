#pragma once

#include <cstdint>
#include <functional>

#include "lib/base/result.hpp"

namespace hips::lab {

/// Runs `agent` as the first process of a server: in network, host name, IPC, PID and mount namespaces of its own, with its
/// own /proc, /sys, /dev/shm, and without the machine's RDMA devices. Files are the machine's.
///
/// The caller's process is in the same network namespace and waits outside the PID namespace. When either ends, all
/// processes of the server end.
///
/// Result   the agent's exit code.
/// Errors   kUnsupported: namespaces cannot be made. kSystem.
Result<int> run_as_server(std::int64_t server, const std::function<int()>& agent);

}  // namespace hips::lab
