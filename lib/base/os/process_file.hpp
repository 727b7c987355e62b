#pragma once

#include <cstdint>

#include "lib/base/os/unique_fd.hpp"
#include "lib/base/result.hpp"

namespace hips {

/// Names an open file of a process on this node: the process, the descriptor, and the identity of the file.
struct ProcessFile {
  std::int32_t pid = -1;
  std::int32_t fd = -1;
  std::uint64_t device = 0, inode = 0;  ///< as fstat() reports them; process ids and descriptors are reused
  friend bool operator==(const ProcessFile&, const ProcessFile&) = default;
};

/// Returns the name of a descriptor of this process.
///
/// Errors   kSystem: `fd` is not open.
Result<ProcessFile> process_file(int fd);

/// Opens a file that another process has open, through /proc/PID/fd. The other process need not cooperate.
///
/// It checks the file's identity before it opens the file, so it never touches another file behind a reused
/// descriptor. Close-on-exec is set.
///
/// Threads  any.
/// Errors   kPeerLost: the process has ended, or the descriptor is another file now. kUnsupported: no permission to
///          inspect the process; the message says why (another user, a process that is not dumpable, hidepid).
///          kSystem: anything else.
/// Example  auto pipe = open_process_file(name, O_RDWR | O_NONBLOCK);
Result<UniqueFd> open_process_file(const ProcessFile& file, int open_flags);

}  // namespace hips
