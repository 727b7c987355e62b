#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <hips/ps_model.h>

#include "python/hips/src/comm/array.hpp"
#include "python/hips/src/comm/communicator.hpp"
#include "python/hips/src/comm/request.hpp"

namespace hips::python {

/// A model of the C API. Types and sizes of arrays are compared here, as C cannot know them.
class SharedValues {
 public:
  /// `first`: an array like the model, with the values that it begins with.
  SharedValues(const Comm& comm, const pybind11::object& first, std::uint32_t num_shards, std::uint64_t delay_max, bool sends_at_once,
               double divergence_max);
  /// What is left of this model, on the ranks of `comm`.
  std::unique_ptr<SharedValues> recover(const Comm& comm);
  SharedValues(const SharedValues&) = delete;
  SharedValues& operator=(const SharedValues&) = delete;
  ~SharedValues() { (void)end(); }

  /// Waits for all ranks.
  void close();
  /// For a rank that gives up: aborts the communicator.
  void abort();
  [[nodiscard]] std::uint32_t num_shards() const;
  /// First element, and how many.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> shard(std::uint32_t number) const;
  /// Pushes `update` and fetches into `values`; None: does not. `applied`: a byte for each shard, with an update.
  void run(const pybind11::object& update, const pybind11::object& applied, const pybind11::object& values);
  std::unique_ptr<Request> start(const pybind11::object& update, const pybind11::object& applied, const pybind11::object& values);

 private:
  SharedValues() = default;
  struct Given {
    Array update, applied, values;
  };
  [[nodiscard]] Given checked(const pybind11::object& update, const pybind11::object& applied, const pybind11::object& values) const;
  [[nodiscard]] hips_ps_model_t handle() const;
  hips_status_t end();

  hips_ps_model_t model_ = nullptr;
  hips_type_t type_ = HIPS_FLOAT32;
  std::string type_name_;
  std::uint64_t count_ = 0;
};

}  // namespace hips::python
