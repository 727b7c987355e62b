#pragma once

namespace hips::plan {

/// Holds products of two 63-bit numbers exactly. GCC and Clang have this type; ISO C++ does not.
__extension__ typedef __int128 Int128;

}  // namespace hips::plan
