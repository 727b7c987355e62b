#include "python/hips/src/comm/model.hpp"

#include <vector>

#include "python/hips/src/comm/error.hpp"
#include "python/hips/src/comm/without_lock.hpp"

namespace py = pybind11;

namespace hips::python {

SharedValues::SharedValues(const Comm& comm, const py::object& first, std::uint32_t num_shards, std::uint64_t delay_max,
                           bool sends_at_once, double divergence_max) {
  const Array values = Array::of(first, "Model: first", false);
  if (!values.can_be_reduced()) throw py::type_error("hips: Model: elements of " + values.type_name() + " cannot be added");
  if (values.is_bool()) throw py::type_error("hips: Model: elements are bool, which updates are not added to; expected numbers");
  hips_ps_model_config_t config = HIPS_PS_MODEL_CONFIG_INIT;
  config.count = values.count();
  config.type = values.type();
  config.first = values.data();
  config.num_shards = num_shards;
  config.delay_max = delay_max;
  config.sends_at_once = sends_at_once ? 1 : 0;
  config.divergence_max = divergence_max;
  type_ = values.type();
  type_name_ = values.type_name();
  count_ = values.count();
  hips_comm_t const handle = comm.handle();
  throw_if_failed(without_lock([&] { return hips_ps_model_create(handle, &config, &model_); }));
}

std::unique_ptr<SharedValues> SharedValues::recover(const Comm& comm) {
  std::unique_ptr<SharedValues> made(new SharedValues);
  hips_comm_t const ranks = comm.handle();
  hips_ps_model_t const failed = handle();
  throw_if_failed(without_lock([&] { return hips_ps_model_recover(ranks, failed, &made->model_); }));
  made->type_ = type_;
  made->type_name_ = type_name_;
  made->count_ = count_;
  return made;
}

hips_status_t SharedValues::end() {
  hips_ps_model_t const model = std::exchange(model_, nullptr);
  return without_lock([&] { return hips_ps_model_destroy(model); });
}

void SharedValues::close() {
  throw_if_failed(end());
}

void SharedValues::abort() {
  hips_ps_model_t const model = std::exchange(model_, nullptr);
  (void)without_lock([&] { return hips_ps_model_abort(model, "an exception ended the use of its model"); });
}

hips_ps_model_t SharedValues::handle() const {
  if (model_ == nullptr) throw py::value_error("hips: the model is closed");
  return model_;
}

std::uint32_t SharedValues::num_shards() const {
  std::uint32_t num = 0;
  throw_if_failed(hips_ps_model_num_shards(handle(), &num));
  return num;
}

std::pair<std::uint64_t, std::uint64_t> SharedValues::shard(std::uint32_t number) const {
  std::uint64_t begin = 0, length = 0;
  throw_if_failed(hips_ps_model_shard(handle(), number, &begin, &length));
  return {begin, length};
}

SharedValues::Given SharedValues::checked(const py::object& update, const py::object& applied, const py::object& values) const {
  Given given;
  const auto check = [&](const Array& array, const char* what) {
    if (array.type() != type_)
      throw py::type_error(std::string("hips: Model: ") + what + " has type " + array.type_name() + "; the model has " + type_name_);
    if (array.count() != count_)
      throw py::value_error(std::string("hips: Model: ") + what + " has " + std::to_string(array.count()) + " elements; expected " +
                            std::to_string(count_));
  };
  if (!update.is_none()) {
    given.update = Array::of(update, "Model: update", false);
    check(given.update, "update");
    given.applied = Array::of(applied, "Model: applied", true);
    if (given.applied.bytes() != num_shards())
      throw py::value_error("hips: Model: applied has " + std::to_string(given.applied.bytes()) + " bytes; expected " +
                            std::to_string(num_shards()));
  }
  if (!values.is_none()) {
    given.values = Array::of(values, "Model: out", true);
    check(given.values, "out");
  }
  return given;
}

void SharedValues::run(const py::object& update, const py::object& applied, const py::object& values) {
  const Given given = checked(update, applied, values);
  hips_ps_model_t const model = handle();
  const bool pushes = !update.is_none(), fetches = !values.is_none();
  auto* const flags = static_cast<unsigned char*>(given.applied.data());
  throw_if_failed(without_lock([&] {
    if (!pushes) return hips_ps_model_fetch(model, given.values.data());
    if (!fetches) return hips_ps_model_push(model, given.update.data(), flags);
    return hips_ps_model_push_fetch(model, given.update.data(), flags, given.values.data());
  }));
}

std::unique_ptr<Request> SharedValues::start(const py::object& update, const py::object& applied, const py::object& values) {
  Given given = checked(update, applied, values);
  hips_ps_model_t const model = handle();
  const bool pushes = !update.is_none(), fetches = !values.is_none();
  auto* const flags = static_cast<unsigned char*>(given.applied.data());
  hips_request_t request = HIPS_REQUEST_NULL;
  throw_if_failed(without_lock([&] {
    if (!pushes) return hips_ps_model_ifetch(model, given.values.data(), &request);
    if (!fetches) return hips_ps_model_ipush(model, given.update.data(), flags, &request);
    return hips_ps_model_ipush_fetch(model, given.update.data(), flags, given.values.data(), &request);
  }));
  std::vector<Array> arrays{std::move(given.update), std::move(given.applied), std::move(given.values)};
  return std::make_unique<Request>(request, std::move(arrays), py::none(), false);
}

}  // namespace hips::python
