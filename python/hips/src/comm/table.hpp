#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <hips/ps.h>

#include "python/hips/src/comm/array.hpp"
#include "python/hips/src/comm/communicator.hpp"
#include "python/hips/src/comm/request.hpp"

namespace hips::python {

enum class Access { kPull, kPush, kSet, kLocalize, kIntent };

/// A table of the C API. Types and sizes of arrays are compared here, as C cannot know them.
class RowsByKey {
 public:
  /// `row`: an array like one row, whose elements are the first values.
  RowsByKey(const Comm& comm, std::uint64_t num_keys, const pybind11::object& row, hips_op_t update, std::uint64_t rows_per_node, std::uint64_t staleness, std::uint64_t replicas_per_node);
  /// What is left of this table, on the ranks of `comm`; and the keys whose rows are lost, at most.
  std::pair<std::unique_ptr<RowsByKey>, std::uint64_t> recover(const Comm& comm);
  RowsByKey(const RowsByKey&) = delete;
  RowsByKey& operator=(const RowsByKey&) = delete;
  ~RowsByKey() { (void)end(); }

  /// Waits for all ranks.
  void close();
  void advance_clock();
  void intent(const pybind11::object& keys, std::uint64_t start, std::uint64_t end);
  /// For a rank that gives up: aborts the communicator.
  void abort();
  /// `rows`: None for kLocalize.
  void run(Access access, const pybind11::object& keys, const pybind11::object& rows);
  /// Null where the call has ended already.
  std::unique_ptr<Request> start(Access access, const pybind11::object& keys, const pybind11::object& rows);
  /// `here`: a byte for each key.
  void pull_if_local(const pybind11::object& keys, const pybind11::object& rows, const pybind11::object& here);

 private:
  RowsByKey() = default;
  struct Given {
    Array keys, rows;
  };
  [[nodiscard]] Given checked(const char* call, Access access, const pybind11::object& keys, const pybind11::object& rows) const;
  [[nodiscard]] hips_ps_table_t handle() const;
  hips_status_t end();

  hips_ps_table_t table_ = nullptr;
  hips_type_t type_ = HIPS_FLOAT32;
  std::string type_name_;
  std::uint64_t row_length_ = 0;
};

}  // namespace hips::python
