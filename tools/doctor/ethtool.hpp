#pragma once

#include <string>

#include "tools/doctor/host.hpp"

namespace hips::doctor {

/// What the driver of a network interface counts of its own: `ethtool -S NAME`. PFC's pause frames are there
/// and nowhere else. Empty where the driver counts nothing.
Counters ethtool_counters(const std::string& interface);

}  // namespace hips::doctor
