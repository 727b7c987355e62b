#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <hips/hips.h>

#include "lib/comm/bootstrap.hpp"
#include "lib/comm/communicator.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/exec/memory_registry.hpp"

using hips::Code;
using hips::Result;
using hips::Status;
using hips::exec::MemoryRegistry;

namespace {

/// A communicator, and the last request that has ended, for the next: making one takes longer than a small
/// call.
struct Shared {
  explicit Shared(std::unique_ptr<hips::comm::Communicator> made) : communicator(std::move(made)) {}
  ~Shared();
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  std::unique_ptr<hips::comm::Communicator> communicator;
  std::atomic<hips_request*> spare{nullptr};
};

}  // namespace

struct hips_comm {
  std::shared_ptr<Shared> shared;
};

struct hips_request {
  std::shared_ptr<Shared> shared;  ///< outlives the call; null in a spare one
  std::unique_ptr<hips::comm::Request> call;
  bool persistent = false;
};

Shared::~Shared() {
  delete spare.load();
}

// The C values are the C++ values; a new one has to be added in both places.
static_assert(static_cast<int>(Code::kInternal) == HIPS_ERR_INTERNAL);
static_assert(static_cast<int>(Code::kPeerLost) == HIPS_ERR_PEER_LOST);
static_assert(static_cast<int>(hips::DataType::kFloat64) == HIPS_FLOAT64);
static_assert(static_cast<int>(hips::DataType::kInt8) == HIPS_INT8);
static_assert(static_cast<int>(hips::DataType::kUint64) == HIPS_UINT64);
static_assert(static_cast<int>(hips::DataType::kFloat16) == HIPS_FLOAT16);
static_assert(static_cast<int>(hips::DataType::kBfloat16) == HIPS_BFLOAT16);
static_assert(hips::kNumDataTypes == HIPS_BFLOAT16 + 1);
static_assert(static_cast<int>(hips::ReduceOp::kMax) == HIPS_MAX);
static_assert(static_cast<int>(hips::ReduceOp::kAvg) == HIPS_AVG);
static_assert(static_cast<int>(hips::ReduceOp::kBxor) == HIPS_BXOR);
static_assert(static_cast<int>(hips::ReduceOp::kLxor) == HIPS_LXOR);
static_assert(hips::kNumReduceOps == HIPS_LXOR + 1);

namespace {

std::string& last_error() {
  thread_local std::string message;
  return message;
}

hips_status_t finish(const Status& status) {
  if (status.ok()) return HIPS_OK;
  last_error() = status.message;
  return static_cast<hips_status_t>(status.code);
}

/// Runs a call; no exception leaves the C API.
template <typename Call>
hips_status_t guarded(Call&& call) {
  try {
    return finish(call());
  } catch (const hips::Error& error) {
    return finish(error.status());
  } catch (const std::bad_alloc&) {
    // Assigning the message could fail for the same reason; a short one fits into the string itself.
    last_error() = "out of memory";
    return HIPS_ERR_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    return finish(Status::error(Code::kInternal, error.what()));
  }
}

Status null_argument(const char* call, const char* name) {
  return Status::error(Code::kInvalidArgument, fmt::format("{}: {} is null", call, name));
}

std::optional<std::string> optional_text(const char* text) {
  if (text == nullptr) return std::nullopt;
  return text;
}

Result<hips::comm::CommunicatorOptions> options_from(const hips_comm_config_t* config) {
  hips::comm::CommunicatorOptions options;
  if (config == nullptr) return options;
  if (config->struct_size < sizeof(hips_comm_config_t))
    return hips::fail(
        Code::kInvalidArgument,
        fmt::format("hips_comm_create: config.struct_size is {}; begin with HIPS_COMM_CONFIG_INIT, "
                    "which sets it to {}",
                    config->struct_size, sizeof(hips_comm_config_t)));
  options.topology = optional_text(config->topology);
  options.algorithm = optional_text(config->algorithm);
  options.pattern = optional_text(config->pattern);
  if (config->name != nullptr) options.name = config->name;
  return options;
}

Result<std::unique_ptr<hips::comm::Bootstrap>> bootstrap_from(const hips_bootstrap_t* callbacks) {
  if (callbacks != nullptr) return hips::comm::make_callback_bootstrap(*callbacks);
  const hips::LoadedConfig loaded = hips::load_process_config();
  const auto rendezvous = hips::comm::rendezvous_from(loaded.config, hips::process_environment());
  // A wrong HIPS_RANK shows up as a missing one here; the first error is the better one.
  if (!rendezvous) return hips::fail(loaded.status.ok() ? rendezvous.error() : loaded.status);
  return hips::comm::make_tcp_bootstrap(*rendezvous);
}

/// A request that is not started; `request` is where it will go.
Result<std::unique_ptr<hips_request>> make_request(const char* call, const void* in, void* out,
                                                   std::uint64_t count, hips_type_t type, hips_op_t op,
                                                   hips_comm_t comm, const hips_request_t* request) {
  if (comm == nullptr || request == nullptr)
    return hips::fail(null_argument(call, comm == nullptr ? "comm" : "request"));
  const void* from = in == HIPS_IN_PLACE ? out : in;
  const auto data_type = static_cast<hips::DataType>(type);
  const auto reduce_op = static_cast<hips::ReduceOp>(op);
  Shared& shared = *comm->shared;
  std::unique_ptr<hips_request> made(shared.spare.exchange(nullptr, std::memory_order_acq_rel));
  if (made) {
    if (Status status = made->call->renew(from, out, count, data_type, reduce_op); !status.ok())
      return hips::fail(std::move(status));
  } else {
    auto prepared = shared.communicator->allreduce_init(from, out, count, data_type, reduce_op);
    if (!prepared) return hips::fail(prepared.error());
    made = std::make_unique<hips_request>(hips_request{nullptr, std::move(*prepared)});
  }
  made->shared = comm->shared;
  return made;
}

/// The request is no longer used; kept for the next where there is room.
void retire(hips_request_t& request) {
  std::unique_ptr<hips_request> old(std::exchange(request, nullptr));
  if (!old) return;
  // Its communicator goes with the last of these, and takes a spare request along.
  const std::shared_ptr<Shared> shared = std::move(old->shared);
  old.reset(shared->spare.exchange(old.release(), std::memory_order_acq_rel));
}

/// Waits for the call of a request that may be null, and ends the request unless it is persistent.
Status end_call(hips_request_t& request) {
  if (request == nullptr) return Status::success();
  Status status = request->call->wait();
  if (!request->persistent) retire(request);
  return status;
}

// A registration's handle is its number, not a pointer: one that is used twice is found out.
hips_mem_t handle_of(std::uint64_t id) {
  return reinterpret_cast<hips_mem_t>(static_cast<std::uintptr_t>(id));
}
std::uint64_t id_of(hips_mem_t handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

}  // namespace

extern "C" {

hips_status_t hips_comm_create(const hips_comm_config_t* config, const hips_bootstrap_t* bootstrap,
                               hips_comm_t* comm) {
  return guarded([&]() -> Status {
    if (Status status = hips::comm::check_not_forked(); !status.ok()) return status;
    if (comm == nullptr) return null_argument("hips_comm_create", "comm");
    const auto options = options_from(config);
    if (!options) return options.error();
    auto ranks = bootstrap_from(bootstrap);
    if (!ranks) return ranks.error();
    auto created = hips::comm::Communicator::create(**ranks, *options);
    if (!created) return created.error();
    *comm = new hips_comm{std::make_shared<Shared>(std::move(*created))};
    return Status::success();
  });
}

hips_status_t hips_comm_destroy(hips_comm_t comm) {
  return guarded([&] {
    delete comm;
    return Status::success();
  });
}

hips_status_t hips_comm_rank(hips_comm_t comm, int* rank) {
  return guarded([&] {
    if (comm == nullptr || rank == nullptr)
      return null_argument("hips_comm_rank", comm == nullptr ? "comm" : "rank");
    *rank = comm->shared->communicator->rank();
    return Status::success();
  });
}

hips_status_t hips_comm_size(hips_comm_t comm, int* size) {
  return guarded([&] {
    if (comm == nullptr || size == nullptr)
      return null_argument("hips_comm_size", comm == nullptr ? "comm" : "size");
    *size = comm->shared->communicator->size();
    return Status::success();
  });
}

const char* hips_comm_describe(hips_comm_t comm) {
  return comm == nullptr ? "" : comm->shared->communicator->describe().c_str();
}

hips_status_t hips_allreduce(const void* in, void* out, uint64_t count, hips_type_t type, hips_op_t op,
                             hips_comm_t comm) {
  return guarded([&] {
    if (comm == nullptr) return null_argument("hips_allreduce", "comm");
    return comm->shared->communicator->allreduce(in == HIPS_IN_PLACE ? out : in, out, count,
                                                 static_cast<hips::DataType>(type),
                                                 static_cast<hips::ReduceOp>(op));
  });
}

hips_status_t hips_iallreduce(const void* in, void* out, uint64_t count, hips_type_t type, hips_op_t op,
                              hips_comm_t comm, hips_request_t* request) {
  return guarded([&]() -> Status {
    auto made = make_request("hips_iallreduce", in, out, count, type, op, comm, request);
    if (!made) return made.error();
    (*made)->persistent = false;
    Status status = (*made)->call->start();
    if (status.ok()) *request = made->release();
    return status;
  });
}

hips_status_t hips_allreduce_init(const void* in, void* out, uint64_t count, hips_type_t type, hips_op_t op,
                                  hips_comm_t comm, hips_request_t* request) {
  return guarded([&]() -> Status {
    auto made = make_request("hips_allreduce_init", in, out, count, type, op, comm, request);
    if (!made) return made.error();
    (*made)->persistent = true;
    *request = made->release();
    return Status::success();
  });
}

hips_status_t hips_start(hips_request_t request) {
  return guarded([&]() -> Status {
    if (request == nullptr) return null_argument("hips_start", "request");
    if (!request->persistent)
      return Status::error(
          Code::kInvalidArgument,
          "hips_start: the request is of hips_iallreduce(), which has started it; persistent "
          "ones come from hips_allreduce_init()");
    return request->call->start();
  });
}

hips_status_t hips_test(hips_request_t* request, int* done) {
  return guarded([&]() -> Status {
    if (request == nullptr || done == nullptr)
      return null_argument("hips_test", request == nullptr ? "request" : "done");
    if (*request != nullptr && !(*request)->call->test()) {
      *done = 0;
      return Status::success();
    }
    *done = 1;
    return end_call(*request);
  });
}

hips_status_t hips_wait(hips_request_t* request) {
  return guarded([&]() -> Status {
    if (request == nullptr) return null_argument("hips_wait", "request");
    return end_call(*request);
  });
}

hips_status_t hips_waitall(size_t count, hips_request_t* requests) {
  return guarded([&]() -> Status {
    if (count > 0 && requests == nullptr) return null_argument("hips_waitall", "requests");
    Status first;
    for (size_t i = 0; i < count; ++i) {
      Status status = end_call(requests[i]);
      if (first.ok()) first = std::move(status);
    }
    return first;
  });
}

hips_status_t hips_request_free(hips_request_t* request) {
  return guarded([&]() -> Status {
    if (request == nullptr) return null_argument("hips_request_free", "request");
    if (*request != nullptr && (*request)->call->active())
      return Status::error(Code::kInvalidArgument,
                           "hips_request_free: the request's call is under way; wait for it first");
    retire(*request);
    return Status::success();
  });
}

hips_status_t hips_mem_register(void* address, size_t bytes, hips_mem_t* mem) {
  return guarded([&]() -> Status {
    if (Status status = hips::comm::check_not_forked(); !status.ok()) return status;
    if (mem == nullptr) return null_argument("hips_mem_register", "mem");
    auto id = MemoryRegistry::process().add(static_cast<std::byte*>(address), bytes);
    if (!id) return id.error();
    *mem = handle_of(*id);
    return Status::success();
  });
}

hips_status_t hips_mem_deregister(hips_mem_t* mem) {
  return guarded([&]() -> Status {
    // The devices' registrations are the parent's.
    if (Status status = hips::comm::check_not_forked(); !status.ok()) return status;
    if (mem == nullptr) return null_argument("hips_mem_deregister", "mem");
    if (*mem == nullptr) return null_argument("hips_mem_deregister", "*mem");
    Status status = MemoryRegistry::process().remove(id_of(*mem));
    if (status.ok()) *mem = nullptr;
    return status;
  });
}

hips_status_t hips_mem_alloc(size_t bytes, void** address) {
  return guarded([&]() -> Status {
    if (Status status = hips::comm::check_not_forked(); !status.ok()) return status;
    if (address == nullptr) return null_argument("hips_mem_alloc", "address");
    auto memory = MemoryRegistry::process().allocate(bytes);
    if (!memory) return memory.error();
    *address = *memory;
    return Status::success();
  });
}

hips_status_t hips_mem_free(void* address) {
  return guarded([&]() -> Status {
    if (Status status = hips::comm::check_not_forked(); !status.ok()) return status;
    if (address == nullptr) return Status::success();
    return MemoryRegistry::process().free(static_cast<std::byte*>(address));
  });
}

const char* hips_last_error(void) {
  return last_error().c_str();
}

const char* hips_status_string(hips_status_t status) {
  return hips::to_string(static_cast<Code>(status));
}

const char* hips_version(void) {
  return "0.1.0";
}

}  // extern "C"
