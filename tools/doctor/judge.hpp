#pragma once

#include <cstdint>
#include <string>

#include "lib/base/config/config.hpp"
#include "tools/doctor/finding.hpp"
#include "tools/doctor/node.hpp"
#include "tools/doctor/rails.hpp"

namespace hips::doctor {

// Findings about one node. All functions are pure, and every warning and error has a command that fixes it.

/// HIPS_ variables that are invalid or unknown.
Findings judge_environment(const LoadedConfig& loaded);

/// Devices, ports, addresses, MTU, and the restrictions of software devices.
Findings judge_devices(const NodeFacts& node, const Config& config, const RailChoice& rails);

/// Locked memory, open files, shared memory, CPUs. Without `rails` locked memory does not matter.
Findings judge_limits(const NodeFacts& node, const RailChoice& rails);

/// Lost, damaged and paused packets, and congestion marks, of the ports in use. Counters run since the driver
/// was loaded, so that old losses look like new ones: only many of them are a warning.
Findings judge_counters(const NodeFacts& node, const RailChoice& rails);

/// "64 KiB", "8 MiB".
std::string size_text(std::uint64_t bytes);

/// The interface of a port for commands to type; IF if it is unknown.
std::string interface_of(const DevicePort& port);

/// All of them, in this order.
Findings judge_node(const NodeFacts& node, const LoadedConfig& loaded, const RailChoice& rails);

/// The transports within this node and to others: "shm inside a node, verbs (rxe0:1) between nodes".
std::string transports_text(const NodeFacts& node, const Config& config, const RailChoice& rails);

}  // namespace hips::doctor
