#pragma once

#include <pybind11/pybind11.h>

#include <hips/hips.h>

namespace hips::python {

/// Throws what hips.errors.make_error() makes of the calling thread's last failed call. Python's lock is held.
[[noreturn]] inline void throw_last_error() {
  hips_error_info_t info = HIPS_ERROR_INFO_INIT;
  (void)hips_last_error_info(&info);
  const auto errors = pybind11::module_::import("hips.errors");
  const pybind11::object error =
      errors.attr("make_error")(hips_status_string(info.code), info.text, info.rank, static_cast<int>(info.scope),
                                info.sys_errno, info.rail);
  PyErr_SetObject(pybind11::type::handle_of(error).ptr(), error.ptr());
  throw pybind11::error_already_set();
}

inline void throw_if_failed(hips_status_t status) {
  if (status != HIPS_OK) throw_last_error();
}

}  // namespace hips::python
