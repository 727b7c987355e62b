// The Python module hips_torch._backend: makes process groups, and turns errors of HiPS into Python's.

#include <pybind11/chrono.h>
#include <torch/extension.h>

#include <chrono>
#include <string>

#include "python/hips_torch/error.hpp"
#include "python/hips_torch/process_group.hpp"

namespace hips::torch_backend {
namespace {

c10::intrusive_ptr<ProcessGroupBase> create(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            const std::chrono::milliseconds& timeout, int job_rank, int job_size) {
  return c10::make_intrusive<ProcessGroupHips>(store, rank, size, timeout, Job{job_rank, job_size});
}

std::string describe(const c10::intrusive_ptr<ProcessGroupBase>& group) {
  const auto* const ours = dynamic_cast<const ProcessGroupHips*>(group.get());
  TORCH_CHECK_TYPE(ours != nullptr, "hips: describe: the process group is of backend ", group->getBackendName(),
                   "; expected one of backend hips");
  return ours->describe();
}

PyObject* g_error_type = nullptr;

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const HipsError& error) {
    const py::object raised = py::reinterpret_borrow<py::object>(g_error_type)(error.what());
    raised.attr("code") = error.code();
    raised.attr("rank") = error.rank();
    PyErr_SetObject(g_error_type, raised.ptr());
  }
}

}  // namespace
}  // namespace hips::torch_backend

PYBIND11_MODULE(_backend, module) {
  using namespace hips::torch_backend;  // NOLINT: only here
  g_error_type = PyErr_NewExceptionWithDoc(
      "hips_torch.HipsError",
      "An error of HiPS, after which the process group has failed. code: \"peer lost\", \"timed out\", ...; rank: the rank at fault in "
      "the process group, or -1.",
      PyExc_RuntimeError, nullptr);
  module.attr("HipsError") = py::reinterpret_borrow<py::object>(g_error_type);
  py::register_exception_translator(translate);
  module.def("create", create, py::call_guard<py::gil_scoped_release>());
  module.def("describe", describe);
  module.def("version", hips_version);
  module.def("end_all", ProcessGroupHips::end_all, py::call_guard<py::gil_scoped_release>());
}
