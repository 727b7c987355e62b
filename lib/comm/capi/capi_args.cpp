#include <array>
#include <optional>

#include <fmt/format.h>

#include "lib/base/type_text.hpp"
#include "lib/comm/capi/capi.hpp"

namespace hips::comm::capi {
namespace {

std::byte* bytes(void* memory) {
  return static_cast<std::byte*>(memory);
}
const std::byte* bytes(const void* memory) {
  return static_cast<const std::byte*>(memory);
}

/// Elements that fit into memory at most. For an invalid type, bytes: the call itself rejects it.
std::uint64_t most_elements(DataType type) {
  return static_cast<std::uint64_t>(PTRDIFF_MAX) / (is_type(type) ? size_of(type) : 1);
}

Status too_many(const char* call, DataType type) {
  return Status::error(
      Code::kInvalidArgument,
      fmt::format("{}: all sections of {} together are more than memory can hold", call, type_text(type)));
}

std::size_t size_of_comm(hips_comm_t comm) {
  return static_cast<std::size_t>(comm->shared->communicator->size());
}

/// Sections of their own lengths; null where they are too long.
std::shared_ptr<const Sections> sections_of(hips_comm_t comm, const std::uint64_t* counts,
                                            const std::uint64_t* places, DataType type) {
  const std::size_t size = size_of_comm(comm);
  std::uint64_t left = most_elements(type);
  for (std::size_t rank = 0; rank < size; ++rank) {
    if (counts[rank] > left) return nullptr;
    left -= counts[rank];
    if (places != nullptr && counts[rank] > 0 && places[rank] > most_elements(type) - counts[rank])
      return nullptr;
  }
  return comm->shared->sections.of({counts, size}, {places, places != nullptr ? size : 0});
}

/// `in` of an allgather: this rank's section, in place where that belongs.
const std::byte* gathered_from(const void* in, void* out, const Sections& sections, DataType type,
                               hips_comm_t comm) {
  if (in != HIPS_IN_PLACE) return bytes(in);
  const auto self = static_cast<std::size_t>(comm->shared->communicator->rank());
  // The call itself rejects an invalid type.
  if (out == nullptr || !is_type(type)) return bytes(out);
  return bytes(out) + sections.displacement(self) * size_of(type);
}

CallArgs scattered(const void* in, void* out, std::shared_ptr<const Sections> sections, DataType type,
                   hips_op_t op) {
  const std::uint64_t total = sections->total();
  return {.collective = Collective::kReduceScatter,
          .in = bytes(in == HIPS_IN_PLACE ? out : in),
          .out = bytes(out),
          .count = total,
          .type = type,
          .op = static_cast<ReduceOp>(op),
          .sections = std::move(sections)};
}

CallArgs gathered(const void* in, void* out, std::shared_ptr<const Sections> sections, DataType type,
                  hips_comm_t comm) {
  const std::byte* const from = gathered_from(in, out, *sections, type, comm);
  const std::uint64_t total = sections->total();
  return {.collective = Collective::kAllgather,
          .in = from,
          .out = bytes(out),
          .count = total,
          .type = type,
          .sections = std::move(sections)};
}

}  // namespace

Result<CallArgs> allreduce_args(const char* call, const void* in, void* out, std::uint64_t count,
                                hips_type_t type, hips_op_t op, hips_comm_t comm) {
  if (comm == nullptr) return fail(null_argument(call, "comm"));
  return Communicator::allreduce_args(in == HIPS_IN_PLACE ? out : in, out, count, static_cast<DataType>(type),
                                      static_cast<ReduceOp>(op));
}

Result<CallArgs> reduce_scatter_block_args(const char* call, const void* in, void* out, std::uint64_t count,
                                           hips_type_t type, hips_op_t op, hips_comm_t comm) {
  if (comm == nullptr) return fail(null_argument(call, "comm"));
  const auto data_type = static_cast<DataType>(type);
  if (count > most_elements(data_type) / size_of_comm(comm)) return fail(too_many(call, data_type));
  return scattered(in, out, comm->shared->sections.of(size_of_comm(comm), count), data_type, op);
}

Result<CallArgs> reduce_scatter_args(const char* call, const void* in, void* out, const std::uint64_t* counts,
                                     hips_type_t type, hips_op_t op, hips_comm_t comm) {
  if (comm == nullptr || counts == nullptr)
    return fail(null_argument(call, comm == nullptr ? "comm" : "counts"));
  const auto data_type = static_cast<DataType>(type);
  auto sections = sections_of(comm, counts, nullptr, data_type);
  if (!sections) return fail(too_many(call, data_type));
  return scattered(in, out, std::move(sections), data_type, op);
}

Result<CallArgs> allgather_args(const char* call, const void* in, void* out, std::uint64_t count,
                                hips_type_t type, hips_comm_t comm) {
  if (comm == nullptr) return fail(null_argument(call, "comm"));
  const auto data_type = static_cast<DataType>(type);
  if (count > most_elements(data_type) / size_of_comm(comm)) return fail(too_many(call, data_type));
  return gathered(in, out, comm->shared->sections.of(size_of_comm(comm), count), data_type, comm);
}

Result<CallArgs> allgatherv_args(const char* call, const void* in, void* out, const std::uint64_t* counts,
                                 const std::uint64_t* displacements, hips_type_t type, hips_comm_t comm) {
  if (comm == nullptr || counts == nullptr)
    return fail(null_argument(call, comm == nullptr ? "comm" : "counts"));
  const auto data_type = static_cast<DataType>(type);
  auto sections = sections_of(comm, counts, displacements, data_type);
  if (!sections) return fail(too_many(call, data_type));
  return gathered(in, out, std::move(sections), data_type, comm);
}

Result<CallArgs> bcast_args(const char* call, void* buffer, std::uint64_t count, hips_type_t type, int root,
                            hips_comm_t comm) {
  if (comm == nullptr) return fail(null_argument(call, "comm"));
  return CallArgs{.collective = Collective::kBcast,
                  .in = bytes(buffer),
                  .out = bytes(buffer),
                  .count = count,
                  .type = static_cast<DataType>(type),
                  .root = root};
}

Result<CallArgs> reduce_args(const char* call, const void* in, void* out, std::uint64_t count,
                             hips_type_t type, hips_op_t op, int root, hips_comm_t comm) {
  if (comm == nullptr) return fail(null_argument(call, "comm"));
  const bool is_root = comm->shared->communicator->rank() == root;
  if (in == HIPS_IN_PLACE && !is_root)
    return fail(Code::kInvalidArgument,
                fmt::format("{}: HIPS_IN_PLACE is for the root, {}; others give their input", call, root));
  return CallArgs{.collective = Collective::kReduce,
                  .in = bytes(in == HIPS_IN_PLACE ? out : in),
                  .out = is_root ? bytes(out) : nullptr,
                  .count = count,
                  .type = static_cast<DataType>(type),
                  .op = static_cast<ReduceOp>(op),
                  .root = root};
}

Result<CallArgs> gather_args(const char* call, const void* in, void* out, std::uint64_t count,
                             hips_type_t type, int root, hips_comm_t comm) {
  auto args = allgather_args(call, in, out, count, type, comm);
  if (!args) return args;
  const bool is_root = comm->shared->communicator->rank() == root;
  if (in == HIPS_IN_PLACE && !is_root)
    return fail(Code::kInvalidArgument,
                fmt::format("{}: HIPS_IN_PLACE is for the root, {}; others give their input", call, root));
  args->collective = Collective::kGather;
  args->root = root;
  if (!is_root) args->out = nullptr;
  return args;
}

Result<CallArgs> scatter_args(const char* call, const void* in, void* out, std::uint64_t count,
                              hips_type_t type, int root, hips_comm_t comm) {
  if (comm == nullptr) return fail(null_argument(call, "comm"));
  const auto data_type = static_cast<DataType>(type);
  if (count > most_elements(data_type) / size_of_comm(comm)) return fail(too_many(call, data_type));
  const bool is_root = comm->shared->communicator->rank() == root;
  if (is_root && in == HIPS_IN_PLACE)
    return fail(
        Code::kInvalidArgument,
        fmt::format(
            "{}: `in` is HIPS_IN_PLACE; the root, {}, gives all sections as `in`, and may give the place of its "
            "own there as `out`",
            call, root));
  return CallArgs{.collective = Collective::kScatter,
                  .in = is_root ? bytes(in) : nullptr,
                  .out = bytes(out),
                  .count = size_of_comm(comm) * count,
                  .type = data_type,
                  .root = root,
                  .sections = comm->shared->sections.of(size_of_comm(comm), count)};
}

Result<CallArgs> alltoall_args(const char* call, const void* in, void* out, std::uint64_t count,
                               hips_type_t type, hips_comm_t comm) {
  if (comm == nullptr) return fail(null_argument(call, "comm"));
  const auto data_type = static_cast<DataType>(type);
  if (count > most_elements(data_type) / size_of_comm(comm)) return fail(too_many(call, data_type));
  if (in == HIPS_IN_PLACE)
    return fail(Code::kInvalidArgument,
                fmt::format("{}: `in` is HIPS_IN_PLACE; an alltoall needs two buffers", call));
  return CallArgs{.collective = Collective::kAlltoall,
                  .in = bytes(in),
                  .out = bytes(out),
                  .count = size_of_comm(comm) * count,
                  .type = data_type,
                  .sections = comm->shared->sections.of(size_of_comm(comm), count)};
}

Result<CallArgs> barrier_args(const char* call, hips_comm_t comm) {
  if (comm == nullptr) return fail(null_argument(call, "comm"));
  return CallArgs{.collective = Collective::kBarrier};
}

}  // namespace hips::comm::capi
