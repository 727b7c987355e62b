#pragma once

#include <pybind11/pybind11.h>

#include <hips/hips.h>

namespace hips::python {

/// Runs a call of the C API while other threads of Python run.
template <typename Call>
hips_status_t without_lock(const Call& call) {
  const pybind11::gil_scoped_release released;
  return call();
}

}  // namespace hips::python
