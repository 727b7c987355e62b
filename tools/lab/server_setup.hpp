#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/lab/network/shaping.hpp"
#include "tools/lab/network/wiring.hpp"

namespace hips::lab {

/// Where Open MPI in a guest finds the servers and the number of ranks on each.
inline constexpr const char* kHostFile = "/etc/hips-lab-hosts";

/// Where servers that are namespaces have files of the lab's: host names, host files, the remote shell.
inline constexpr const char* kServerFolder = "/dev/shm/hips-lab";
/// In it: Open MPI's host file, Hydra's, and a program that takes a host and a command, as rsh does.
inline constexpr const char* kServerHostFile = "/dev/shm/hips-lab/hosts-openmpi";
inline constexpr const char* kServerHydraFile = "/dev/shm/hips-lab/hosts-hydra";
inline constexpr const char* kServerShell = "/dev/shm/hips-lab/rsh";

/// What all servers of a lab are told.
struct ServerSetup {
  std::int64_t num_guests = 1;
  std::int64_t slots = 1;  ///< ranks on each guest
  std::vector<std::string> writable;
};

/// A shell script that makes a guest node N of the lab: names its network interfaces (nic0, nic1, ... in the
/// order of the server's NICs, mgmt0), gives them addresses, and adds a soft-RoCE device to each rail (rxe0,
/// rxe1, ... with the NICs' numbers).
///
/// Threads  pure; any thread.
std::string guest_script(const ServerSetup& setup, const Wiring& wiring, const Shaping& shaping,
                         std::int64_t server);

/// A shell script that gives the interfaces of a server that is a namespace their addresses, and the server the names of
/// all. Each server passes packets on, with routes of fewest cables, so that programs that want every pair connected (MPI's
/// own TCP) run on topologies where servers are the switches, too. `self` is the path of this program.
///
/// Threads  pure; any thread.
std::string namespace_script(const ServerSetup& setup, const Wiring& wiring, const Shaping& shaping,
                             std::int64_t server, const std::string& self);

/// The same as guest_script() where one guest stands for all servers: `num_devices` devices that reach themselves only, each on
/// a dummy interface.
std::string one_guest_script(const ServerSetup& setup, std::int64_t num_devices);

/// HIPS_IB_HCA: the device and port that serve each rail, in rail order: "rxe0:1,rxe1:1". From eleven devices
/// on it begins with "=", because "rxe1" without it means "rxe10", too.
std::string device_list(const std::vector<std::int64_t>& devices, const std::string& prefix = "rxe");

}  // namespace hips::lab
