#pragma once

#include <cstdint>
#include <vector>

#include <hips/status.hpp>

#include "lib/base/os/process_file.hpp"
#include "lib/base/os/unique_fd.hpp"
#include "lib/base/os/wake_pipe.hpp"
#include "lib/base/result.hpp"

namespace hips::shm {

/// What a sleeping process waits on: a pipe that peers write to, and the ends of peers' processes.
///
/// Threads  one at a time.
class Watch {
 public:
  /// Errors   kSystem: the process has no descriptors left.
  static Result<Watch> create();

  /// Becomes readable when a peer writes to the pipe, or a watched process ends.
  [[nodiscard]] int fd() const { return epoll_.get(); }
  [[nodiscard]] const ProcessFile& pipe_name() const { return pipe_.name(); }

  /// Watches the process behind `pidfd`, under a name of the caller's, until forget().
  Status add(std::int32_t key, int pidfd);
  void forget(int pidfd);

  /// Gives the keys of processes that have ended, again at each call until forget(). The pipe stays as it is:
  /// what a peer writes into it may be all that will end a sleep that is about to begin.
  void look(std::vector<std::int32_t>& ended) const;
  /// Empties the pipe, after a sleep.
  void empty() const { pipe_.empty(); }

 private:
  WakePipe pipe_;
  UniqueFd epoll_;
};

/// A descriptor that becomes readable when process `pid` ends; not valid on kernels before 5.3, where a death
/// is left to the heartbeats of the control connection.
///
/// Errors   kPeerLost: there is no such process.
Result<UniqueFd> open_pidfd(std::int32_t pid);

}  // namespace hips::shm
