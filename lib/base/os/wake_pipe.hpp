#pragma once

#include "lib/base/os/process_file.hpp"
#include "lib/base/os/unique_fd.hpp"
#include "lib/base/result.hpp"

namespace hips {

/// What a process of this machine can end another's sleep in poll() by: a pipe.
///
/// A pipe, because a peer can open it by itself as /proc/PID/fd/N (an eventfd it cannot), with O_RDWR, so
/// that writing to it never raises SIGPIPE, whoever has died.
///
/// Threads  the sleeper's one at a time; any number ring.
class WakePipe {
 public:
  /// Errors   kSystem: the process has no descriptors left.
  static Result<WakePipe> create();

  /// Readable once somebody has rung, until empty().
  [[nodiscard]] int fd() const { return read_end_.get(); }
  /// For open_end() of the others.
  [[nodiscard]] const ProcessFile& name() const { return name_; }
  /// After a sleep.
  void empty() const;

  /// The end by which another process rings.
  ///
  /// Errors   those of open_process_file().
  static Result<UniqueFd> open_end(const ProcessFile& name);
  /// Ends the sleep, also one that is about to begin.
  static void ring(const UniqueFd& end);

 private:
  UniqueFd read_end_, write_end_;
  ProcessFile name_;
};

}  // namespace hips
