#pragma once

#include <string>
#include <string_view>

namespace hips::mpi {

/// LD_PRELOAD without this library (kInterposerName) under any path: "a.so:/x/libhips_mpi.so b.so" gives
/// "a.so:b.so" in libhips_mpi.so.
std::string without_interposer(std::string_view preload);

/// Removes this library from LD_PRELOAD, so that no child of this process loads it.
void leave_preload();

}  // namespace hips::mpi
