#pragma once

#include <cstdint>
#include <string>

#include "lib/base/result.hpp"

namespace hips::lab {

/// Adds soft-RoCE devices `prefix`0, `prefix`1, ... of the host's own kernel, each on a dummy interface of
/// the network namespace that we are in; they go with it.
///
/// Errors   kUnsupported: the module cannot be loaded, or has no devices outside the first namespace.
Status add_host_devices(const std::string& prefix, std::int64_t num_devices);

/// Whether such a device carries data between two processes, here and now; to be called in a sandbox. A
/// kernel may add a device and still look for routes in the first namespace only, as 6.1 does, so it is
/// tried.
///
/// Errors   kUnsupported: with the reason.
Status check_host_device();

/// The same for who is not in a sandbox: asks another process of this program, `self`.
Status ask_for_host_devices(const std::string& self);

}  // namespace hips::lab
