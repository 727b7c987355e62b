#pragma once

#include <pybind11/pybind11.h>

namespace hips::torch_backend {

/// Calls `function` while this thread does not hold Python's lock (the GIL).
template <typename Function>
void without_python_lock(const Function& function) {
  if (Py_IsInitialized() == 0 || PyGILState_Check() == 0) return function();
  const pybind11::gil_scoped_release released;
  function();
}

}  // namespace hips::torch_backend
