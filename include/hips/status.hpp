#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include <hips/export.hpp>

namespace hips {

/// A process in a communicator, or a server of a topology when each server runs one rank.
using Rank = std::int32_t;

/// One NIC of a server, numbered from 0; kNoRail where data does not leave the server.
using Rail = std::int32_t;
inline constexpr Rail kNoRail = -1;

/// What went wrong, in the values of `hips_status_t` (hips.h).
enum class Code : std::int32_t {
  kOk = 0,
  kInvalidArgument = 1,  ///< the caller's input: a malformed spec, a null buffer, a count that overflows
  kUnsupported = 2,      ///< well formed, but this build or this topology cannot do it
  kMismatch = 3,         ///< ranks disagree: topology, version, count, type, op
  kPeerLost = 4,         ///< a peer died, or left before the operation was complete
  kAborted = 5,          ///< a rank aborted the communicator
  kTimeout = 6,          ///< the user's own deadline passed
  kOutOfMemory = 7,
  kSystem = 8,    ///< a system call failed; `sys_errno` says how
  kInternal = 9,  ///< a broken invariant of the library
};

/// The largest thing that is broken and has to be made again.
enum class Scope : std::uint8_t { kOperation, kLink, kPeer, kCommunicator, kProcess };

/// The outcome of a call that can fail: code, scope and one sentence with the cause and the value seen.
///
/// Threads  a value; any thread.
/// Example  return Status::error(Code::kInvalidArgument, "topology: \"bcube:3\" lacks k; write bcube:3,1");
struct [[nodiscard]] Status {
  Code code = Code::kOk;
  Scope scope = Scope::kOperation;
  Rank rank = -1;  ///< the rank at fault, -1 where none is
  Rail rail = kNoRail;
  int sys_errno = 0;       ///< errno or a completion status, 0 where none applies
  std::uint64_t call = 0;  ///< inside the library: the number of the call in which ranks disagree; else 0
  std::string message;

  [[nodiscard]] bool ok() const { return code == Code::kOk; }

  static Status success() { return {}; }
  static Status error(Code code, std::string message, Scope scope = Scope::kOperation) {
    Status status;
    status.code = code;
    status.scope = scope;
    status.message = std::move(message);
    return status;
  }
};

/// The name of a code as users see it: "invalid argument", "peer lost", ...
HIPS_EXPORT const char* to_string(Code code);

/// The one exception type of the C++ API; `what()` is the status' message.
class HIPS_EXPORT Error : public std::exception {
 public:
  explicit Error(Status status) : status_(std::move(status)) {}
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] const char* what() const noexcept override { return status_.message.c_str(); }

 private:
  Status status_;
};

}  // namespace hips
