#pragma once

#include "lib/base/config.hpp"
#include "tools/doctor/finding.hpp"
#include "tools/doctor/host.hpp"
#include "tools/doctor/rails.hpp"

namespace hips::doctor {

/// The opinions on one host. All are pure, and every warning and error has the line that fixes it.

/// HIPS_ variables that are wrong or unknown.
Findings judge_environment(const LoadedConfig& loaded);

/// Devices, ports, addresses, MTU, and the quirks of software devices.
Findings judge_devices(const Host& host, const Config& config, const RailChoice& rails);

/// Locked memory, open files, shared memory, CPUs. `rails`: without any, locked memory does not matter.
Findings judge_limits(const Host& host, const RailChoice& rails);

/// Lost, damaged and paused packets, and congestion marks, of the ports that are used. Counters run since the
/// driver was loaded, so a loss of long ago looks like one of now: only many are a warning.
Findings judge_counters(const Host& host, const RailChoice& rails);

/// The interface of a port, for lines to type; IF where it is not known.
std::string interface_of(const Port& port);

/// All of them, in this order.
Findings judge_host(const Host& host, const LoadedConfig& loaded, const RailChoice& rails);

/// What carries data inside this host and to others: "shm inside a host, verbs (rxe0:1) between hosts".
std::string transports_text(const Host& host, const Config& config, const RailChoice& rails);

}  // namespace hips::doctor
