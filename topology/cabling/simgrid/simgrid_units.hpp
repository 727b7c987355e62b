#pragma once

#include <optional>
#include <string_view>

namespace hips::topology {

/// A bandwidth as SimGrid's platforms have it, in bytes/s: "125MBps" (bytes), "1Gbps" (bits), "1GiBps", or a number of bytes per
/// second. None if it is none, or not from 1 Mb/s to 100 Tb/s.
std::optional<double> simgrid_bandwidth(std::string_view text);

/// A time as SimGrid's platforms have it, in ns: "50us", "5E-5s", or a number of seconds. None if it is none, or above 10 s.
std::optional<double> simgrid_latency_ns(std::string_view text);

}  // namespace hips::topology
