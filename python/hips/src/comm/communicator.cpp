#include "python/hips/src/comm/communicator.hpp"

#include <array>
#include <cstring>
#include <utility>

#include "python/hips/src/comm/error.hpp"

namespace py = pybind11;

namespace hips::python {
namespace {

/// Sums of bool are or, products and minima are and.
hips_op_t op_of_bool(const std::string& what, hips_op_t op) {
  switch (op) {
    case HIPS_SUM:
    case HIPS_MAX:
    case HIPS_BOR:
    case HIPS_LOR:
      return HIPS_LOR;
    case HIPS_PROD:
    case HIPS_MIN:
    case HIPS_BAND:
    case HIPS_LAND:
      return HIPS_LAND;
    case HIPS_BXOR:
    case HIPS_LXOR:
      return HIPS_LXOR;
    default:
      throw py::value_error("hips: " + what + ": bool has no average; expected another op or type");
  }
}

}  // namespace

hips_op_t checked_op(const std::string& what, const Array& array, hips_op_t op) {
  if (!array.can_be_reduced())
    throw py::type_error("hips: " + what + ": elements of " + array.type_name() +
                         " cannot be reduced; expected integers, bool, float16, bfloat16, float32 or float64");
  return array.is_bool() ? op_of_bool(what, op) : op;
}

namespace {

constexpr std::array<const char*, 9> kNames = {"allreduce", "reduce", "bcast", "allgather", "reduce_scatter", "gather", "scatter", "alltoall", "barrier"};

const char* name_of(Kind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

bool has_root(Kind kind) {
  return kind == Kind::kReduce || kind == Kind::kBcast || kind == Kind::kGather || kind == Kind::kScatter;
}

/// How many elements of input and output there are for each of `count`, the number that the C API takes.
struct Sections {
  std::uint64_t in = 1, out = 1;
};
Sections sections_of(Kind kind, std::uint64_t size) {
  switch (kind) {
    case Kind::kAllgather:
    case Kind::kGather:
      return {1, size};
    case Kind::kReduceScatter:
    case Kind::kScatter:
      return {size, 1};
    case Kind::kAlltoall:
      return {size, size};
    default:
      return {1, 1};
  }
}

struct Allgather {
  py::object function;
  std::size_t size = 1;
  std::optional<py::error_already_set> error;
};

/// The function of Python as a callback of C. What it throws is kept for the caller.
int call_allgather(void* context, const void* send, void* receive, std::size_t bytes) {
  auto& allgather = *static_cast<Allgather*>(context);
  const py::gil_scoped_acquire locked;
  try {
    const py::object parts = allgather.function(py::bytes(static_cast<const char*>(send), bytes));
    if (py::len(parts) != allgather.size)
      throw py::value_error("hips: allgather gave " + std::to_string(py::len(parts)) + " objects; expected " +
                            std::to_string(allgather.size) + ", one for each rank");
    auto* to = static_cast<char*>(receive);
    for (const py::handle part : parts) {
      const auto text = py::reinterpret_borrow<py::object>(part).cast<std::string>();
      if (text.size() != bytes)
        throw py::value_error("hips: allgather gave an object of " + std::to_string(text.size()) + " bytes; expected " + std::to_string(bytes));
      std::memcpy(to, text.data(), bytes);
      to += bytes;
    }
    return 0;
  } catch (py::error_already_set& error) {
    allgather.error = error;
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
    allgather.error.emplace();
  }
  return 1;
}

}  // namespace

/// A call with what the C API takes.
struct Comm::Call {
  Kind kind = Kind::kBarrier;
  Array in, out;
  std::uint64_t count = 0;
  hips_type_t type = HIPS_UINT8;
  hips_op_t op = HIPS_SUM;
  int root = 0;
  py::object result;

  /// `now` etc. differ in their last arguments only.
  enum class Form { kNow, kStart, kInit };
  hips_status_t issue(Form form, hips_comm_t comm, hips_request_t* request) const;
};

hips_status_t Comm::Call::issue(Form form, hips_comm_t comm, hips_request_t* request) const {
  const auto one_of = [&](auto now, auto start, auto init, auto... arguments) {
    if (form == Form::kNow) return now(arguments..., comm);
    return (form == Form::kStart ? start : init)(arguments..., comm, request);
  };
  const void* const from = in.data();
  void* const to = out.data();
  switch (kind) {
    case Kind::kAllreduce:
      return one_of(hips_allreduce, hips_iallreduce, hips_allreduce_init, from, to, count, type, op);
    case Kind::kReduce:
      return one_of(hips_reduce, hips_ireduce, hips_reduce_init, from, to, count, type, op, root);
    case Kind::kBcast:
      return one_of(hips_bcast, hips_ibcast, hips_bcast_init, to, count, type, root);
    case Kind::kAllgather:
      return one_of(hips_allgather, hips_iallgather, hips_allgather_init, from, to, count, type);
    case Kind::kReduceScatter:
      return one_of(hips_reduce_scatter_block, hips_ireduce_scatter_block, hips_reduce_scatter_block_init, from, to, count, type, op);
    case Kind::kGather:
      return one_of(hips_gather, hips_igather, hips_gather_init, from, to, count, type, root);
    case Kind::kScatter:
      return one_of(hips_scatter, hips_iscatter, hips_scatter_init, from, to, count, type, root);
    case Kind::kAlltoall:
      return one_of(hips_alltoall, hips_ialltoall, hips_alltoall_init, from, to, count, type);
    case Kind::kBarrier:
      return one_of(hips_barrier, hips_ibarrier, hips_barrier_init);
  }
  return HIPS_ERR_INTERNAL;
}

Comm::Comm(const Settings& settings) {
  hips_comm_config_t config = HIPS_COMM_CONFIG_INIT;
  const auto text = [](const std::string& value) { return value.empty() ? nullptr : value.c_str(); };
  config.topology = text(settings.topology);
  config.algorithm = text(settings.algorithm);
  config.pattern = text(settings.pattern);
  config.name = text(settings.name);
  config.timeout_ms = settings.timeout_ms;
  Allgather allgather{settings.allgather, static_cast<std::size_t>(settings.size), std::nullopt};
  hips_bootstrap_t bootstrap{};
  bootstrap.struct_size = sizeof bootstrap;
  bootstrap.rank = settings.rank;
  bootstrap.size = settings.size;
  bootstrap.allgather = call_allgather;
  bootstrap.context = &allgather;
  const bool from_environment = settings.allgather.is_none();
  hips_status_t status = HIPS_OK;
  {
    const py::gil_scoped_release released;
    status = hips_comm_create(&config, from_environment ? nullptr : &bootstrap, &comm_);
  }
  if (allgather.error) throw py::error_already_set(*allgather.error);
  throw_if_failed(status);
  throw_if_failed(hips_comm_rank(comm_, &rank_));
  throw_if_failed(hips_comm_size(comm_, &size_));
}

Comm::Comm(hips_comm_t comm) : comm_(comm) {
  throw_if_failed(hips_comm_rank(comm_, &rank_));
  throw_if_failed(hips_comm_size(comm_, &size_));
}

void Comm::close() {
  if (comm_ == nullptr) return;
  const py::gil_scoped_release released;
  (void)hips_comm_destroy(std::exchange(comm_, nullptr));
}

hips_comm_t Comm::handle() const {
  if (comm_ == nullptr) throw py::value_error("hips: the communicator is closed");
  return comm_;
}

std::string Comm::describe() const {
  return hips_comm_describe(handle());
}

std::unique_ptr<Comm> Comm::make(const std::function<hips_status_t(hips_comm_t, hips_comm_t*)>& call) {
  hips_comm_t made = nullptr;
  hips_comm_t const comm = handle();
  hips_status_t status = HIPS_OK;
  {
    const py::gil_scoped_release released;
    status = call(comm, &made);
  }
  throw_if_failed(status);
  return made == nullptr ? nullptr : std::unique_ptr<Comm>(new Comm(made));
}

std::unique_ptr<Comm> Comm::split(int color, int key) {
  return make([&](hips_comm_t comm, hips_comm_t* made) { return hips_comm_split(comm, color, key, made); });
}

std::unique_ptr<Comm> Comm::duplicate() {
  return make(hips_comm_dup);
}

std::unique_ptr<Comm> Comm::shrink() {
  return make(hips_comm_shrink);
}

void Comm::abort(const std::string& text) {
  hips_comm_t const comm = handle();
  hips_status_t status = HIPS_OK;
  {
    const py::gil_scoped_release released;
    status = hips_comm_abort(comm, text.c_str());
  }
  throw_if_failed(status);
}

Comm::Call Comm::prepared(Kind kind, const CallOptions& options) const {
  const std::string what = name_of(kind);
  Call call;
  call.kind = kind;
  call.op = options.op;
  call.root = options.root;
  call.result = options.out;
  if (kind == Kind::kBarrier) return call;
  const bool is_root = rank_ == options.root;
  const bool has_in = kind != Kind::kBcast && (kind != Kind::kScatter || is_root);
  const bool has_out = !(kind == Kind::kReduce || kind == Kind::kGather) || is_root;
  if (has_root(kind) && (options.root < 0 || options.root >= size_))
    throw py::value_error("hips: " + what + ": root is " + std::to_string(options.root) + "; expected 0 to " + std::to_string(size_ - 1));
  if (has_out) call.out = Array::of(options.out, what + (kind == Kind::kBcast ? ": the array" : ": out"), true);
  if (has_in) call.in = has_out && options.in.is(options.out) ? call.out : Array::of(options.in, what + ": the input", false);
  const Array& model = has_in ? call.in : call.out;
  const Sections sections = sections_of(kind, static_cast<std::uint64_t>(size_));
  const std::uint64_t per_count = has_in ? sections.in : sections.out;
  if (model.count() % per_count != 0)
    throw py::value_error("hips: " + what + ": the input has " + std::to_string(model.count()) + " elements; expected a multiple of " +
                          std::to_string(per_count) + ", the ranks");
  call.count = model.count() / per_count;
  call.type = model.type();
  if (has_in && has_out) {
    if (call.in.type_name() != call.out.type_name())
      throw py::type_error("hips: " + what + ": out has elements of " + call.out.type_name() + "; expected " + call.in.type_name() +
                           ", as the input has");
    if (call.out.count() != call.count * sections.out)
      throw py::value_error("hips: " + what + ": out has " + std::to_string(call.out.count()) + " elements; expected " +
                            std::to_string(call.count * sections.out));
  }
  if (kind == Kind::kAllreduce || kind == Kind::kReduce || kind == Kind::kReduceScatter) call.op = checked_op(what, model, options.op);
  return call;
}

void Comm::run(Kind kind, const CallOptions& options) {
  const Call call = prepared(kind, options);
  hips_comm_t const comm = handle();
  hips_status_t status = HIPS_OK;
  {
    const py::gil_scoped_release released;
    status = call.issue(Call::Form::kNow, comm, nullptr);
  }
  throw_if_failed(status);
}

std::unique_ptr<Request> Comm::start(Kind kind, const CallOptions& options) {
  Call call = prepared(kind, options);
  hips_comm_t const comm = handle();
  hips_request_t request = nullptr;
  hips_status_t status = HIPS_OK;
  {
    const py::gil_scoped_release released;
    status = call.issue(Call::Form::kStart, comm, &request);
  }
  throw_if_failed(status);
  return std::make_unique<Request>(request, std::vector<Array>{std::move(call.in), std::move(call.out)}, std::move(call.result), false);
}

std::unique_ptr<Request> Comm::prepare(Kind kind, const CallOptions& options) {
  Call call = prepared(kind, options);
  hips_request_t request = nullptr;
  throw_if_failed(call.issue(Call::Form::kInit, handle(), &request));
  return std::make_unique<Request>(request, std::vector<Array>{std::move(call.in), std::move(call.out)}, std::move(call.result), true);
}

namespace {

/// A list of arrays as the C API takes it.
struct CoalescedList {
  std::vector<Array> arrays;
  std::vector<hips_buffer_t> buffers;
  hips_op_t op = HIPS_SUM;
};

CoalescedList list_of(const std::vector<py::object>& objects, hips_op_t op, const std::vector<std::int32_t>& priorities) {
  constexpr const char* kWhat = "allreduce_coalesced";
  if (!priorities.empty() && priorities.size() != objects.size())
    throw py::value_error("hips: " + std::string(kWhat) + ": " + std::to_string(priorities.size()) + " priorities; expected none or " +
                          std::to_string(objects.size()) + ", one for each array");
  CoalescedList list;
  bool has_bool = false, has_others = false;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const std::string what = std::string(kWhat) + ": array " + std::to_string(i);
    Array array = Array::of(objects[i], what, true);
    list.op = checked_op(what, array, op);
    (array.is_bool() ? has_bool : has_others) = true;
    list.buffers.push_back({HIPS_IN_PLACE, array.data(), array.count(), array.type(), priorities.empty() ? 0 : priorities[i]});
    list.arrays.push_back(std::move(array));
  }
  if (has_bool && has_others)
    throw py::type_error("hips: " + std::string(kWhat) + ": bool beside other types; expected a list of its own for bool");
  return list;
}

}  // namespace

void Comm::allreduce_coalesced(const std::vector<py::object>& arrays, hips_op_t op, const std::vector<std::int32_t>& priorities) {
  const CoalescedList list = list_of(arrays, op, priorities);
  hips_comm_t const comm = handle();
  hips_status_t status = HIPS_OK;
  {
    const py::gil_scoped_release released;
    status = hips_allreduce_coalesced(list.buffers.data(), list.buffers.size(), list.op, comm);
  }
  throw_if_failed(status);
}

std::unique_ptr<Request> Comm::start_allreduce_coalesced(const std::vector<py::object>& arrays, hips_op_t op,
                                                         const std::vector<std::int32_t>& priorities) {
  CoalescedList list = list_of(arrays, op, priorities);
  hips_request_t request = nullptr;
  throw_if_failed(hips_iallreduce_coalesced(list.buffers.data(), list.buffers.size(), list.op, handle(), &request));
  return std::make_unique<Request>(request, std::move(list.arrays), py::cast(arrays), false);
}

}  // namespace hips::python
