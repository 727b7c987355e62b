#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <optional>
#include <vector>

#include <hips/hips.h>

#include "python/hips/src/comm/array.hpp"

namespace hips::python {

/// A call that has been started, or that can be, with the memory that it uses and the object that is its result.
class Request {
 public:
  Request(hips_request_t request, std::vector<Array> arrays, pybind11::object result, bool is_persistent)
      : request_(request), arrays_(std::move(arrays)), result_(std::move(result)), is_persistent_(is_persistent) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  /// Ends the call as abandon() does.
  ~Request();

  void start();
  /// Whether the call has ended.
  bool test();
  /// Waits, without Python's lock, and gives the result.
  pybind11::object wait();
  /// Ends the call of a rank that may never make those that others wait for (hips_request_abandon()).
  void abandon();
  [[nodiscard]] pybind11::object result() const { return result_; }

  static void wait_all(const std::vector<Request*>& requests);
  static std::optional<std::size_t> wait_any(const std::vector<Request*>& requests);

 private:
  /// The memory belongs to its owner again once a call has ended that cannot be started another time.
  void note_end();

  hips_request_t request_;
  std::vector<Array> arrays_;
  pybind11::object result_;
  bool is_persistent_;
};

}  // namespace hips::python
