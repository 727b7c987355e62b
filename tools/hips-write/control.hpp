#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lib/base/result.hpp"
#include "lib/base/unique_fd.hpp"

namespace hips::write {

/// The TCP connection between both ends: what they tell one another before and after a run, and the sign that
/// the other end still lives.
///
/// Threads  one at a time.
class Control {
 public:
  /// Waits for one client, as long as it takes. `waiting` is called once it can come.
  ///
  /// Errors   kSystem: the port is taken, with its number and the flag for another.
  static Result<Control> serve(std::int32_t port, const std::function<void()>& waiting);
  /// Errors   kInvalidArgument: no such host. kPeerLost: nobody listens, or no answer in `timeout_ms`.
  static Result<Control> connect(const std::string& host, std::int32_t port, int timeout_ms);

  /// Sends `mine` and gives the other end's.
  ///
  /// Errors   kPeerLost: it has left, or sent nothing in `timeout_ms` (-1: no such limit). kMismatch: another
  ///          program is at the other end.
  Result<std::string> exchange(const std::string& mine, int timeout_ms);
  /// A look whether the other end has left, as kPeerLost. One system call.
  Status check() const;
  /// Whether something from the other end waits to be read.
  [[nodiscard]] bool has_message() const;
  /// The address of the other end for errors.
  [[nodiscard]] const std::string& peer() const { return peer_; }

 private:
  Control(UniqueFd fd, std::string peer) : fd_(std::move(fd)), peer_(std::move(peer)) {}
  Status read_all(char* to, std::size_t bytes, std::int64_t deadline_ns);
  [[nodiscard]] Status lost() const;

  UniqueFd fd_;
  std::string peer_;
};

/// Looks at the other end now and then from a loop that must not lose time.
class Watch {
 public:
  explicit Watch(const Control& control);
  /// To be called when there was nothing to do. True once the other end has left; status() says so.
  bool idle() {
    if (++idles_ % kIdlesPerLook != 0) [[likely]]
      return false;
    return look();
  }
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] const Control& control() const { return control_; }

 private:
  static constexpr std::uint32_t kIdlesPerLook = 1024;
  /// A tenth of a second at 2.7 GHz. The system's clock may be dear, so that it is not asked.
  static constexpr std::uint64_t kTicksPerLook = std::uint64_t{1} << 28U;
  bool look();

  const Control& control_;
  std::uint32_t idles_ = 0;
  std::uint64_t last_look_;
  Status status_;
};

}  // namespace hips::write
