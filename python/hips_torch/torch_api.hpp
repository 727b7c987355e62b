#pragma once

// What differs between versions of PyTorch. Compiled and tested with 1.13; 2.x has the same functions in a class of another
// name, which is not tested.

#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <torch/version.h>

#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif

namespace hips::torch_backend {

#if TORCH_VERSION_MAJOR >= 2
using ProcessGroupBase = c10d::Backend;
#else
using ProcessGroupBase = c10d::ProcessGroup;
#endif
using WorkPointer = c10::intrusive_ptr<c10d::Work>;

}  // namespace hips::torch_backend
