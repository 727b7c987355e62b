#include <hips/ps_model.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "lib/comm/capi/capi.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/ps/call_request.hpp"
#include "lib/ps/model/model_recovery.hpp"
#include "lib/ps/model/shared_model.hpp"

using hips::Code;
using hips::Result;
using hips::Status;
using hips::comm::capi::guarded;
using hips::comm::capi::null_argument;
using hips::comm::capi::SharedHold;
using hips::ps::ModelCall;
using hips::ps::SharedModel;

struct hips_ps_model {
  SharedHold comm;  ///< outlives the model
  std::shared_ptr<SharedModel> model;
};

namespace {

Result<hips_ps_model_config_t> known_members(const hips_ps_model_config_t& config) {
  hips_ps_model_config_t known = HIPS_PS_MODEL_CONFIG_INIT;
  // The members of the first version; later ones are read where the caller knows of them.
  constexpr std::size_t kLeastBytes = offsetof(hips_ps_model_config_t, divergence_max);
  if (config.struct_size < kLeastBytes)
    return hips::fail(
        Code::kInvalidArgument,
        fmt::format("hips_ps_model_create: config.struct_size is {}; begin with HIPS_PS_MODEL_CONFIG_INIT, "
                    "which sets it to {}",
                    config.struct_size, sizeof(hips_ps_model_config_t)));
  std::memcpy(&known, &config, std::min(config.struct_size, sizeof known));
  return known;
}

struct Transfer {
  const char* name;
  bool pushes, fetches;
  const void* update;
  unsigned char* applied;
  void* values;
};

Status start(const Transfer& transfer, SharedModel& model, std::unique_ptr<ModelCall>& call) {
  if (hips::comm::in_forked_child()) return hips::comm::check_not_forked();
  if (transfer.pushes && transfer.update == nullptr) return null_argument(transfer.name, "update");
  if (transfer.fetches && transfer.values == nullptr) return null_argument(transfer.name, "values");
  return model.start(call, static_cast<const std::byte*>(transfer.update), transfer.applied,
                     static_cast<std::byte*>(transfer.values));
}

hips_status_t run(const Transfer& transfer, hips_ps_model_t handle) {
  return guarded([&]() -> Status {
    if (handle == nullptr) return null_argument(transfer.name, "model");
    // Another thread may abort the model, which frees the handle.
    const SharedHold comm(*handle->comm);
    const std::shared_ptr<SharedModel> model = handle->model;
    std::unique_ptr<ModelCall> call;
    if (Status status = start(transfer, *model, call); !status.ok()) return status;
    return model->wait(std::move(call));
  });
}

hips_status_t start(const Transfer& transfer, hips_ps_model_t handle, hips_request_t* request) {
  return guarded([&]() -> Status {
    if (request == nullptr) return null_argument(transfer.name, "request");
    if (handle == nullptr) return null_argument(transfer.name, "model");
    const SharedHold comm(*handle->comm);
    const std::shared_ptr<SharedModel> model = handle->model;
    return hips::ps::start_request<ModelCall>(model, *comm, request, [&](std::unique_ptr<ModelCall>& call) {
      return start(transfer, *model, call);
    });
  });
}

}  // namespace

extern "C" {

hips_status_t hips_ps_model_create(hips_comm_t comm, const hips_ps_model_config_t* config,
                                   hips_ps_model_t* model) {
  return guarded([&]() -> Status {
    constexpr const char* kName = "hips_ps_model_create";
    if (Status status = hips::comm::check_not_forked(); !status.ok()) return status;
    if (comm == nullptr) return null_argument(kName, "comm");
    if (config == nullptr) return null_argument(kName, "config");
    if (model == nullptr) return null_argument(kName, "model");
    const auto known = known_members(*config);
    if (!known) return known.error();
    hips::ps::SharedModelOptions options{.count = known->count,
                                         .type = static_cast<hips::DataType>(known->type),
                                         .first = static_cast<const std::byte*>(known->first),
                                         .num_shards = known->num_shards,
                                         .delay_max = known->delay_max,
                                         .schedules = known->sends_at_once == 0,
                                         .divergence_max = known->divergence_max};
    auto handle = std::make_unique<hips_ps_model>();
    handle->comm = SharedHold(*comm->shared);
    auto made = SharedModel::create(*comm->shared->communicator, options);
    if (!made) return made.error();
    handle->model = std::move(*made);
    *model = handle.release();
    return Status::success();
  });
}

hips_status_t hips_ps_model_recover(hips_comm_t comm, hips_ps_model_t failed, hips_ps_model_t* model) {
  return guarded([&]() -> Status {
    constexpr const char* kName = "hips_ps_model_recover";
    if (Status status = hips::comm::check_not_forked(); !status.ok()) return status;
    if (comm == nullptr) return null_argument(kName, "comm");
    if (failed == nullptr) return null_argument(kName, "failed");
    if (model == nullptr) return null_argument(kName, "model");
    const SharedHold old_comm(*failed->comm);
    const std::shared_ptr<SharedModel> old = failed->model;
    auto handle = std::make_unique<hips_ps_model>();
    handle->comm = SharedHold(*comm->shared);
    auto made = hips::ps::recover_model(*comm->shared->communicator, *old);
    if (!made) return made.error();
    handle->model = std::move(*made);
    *model = handle.release();
    return Status::success();
  });
}

hips_status_t hips_ps_model_destroy(hips_ps_model_t model) {
  return guarded([&]() -> Status {
    if (model == nullptr) return Status::success();
    const std::unique_ptr<hips_ps_model> owned(model);
    if (Status status = hips::comm::check_not_forked(); !status.ok()) {
      // The threads and connections are the parent's.
      new std::shared_ptr<SharedModel>(std::move(owned->model));  // NOLINT
      return status;
    }
    return owned->model->leave();
  });
}

hips_status_t hips_ps_model_abort(hips_ps_model_t model, const char* text) {
  return guarded([&]() -> Status {
    if (model == nullptr) return Status::success();
    if (hips::comm::in_forked_child()) return hips::comm::check_not_forked();
    const std::unique_ptr<hips_ps_model> owned(model);
    return owned->comm->communicator->abort(text != nullptr ? text : "");
  });
}

hips_status_t hips_ps_model_num_shards(hips_ps_model_t model, uint32_t* num_shards) {
  return guarded([&]() -> Status {
    if (model == nullptr) return null_argument("hips_ps_model_num_shards", "model");
    if (num_shards == nullptr) return null_argument("hips_ps_model_num_shards", "num_shards");
    *num_shards = model->model->shards().num;
    return Status::success();
  });
}

hips_status_t hips_ps_model_shard(hips_ps_model_t model, uint32_t shard, uint64_t* begin, uint64_t* length) {
  return guarded([&]() -> Status {
    constexpr const char* kName = "hips_ps_model_shard";
    if (model == nullptr) return null_argument(kName, "model");
    if (begin == nullptr) return null_argument(kName, "begin");
    if (length == nullptr) return null_argument(kName, "length");
    const hips::ps::Shards& shards = model->model->shards();
    if (shard >= shards.num)
      return Status::error(Code::kInvalidArgument,
                           fmt::format("{}: shard {} is out of range [0, {})", kName, shard, shards.num));
    *begin = shards.begin(shard);
    *length = shards.length(shard);
    return Status::success();
  });
}

hips_status_t hips_ps_model_fetch(hips_ps_model_t model, void* values) {
  return run({"hips_ps_model_fetch", false, true, nullptr, nullptr, values}, model);
}

hips_status_t hips_ps_model_push(hips_ps_model_t model, const void* update, unsigned char* applied) {
  return run({"hips_ps_model_push", true, false, update, applied, nullptr}, model);
}

hips_status_t hips_ps_model_push_fetch(hips_ps_model_t model, const void* update, unsigned char* applied,
                                       void* values) {
  return run({"hips_ps_model_push_fetch", true, true, update, applied, values}, model);
}

hips_status_t hips_ps_model_ifetch(hips_ps_model_t model, void* values, hips_request_t* request) {
  return start({"hips_ps_model_ifetch", false, true, nullptr, nullptr, values}, model, request);
}

hips_status_t hips_ps_model_ipush(hips_ps_model_t model, const void* update, unsigned char* applied,
                                  hips_request_t* request) {
  return start({"hips_ps_model_ipush", true, false, update, applied, nullptr}, model, request);
}

hips_status_t hips_ps_model_ipush_fetch(hips_ps_model_t model, const void* update, unsigned char* applied,
                                        void* values, hips_request_t* request) {
  return start({"hips_ps_model_ipush_fetch", true, true, update, applied, values}, model, request);
}

}  // extern "C"
