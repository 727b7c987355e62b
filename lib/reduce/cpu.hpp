#pragma once

namespace hips::reduce {

/// Whether this CPU can run kernels_avx2() and kernels_avx512(). False on other architectures.
///
/// Threads  any thread.
bool runs_avx2();
bool runs_avx512();

}  // namespace hips::reduce
