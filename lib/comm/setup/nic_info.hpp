#pragma once

#include <string>

#include "lib/comm/setup/interfaces.hpp"
#include "lib/comm/setup/process_info.hpp"

namespace hips::comm {

/// Describes an interface of this node. `chosen`: the user named it.
///
/// Cost     a few system calls, and a lookup of this node's name, once per process.
/// Source   ioctl SIOCETHTOOL for the rate, which, unlike /sys, is that of the caller's network namespace; SIOCGIFVLAN for
///          the interface below a VLAN.
NicInfo nic_info(const LocalNetwork& network, bool chosen);

/// The rate of an interface, one direction, in bytes/s; 0 if the system does not know.
double interface_bandwidth(const std::string& interface);

}  // namespace hips::comm
