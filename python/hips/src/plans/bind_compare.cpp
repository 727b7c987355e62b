#include <pybind11/stl.h>

#include "python/hips/src/plans/bindings.hpp"
#include "tools/hips/compare/report.hpp"

namespace py = pybind11;

namespace hips::python {

void bind_compare(py::module_& module) {
  using compare::Comparison;
  using compare::PlanCost;
  py::class_<compare::SizeCost>(module, "SizeCost")
      .def_readonly("bytes", &compare::SizeCost::bytes)
      .def_readonly("seconds", &compare::SizeCost::seconds)
      .def_readonly("latency_seconds", &compare::SizeCost::latency_seconds)
      .def_readonly("bandwidth_seconds", &compare::SizeCost::bandwidth_seconds)
      .def_readonly("of_bound", &compare::SizeCost::of_bound);
  py::class_<PlanCost>(module, "PlanCost")
      .def_property_readonly("name", [](const PlanCost& self) { return self.entry.name; })
      .def_property_readonly("is_baseline", [](const PlanCost& self) { return self.entry.baseline; })
      .def_readonly("description", &PlanCost::description)
      .def_readonly("reason", &PlanCost::reason)
      .def_readonly("num_steps", &PlanCost::num_steps)
      .def_readonly("num_hops", &PlanCost::num_hops)
      .def_readonly("num_messages", &PlanCost::num_messages)
      .def_readonly("fan_in", &PlanCost::fan_in)
      .def_readonly("relays", &PlanCost::relays)
      .def_readonly("sizes", &PlanCost::sizes);
  py::class_<Comparison>(module, "Comparison")
      .def_property_readonly("topology", [](const Comparison& self) { return self.topology.spec; })
      .def_readonly("plans", &Comparison::plans)
      .def_readonly("sizes", &Comparison::sizes)
      .def_readonly("best", &Comparison::best)
      .def("text", [](const Comparison& self) { return compare::report_text(self); });
  module.def("compare", compare_plans, py::call_guard<py::gil_scoped_release>());
  module.def("duration_text", compare::duration_text);
}

}  // namespace hips::python
