#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/lab/shaping.hpp"
#include "tools/lab/wiring.hpp"

namespace hips::lab {

/// Where Open MPI in a guest finds the servers and the number of ranks on each.
inline constexpr const char* kHostFile = "/etc/hips-lab-hosts";

/// What all guests of a lab are told.
struct GuestSetup {
  std::int64_t num_guests = 1;
  std::int64_t slots = 1;  ///< ranks on each guest
  std::vector<std::string> writable;
};

/// A shell script that makes a guest node N of the lab: names its network interfaces (nic0, nic1, ... in the
/// order of the server's NICs, mgmt0), gives them addresses, and adds a soft-RoCE device to each rail (rxe0,
/// rxe1, ... with the NICs' numbers).
///
/// Threads  pure; any thread.
std::string guest_script(const GuestSetup& setup, const Wiring& wiring, const Shaping& shaping,
                         std::int64_t server);

/// The same where one guest stands for all servers: `num_devices` devices that reach themselves only, each on
/// a dummy interface.
std::string one_guest_script(const GuestSetup& setup, std::int64_t num_devices);

/// HIPS_IB_HCA: the device and port that serve each rail, in rail order: "rxe0:1,rxe1:1". From eleven devices
/// on it begins with "=", because "rxe1" without it means "rxe10", too.
std::string device_list(const std::vector<std::int64_t>& devices, const std::string& prefix = "rxe");

}  // namespace hips::lab
