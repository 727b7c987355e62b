#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::lab {

/// A lab of namespaces that runs on this machine, seen from outside. It is found by its processes: it leaves no files.
struct RunningLab {
  std::int64_t pid = 0;               ///< of its first process, which holds the network
  std::vector<std::int64_t> servers;  ///< process ids of the servers' agents
};

/// The lab with this process id, or the only one where `pid` is 0.
///
/// Errors   kInvalidArgument: none, or several; which ones there are.
Result<RunningLab> find_running_lab(std::int64_t pid);

/// Runs a command in a server, named "node4", with this process's streams and folder; gives its exit code.
///
/// Errors   kInvalidArgument: no such server. kSystem: its namespaces cannot be entered.
Result<int> run_in_server(const RunningLab& lab, const std::string& server,
                          const std::vector<std::string>& command);

/// Changes the cable of a NIC, named "node4:nic1": "down" cuts it, "up" joins it again, a rate such as "50mbit" is set in both
/// directions, "unlimited" takes it off.
///
/// Errors   kInvalidArgument: no such server or NIC, or no such state. kSystem.
Status change_cable(const RunningLab& lab, const std::string& nic, const std::string& state);

}  // namespace hips::lab
