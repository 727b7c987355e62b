#pragma once

#include <cstdint>

namespace hips::lab {

/// Frequency of this host's cycle counter in kHz; 0 where there is none that guests read.
///
/// An emulated guest reads the host's counter, and would calibrate it against timers that come late while
/// other guests boot: its clock then runs fast by a factor, and its peers look dead. So it is told.
///
/// Cost     measures for 20 ms, once in a process
/// Threads  any
std::int64_t cycle_counter_khz();

}  // namespace hips::lab
