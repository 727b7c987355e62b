#pragma once

#include <cstdint>
#include <vector>

#include <hips/status.hpp>

#include "lib/base/os/process_file.hpp"
#include "lib/base/os/unique_fd.hpp"
#include "lib/base/os/wake_pipe.hpp"
#include "lib/base/result.hpp"

namespace hips::shm {

/// Descriptors on which a process sleeps: a pipe that peers write to, and the pidfds of peers.
///
/// Threads  one at a time.
class Watch {
 public:
  /// Errors   kSystem: the process has no descriptors left.
  static Result<Watch> create();

  /// Becomes readable when a peer writes to the pipe, or a watched process ends.
  [[nodiscard]] int fd() const { return epoll_.get(); }
  [[nodiscard]] const ProcessFile& pipe_name() const { return pipe_.name(); }

  /// Watches the process of `pidfd` until forget(). `key` identifies it in look().
  Status add(std::int32_t key, int pidfd);
  void forget(int pidfd);

  /// Appends the keys of processes that have ended, at each call until forget(). It does not empty the pipe:
  /// a byte in it may be the only wake-up for a sleep that is about to begin.
  void look(std::vector<std::int32_t>& ended) const;
  /// Empties the pipe. Call it after a sleep.
  void empty() const { pipe_.empty(); }

 private:
  WakePipe pipe_;
  UniqueFd epoll_;
};

/// Opens a descriptor that becomes readable when process `pid` ends. It is invalid on kernels before 5.3;
/// there the control connection detects the death.
///
/// Errors   kPeerLost: there is no such process.
Result<UniqueFd> open_pidfd(std::int32_t pid);

}  // namespace hips::shm
