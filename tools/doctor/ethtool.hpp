#pragma once

#include <string>

#include "tools/doctor/node.hpp"

namespace hips::doctor {

/// The driver's own counters of a network interface, as `ethtool -S NAME` prints them. Only these include PFC
/// pause frames. Empty if the driver has none.
Counters ethtool_counters(const std::string& interface);

}  // namespace hips::doctor
