#pragma once

#include <string>
#include <string_view>

namespace hips::mpi {

/// LD_PRELOAD without this library (kInterposerName), whatever its path: "a.so:/x/libhips_mpi.so b.so" gives
/// "a.so:b.so" where it is that one.
std::string without_interposer(std::string_view preload);

/// Takes this library out of LD_PRELOAD, so that no child of this process loads it.
void leave_preload();

}  // namespace hips::mpi
