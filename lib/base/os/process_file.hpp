#pragma once

#include <cstdint>

#include "lib/base/os/unique_fd.hpp"
#include "lib/base/result.hpp"

namespace hips {

/// Names an open file of a process of this machine: whose, which descriptor, and what must stand behind it.
struct ProcessFile {
  std::int32_t pid = -1;
  std::int32_t fd = -1;
  std::uint64_t device = 0, inode = 0;  ///< as fstat() gives them: process numbers and descriptors are reused
  friend bool operator==(const ProcessFile&, const ProcessFile&) = default;
};

/// Names a descriptor of this process.
///
/// Errors   kSystem: `fd` is no open descriptor.
Result<ProcessFile> process_file(int fd);

/// Opens a file that another process has open, without that process taking part, through /proc/PID/fd.
///
/// The file is checked before it is opened, so that whatever else may stand behind a reused descriptor is
/// never touched. Close-on-exec is set.
///
/// Threads  any.
/// Errors   kPeerLost: the process has ended, or the descriptor no longer is that file. kUnsupported: the
///          process may not be looked into; the message says why (another user, a process that is not
///          dumpable, hidepid). kSystem: anything else.
/// Example  auto pipe = open_process_file(name, O_RDWR | O_NONBLOCK);
Result<UniqueFd> open_process_file(const ProcessFile& file, int open_flags);

}  // namespace hips
