#pragma once

#include "lib/base/os/process_file.hpp"
#include "lib/base/os/unique_fd.hpp"
#include "lib/base/result.hpp"

namespace hips {

/// A pipe with which another process of this node ends this process's sleep in poll().
///
/// It is a pipe because a peer can open it by itself as /proc/PID/fd/N, which an eventfd does not allow. The
/// peer opens it with O_RDWR, so a write never raises SIGPIPE, even if the sleeper has died.
///
/// Threads  one sleeper; any number of threads may ring().
class WakePipe {
 public:
  /// Errors   kSystem: the process has no descriptors left.
  static Result<WakePipe> create();

  /// Readable after ring(), until empty().
  [[nodiscard]] int fd() const { return read_end_.get(); }
  /// The name for open_end() in other processes.
  [[nodiscard]] const ProcessFile& name() const { return name_; }
  /// Removes what was written; call it after a sleep.
  void empty() const;

  /// Opens the end that another process passes to ring().
  ///
  /// Errors   those of open_process_file().
  static Result<UniqueFd> open_end(const ProcessFile& name);
  /// Ends the current sleep, or the next one.
  static void ring(const UniqueFd& end);

 private:
  UniqueFd read_end_, write_end_;
  ProcessFile name_;
};

}  // namespace hips
