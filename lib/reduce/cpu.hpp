#pragma once

namespace hips::reduce {

/// May this machine run kernels_avx2(), kernels_avx512()? False where there are none.
///
/// Threads  any thread.
bool runs_avx2();
bool runs_avx512();

}  // namespace hips::reduce
