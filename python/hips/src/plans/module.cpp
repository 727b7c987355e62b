// The Python module hips._plans: topologies, plans, proofs and costs. python/hips/plans.py is what users see.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "lib/plan/builder.hpp"
#include "python/hips/src/plans/bindings.hpp"

namespace py = pybind11;

namespace {

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const hips::Error& error) {
    const hips::Status& status = error.status();
    const py::object made = py::module_::import("hips.errors")
                                .attr("make_error")(hips::to_string(status.code), status.message, status.rank,
                                                    static_cast<int>(status.scope), status.sys_errno, status.rail);
    PyErr_SetObject(py::type::handle_of(made).ptr(), made.ptr());
  }
}

}  // namespace

PYBIND11_MODULE(_plans, module) {
  py::register_local_exception_translator(translate);
  hips::python::bind_topology(module);
  hips::python::bind_plan(module);
  hips::python::bind_compare(module);
  module.def("algorithms", [] {
    py::dict known;
    for (const hips::plan::Algorithm& algorithm : hips::plan::algorithms())
      known[py::str(algorithm.name.data(), algorithm.name.size())] =
          py::make_tuple(std::string(algorithm.description), std::string(algorithm.cost));
    return known;
  });
}
