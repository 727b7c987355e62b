#pragma once

#include <pybind11/pybind11.h>

#include "python/hips/src/plans/objects.hpp"

namespace hips::python {

/// The classes of the module, by subject.
void bind_topology(pybind11::module_& module);
void bind_plan(pybind11::module_& module);
void bind_compare(pybind11::module_& module);

}  // namespace hips::python
