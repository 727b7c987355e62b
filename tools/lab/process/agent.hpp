#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hips::lab {

/// The virtio port by which the lab reaches a guest's agent, and the TCP port by which other guests do.
inline constexpr const char* kAgentPort = "hips";
inline constexpr std::uint16_t kAgentTcpPort = 990;

/// Life of the first process of a guest: starts programs for the lab and for the agents' remote shells, tells
/// what they print and how they end, and buries orphans. Returns only when it cannot work; the kernel then
/// ends the guest. `fd` is the connection to the lab where there is no guest around the agent; -1: the port.
int run_agent(int fd = -1);

/// `hips lab rsh HOST WORD...`: runs the words, joined by spaces, in a shell on another guest, as ssh would;
/// mpirun takes it for one. Gives the exit code.
int run_remote_shell(const std::vector<std::string>& words);

}  // namespace hips::lab
