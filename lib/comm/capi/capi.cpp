#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <hips/hips.h>

#include "lib/base/memory_registry.hpp"
#include "lib/comm/capi/capi.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/comm/process.hpp"
#include "lib/comm/setup/agreement.hpp"
#include "lib/comm/setup/bootstrap.hpp"
#include "lib/comm/setup/split.hpp"
#include "lib/comm/setup/topology_choice.hpp"
#include "lib/comm/shrink.hpp"

using hips::Code;
using hips::MemoryRegistry;
using hips::Result;
using hips::Status;
using namespace hips::comm::capi;  // NOLINT: the C API is part of it

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
static_assert(static_cast<int>(hips::ThreadMode::kSerialized) == HIPS_THREAD_SERIALIZED);
static_assert(static_cast<int>(hips::ThreadMode::kMultiple) == HIPS_THREAD_MULTIPLE);
static_assert(static_cast<int>(hips::ThreadMode::kSingle) == HIPS_THREAD_SINGLE);
static_assert(static_cast<int>(hips::Scope::kOperation) == HIPS_SCOPE_OPERATION);
static_assert(static_cast<int>(hips::Scope::kCommunicator) == HIPS_SCOPE_COMMUNICATOR);
static_assert(static_cast<int>(hips::Scope::kProcess) == HIPS_SCOPE_PROCESS);
static_assert(hips::kNoRail == -1);
static_assert(hips::comm::kNoPart == HIPS_UNDEFINED);

namespace hips::comm::capi {

Status& last_error() {
  thread_local Status status;
  return status;
}

hips_status_t finish_failed(const Status& status) noexcept {
  Status& last = last_error();
  try {
    last = status;
  } catch (const std::bad_alloc&) {
    // The cause is lost, but not who and what is concerned. This message needs no allocation.
    last.code = status.code;
    last.scope = status.scope;
    last.rank = status.rank;
    last.rail = status.rail;
    last.sys_errno = status.sys_errno;
    last.message = "out of memory";
  }
  return static_cast<hips_status_t>(status.code);
}

hips_status_t finish_out_of_memory() noexcept {
  Status& last = last_error();
  last.code = Code::kOutOfMemory;
  last.scope = Scope::kOperation;
  last.rank = -1;
  last.rail = kNoRail;
  last.sys_errno = 0;
  last.message = "out of memory";  // short enough to need no allocation
  return HIPS_ERR_OUT_OF_MEMORY;
}

Status null_argument(const char* call, const char* name) {
  return Status::error(Code::kInvalidArgument, fmt::format("{}: {} is null", call, name));
}

}  // namespace hips::comm::capi

namespace {

std::optional<std::string> optional_text(const char* text) {
  if (text == nullptr) return std::nullopt;
  return text;
}

/// The members that the caller's header has, and the defaults of later ones.
Result<hips_comm_config_t> known_members(const hips_comm_config_t* config) {
  hips_comm_config_t known = HIPS_COMM_CONFIG_INIT;
  if (config == nullptr) return known;
  // The members of the first version; later ones are read where the caller knows of them.
  constexpr std::size_t kLeastBytes = offsetof(hips_comm_config_t, thread_mode);
  if (config->struct_size < kLeastBytes)
    return hips::fail(
        Code::kInvalidArgument,
        fmt::format("hips_comm_create: config.struct_size is {}; begin with HIPS_COMM_CONFIG_INIT, "
                    "which sets it to {}",
                    config->struct_size, sizeof(hips_comm_config_t)));
  std::memcpy(&known, config, std::min(config->struct_size, sizeof known));
  return known;
}

Result<hips::comm::CommunicatorOptions> options_from(const hips_comm_config_t& known) {
  hips::comm::CommunicatorOptions options;
  options.topology = optional_text(known.topology);
  options.algorithm = optional_text(known.algorithm);
  options.pattern = optional_text(known.pattern);
  if (known.name != nullptr) options.name = known.name;
  if (known.timeout_ms < 0 || known.timeout_ms > INT64_MAX / 1'000'000)
    return hips::fail(
        Code::kInvalidArgument,
        fmt::format("hips_comm_create: config.timeout_ms is {}; expected milliseconds, or 0 for HIPS_TIMEOUT",
                    known.timeout_ms));
  // A deadline fits into 64 bits of nanoseconds, too.
  constexpr std::int64_t kLongestMs = 3'200'000'000'000;
  if (known.timeout_ms > 0)
    options.timeout_ns = std::min<std::int64_t>(known.timeout_ms, kLongestMs) * 1'000'000;
  if (known.job_size < 0)
    return hips::fail(
        Code::kInvalidArgument,
        fmt::format(
            "hips_comm_create: config.job_size is {}; expected the number of the job's ranks, or 0 where "
            "the communicator has them all",
            known.job_size));
  switch (known.thread_mode) {
    case HIPS_THREAD_SERIALIZED:
      break;
    case HIPS_THREAD_SINGLE:
      options.thread_mode = hips::ThreadMode::kSingle;
      break;
    default:
      return hips::fail(
          Code::kInvalidArgument,
          fmt::format("hips_comm_create: config.thread_mode is {}; expected HIPS_THREAD_SERIALIZED "
                      "({}) or HIPS_THREAD_SINGLE ({})",
                      known.thread_mode, static_cast<int>(HIPS_THREAD_SERIALIZED),
                      static_cast<int>(HIPS_THREAD_SINGLE)));
  }
  return options;
}

/// Plans a communicator of some of the job's ranks on the part of the topology that they occupy. Collective: all ranks pass
/// alike that they are a part.
Status choose_part(const hips_comm_config_t& config, hips::comm::Bootstrap& bootstrap,
                   hips::comm::CommunicatorOptions& options) {
  const hips::LoadedConfig loaded = hips::load_process_config();
  Status mine = loaded.status;
  if (mine.ok() && (config.job_rank < 0 || config.job_rank >= config.job_size))
    mine = Status::error(
        Code::kInvalidArgument,
        fmt::format("hips_comm_create: config.job_rank is {}; valid with a config.job_size of {}: 0 to {}",
                    config.job_rank, config.job_size, config.job_size - 1));
  hips::comm::ByteWriter writer;
  writer.put_status(mine);
  writer.put(static_cast<std::int32_t>(config.job_rank));
  writer.put(static_cast<std::int32_t>(config.job_size));
  auto all = bootstrap.allgather(writer.blob());
  if (!all) return all.error();
  std::vector<Status> statuses;
  std::vector<hips::Rank> job_ranks;
  for (const hips::comm::Blob& blob : *all) {
    hips::comm::ByteReader reader(blob);
    statuses.push_back(reader.get_status());
    job_ranks.push_back(reader.get<std::int32_t>());
    const auto job_size = reader.get<std::int32_t>();
    Status& status = statuses.back();
    if (!reader.ok())
      status = hips::comm::malformed(static_cast<hips::Rank>(statuses.size() - 1));
    else if (status.ok() && job_size != config.job_size)
      status = Status::error(
          Code::kMismatch,
          fmt::format("hips_comm_create: config.job_size is {} on one rank and {} on another",
                      std::min(job_size, config.job_size), std::max(job_size, config.job_size)));
  }
  if (Status status = hips::comm::first_failure(statuses); !status.ok()) return status;
  const auto choice = hips::comm::choose_topology(
      options.topology ? options.topology : loaded.config.topology, job_ranks, config.job_size, "the job");
  if (!choice) {
    // The others may see a topology that this rank does not: the set-up tells all.
    options.refused = choice.error();
    return Status::success();
  }
  options.topology = choice->spec;
  options.is_part = !choice->is_users;
  return Status::success();
}

hips_comm_t make_handle(std::unique_ptr<hips::comm::Communicator> made) {
  auto handle = std::make_unique<hips_comm>();
  handle->shared = SharedHold(*new Shared(std::move(made)));
  return handle.release();
}

Result<std::unique_ptr<hips::comm::Bootstrap>> bootstrap_from(const hips_bootstrap_t* callbacks) {
  if (callbacks != nullptr) return hips::comm::make_callback_bootstrap(*callbacks);
  const hips::LoadedConfig loaded = hips::load_process_config();
  const auto rendezvous = hips::comm::rendezvous_from(loaded.config, hips::process_environment());
  // A wrong HIPS_RANK shows up as a missing one here; the first error is the better one.
  if (!rendezvous) return hips::fail(loaded.status.ok() ? rendezvous.error() : loaded.status);
  return hips::comm::make_tcp_bootstrap(*rendezvous);
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
    const auto known = known_members(config);
    if (!known) return known.error();
    auto options = options_from(*known);
    if (!options) return options.error();
    auto ranks = bootstrap_from(bootstrap);
    if (!ranks) return ranks.error();
    if (known->job_size > 0 && known->job_rank >= 0 && known->job_rank < known->job_size)
      hips::comm::set_job(known->job_rank, known->job_size);
    if (known->job_size > 0)
      if (Status status = choose_part(*known, **ranks, *options); !status.ok()) return status;
    auto created = hips::comm::Communicator::create(**ranks, *options);
    if (!created) return created.error();
    *comm = make_handle(std::move(*created));
    return Status::success();
  });
}

hips_status_t hips_comm_split(hips_comm_t comm, int color, int key, hips_comm_t* part) {
  return guarded([&]() -> Status {
    if (comm == nullptr || part == nullptr)
      return null_argument("hips_comm_split", comm == nullptr ? "comm" : "newcomm");
    auto made = hips::comm::split(*comm->shared->communicator, color, key);
    if (!made) return made.error();
    *part = *made ? make_handle(std::move(*made)) : nullptr;
    return Status::success();
  });
}

hips_status_t hips_comm_dup(hips_comm_t comm, hips_comm_t* copy) {
  return guarded([&]() -> Status {
    if (comm == nullptr || copy == nullptr)
      return null_argument("hips_comm_dup", comm == nullptr ? "comm" : "newcomm");
    auto made = hips::comm::duplicate(*comm->shared->communicator);
    if (!made) return made.error();
    *copy = make_handle(std::move(*made));
    return Status::success();
  });
}

hips_status_t hips_comm_shrink(hips_comm_t comm, hips_comm_t* shrunk) {
  return guarded([&]() -> Status {
    if (comm == nullptr || shrunk == nullptr)
      return null_argument("hips_comm_shrink", comm == nullptr ? "comm" : "newcomm");
    auto made = hips::comm::shrink(*comm->shared->communicator);
    if (!made) return made.error();
    *shrunk = make_handle(std::move(*made));
    return Status::success();
  });
}

hips_status_t hips_comm_abort(hips_comm_t comm, const char* text) {
  return guarded([&] {
    if (comm == nullptr) return null_argument("hips_comm_abort", "comm");
    return comm->shared->communicator->abort(text == nullptr ? "no reason given" : text);
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
  return last_error().message.c_str();
}

hips_status_t hips_last_error_info(hips_error_info_t* info) {
  constexpr std::size_t kLeastBytes = sizeof(hips_error_info_t);  // of the first version
  // Nothing is recorded here: the error that is asked for would be lost.
  if (info == nullptr || info->struct_size < kLeastBytes) return HIPS_ERR_INVALID_ARGUMENT;
  const Status& last = last_error();
  const hips_error_info_t known = {info->struct_size, static_cast<hips_status_t>(last.code),
                                   last.rank,         static_cast<hips_scope_t>(last.scope),
                                   last.sys_errno,    last.message.c_str(),
                                   last.rail};
  std::memcpy(info, &known, sizeof known);
  return HIPS_OK;
}

const char* hips_status_string(hips_status_t status) {
  return hips::to_string(static_cast<Code>(status));
}

const char* hips_version(void) {
  return "0.1.0";
}

}  // extern "C"
