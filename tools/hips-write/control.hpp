#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lib/base/os/unique_fd.hpp"
#include "lib/base/result.hpp"

namespace hips::write {

/// The TCP connection between both ends. They exchange settings before a run and results after it, and detect
/// when the other end has exited.
///
/// Threads  one at a time.
class ControlConnection {
 public:
  /// Waits for one client, without a time limit. Calls `waiting` with the port once a client can connect.
  ///
  /// Shapes   `port` 0: any free one.
  /// Errors   kSystem: the port is in use; names it and the flag for another.
  static Result<ControlConnection> serve(std::int32_t port,
                                         const std::function<void(std::int32_t port)>& waiting);
  /// Errors   kInvalidArgument: unknown host. kPeerLost: nothing listens, or no answer in `timeout_ms`.
  static Result<ControlConnection> connect(const std::string& host, std::int32_t port, int timeout_ms);

  /// Sends `mine` and returns the message of the other end.
  ///
  /// Errors   kPeerLost: it has exited, or sent nothing in `timeout_ms` (-1: no limit). kMismatch: it is
  ///          another program.
  Result<std::string> exchange(const std::string& mine, int timeout_ms);
  /// Checks the other end without waiting. One system call.
  ///
  /// Errors   kPeerLost: it has exited.
  Status check() const;
  /// The address of the other end, for messages.
  [[nodiscard]] const std::string& peer() const { return peer_; }

 private:
  ControlConnection(UniqueFd fd, std::string peer) : fd_(std::move(fd)), peer_(std::move(peer)) {}
  Status read_all(char* to, std::size_t bytes, std::int64_t deadline_ns);
  [[nodiscard]] Status lost() const;

  UniqueFd fd_;
  std::string peer_;
};

/// Checks the other end from time to time, from a polling loop.
///
/// Cost     a counter in most calls; every 1024 calls a clock; a system call about ten times a second
class PeerMonitor {
 public:
  explicit PeerMonitor(const ControlConnection& control);
  /// Called when a poll found nothing. Returns true, and sets status(), once the other end has exited.
  bool idle() {
    if (++idles_ % kIdlesPerCheck != 0) [[likely]]
      return false;
    return check_now();
  }
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] const ControlConnection& control() const { return control_; }

 private:
  static constexpr std::uint32_t kIdlesPerCheck = 1024;
  /// A tenth of a second at 2.7 GHz. Reading the system's clock may be slow, so that ticks are used.
  static constexpr std::uint64_t kTicksPerCheck = std::uint64_t{1} << 28U;
  bool check_now();

  const ControlConnection& control_;
  std::uint32_t idles_ = 0;
  std::uint64_t last_check_;
  Status status_;
};

}  // namespace hips::write
