#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/hang_limit.hpp"

namespace hips::test {

using namespace std::chrono_literals;

/// A TCP port of loopback on which nobody listens right now.
std::uint16_t free_port();

/// Entries of /dev/shm that are ours.
std::vector<std::string> left_in_dev_shm();

/// From now on this process counts as one of another host: another user's, whose memory and process numbers
/// the others do not reach. It keeps network interfaces and RDMA devices. Throws where it is not root.
void move_to_another_host();

/// What became of one rank.
struct Outcome {
  bool exited = false;  ///< by itself; else by a signal, or by us because it hung
  int exit_code = -1;
  int signal = 0;
  bool hung = false;
  std::string text;  ///< what the rank returned or wrote
  std::chrono::steady_clock::time_point ended;
};

/// Runs ranks as processes of their own: forked children with HIPS_RANK, HIPS_SIZE and HIPS_ROOT set. The
/// process that forks must not have used HiPS itself.
class RankProcesses {
 public:
  /// What a rank does; its text goes to the parent, an exception's text with exit code 1. `ready` may be
  /// called to tell the parent that the rank runs.
  using Body = std::function<std::string(int rank, const std::function<void()>& ready)>;

  RankProcesses(int num_ranks, const Body& body, const std::map<std::string, std::string>& environment = {});
  ~RankProcesses();  ///< kills the ranks that are still running
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  /// Waits until all ranks have called ready(); false when one ended before or time is up.
  bool wait_ready(std::chrono::milliseconds limit = kHangLimit);
  void signal(int rank, int signal);
  /// Waits for all; kills and marks those that are still there at the limit.
  std::vector<Outcome> wait(std::chrono::milliseconds limit = kHangLimit);

 private:
  struct Child {
    pid_t pid = -1;
    int pipe = -1;
    bool ready = false;
    Outcome outcome;
  };
  void read_from(Child& child);
  void poll_pipes(std::chrono::milliseconds limit);
  std::vector<Child> children_;
};

}  // namespace hips::test
