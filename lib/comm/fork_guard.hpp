#pragma once

#include <hips/status.hpp>

namespace hips::comm {

/// A forked child shares its parent's memory segments and sockets but none of its threads: whatever it did
/// with them would damage the parent. From the first call on, children are told so.
///
/// Threads  any thread.
void guard_against_fork();

/// Is this process the child of one that had used HiPS? One load.
[[nodiscard]] bool in_forked_child();

/// kUnsupported in a forked child.
Status check_not_forked();

}  // namespace hips::comm
