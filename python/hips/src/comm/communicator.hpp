#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <hips/hips.h>

#include "python/hips/src/comm/array.hpp"
#include "python/hips/src/comm/request.hpp"

namespace hips::python {

/// The collectives with one input and one output.
enum class Kind { kAllreduce, kReduce, kBcast, kAllgather, kReduceScatter, kGather, kScatter, kAlltoall, kBarrier };

/// The arguments of one call, as Python gives them; None where the collective has no such argument.
struct CallOptions {
  pybind11::object in, out;
  hips_op_t op = HIPS_SUM;
  int root = 0;
};

/// The operation on the array's elements: bool, which travels as uint8, has logical ones.
///
/// Errors   TypeError, ValueError: names `what`, the type and what would be right.
hips_op_t checked_op(const std::string& what, const Array& array, hips_op_t op);

/// How a communicator is made.
struct Settings {
  std::string topology, algorithm, pattern, name;
  std::int64_t timeout_ms = 0;
  int rank = -1, size = 0;     ///< of `allgather`
  pybind11::object allgather;  ///< None: from the environment; else bytes -> the list of all ranks' bytes
};

/// A communicator of the C API. Sizes and types of arrays are compared here, as C cannot know them.
class Comm {
 public:
  explicit Comm(const Settings& settings);
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;
  ~Comm() { close(); }

  void close();
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] std::string describe() const;
  /// Errors   ValueError: it is closed.
  [[nodiscard]] hips_comm_t handle() const;
  std::unique_ptr<Comm> split(int color, int key);  ///< null for HIPS_UNDEFINED
  std::unique_ptr<Comm> duplicate();
  std::unique_ptr<Comm> shrink();
  void abort(const std::string& text);

  /// The three forms of a collective: now, started, and to be started.
  void run(Kind kind, const CallOptions& options);
  std::unique_ptr<Request> start(Kind kind, const CallOptions& options);
  std::unique_ptr<Request> prepare(Kind kind, const CallOptions& options);

  /// In place, on each array of a list; no priorities, or one for each.
  void allreduce_coalesced(const std::vector<pybind11::object>& arrays, hips_op_t op, const std::vector<std::int32_t>& priorities);
  std::unique_ptr<Request> start_allreduce_coalesced(const std::vector<pybind11::object>& arrays, hips_op_t op,
                                                     const std::vector<std::int32_t>& priorities);

 private:
  struct Call;
  explicit Comm(hips_comm_t comm);
  /// What `call` makes of this one; null where it makes none.
  std::unique_ptr<Comm> make(const std::function<hips_status_t(hips_comm_t, hips_comm_t*)>& call);
  Call prepared(Kind kind, const CallOptions& options) const;

  hips_comm_t comm_ = nullptr;
  int rank_ = 0, size_ = 1;
};

}  // namespace hips::python
