#include <memory>
#include <span>
#include <vector>

#include "lib/comm/capi/capi.hpp"
#include "lib/comm/capi/capi_requests.hpp"

using namespace hips::comm::capi;  // NOLINT: the C API is part of it

namespace {

hips::Status run(const hips::Result<hips::comm::CallArgs>& args, hips_comm_t comm) {
  return args ? comm->shared->communicator->call(*args) : args.error();
}

std::vector<hips::comm::CoalescedBuffer> coalesced_buffers(std::span<const hips_buffer_t> buffers) {
  std::vector<hips::comm::CoalescedBuffer> list;
  list.reserve(buffers.size());
  for (const hips_buffer_t& buffer : buffers) {
    const void* const in = buffer.in == HIPS_IN_PLACE ? buffer.out : buffer.in;
    list.push_back({static_cast<const std::byte*>(in), static_cast<std::byte*>(buffer.out), buffer.count,
                    static_cast<hips::DataType>(buffer.type), buffer.priority});
  }
  return list;
}

}  // namespace

extern "C" {

hips_status_t hips_allreduce(const void* in, void* out, uint64_t count, hips_type_t type, hips_op_t op,
                             hips_comm_t comm) {
  // Fast path: per-call overhead dominates small messages.
  return guarded([&] {
    if (comm == nullptr) return null_argument("hips_allreduce", "comm");
    return comm->shared->communicator->allreduce(in == HIPS_IN_PLACE ? out : in, out, count,
                                                 static_cast<hips::DataType>(type),
                                                 static_cast<hips::ReduceOp>(op));
  });
}
hips_status_t hips_iallreduce(const void* in, void* out, uint64_t count, hips_type_t type, hips_op_t op,
                              hips_comm_t comm, hips_request_t* request) {
  constexpr const char* kCall = "hips_iallreduce";
  return guarded(
      [&] { return start(kCall, allreduce_args(kCall, in, out, count, type, op, comm), comm, request); });
}
hips_status_t hips_allreduce_init(const void* in, void* out, uint64_t count, hips_type_t type, hips_op_t op,
                                  hips_comm_t comm, hips_request_t* request) {
  constexpr const char* kCall = "hips_allreduce_init";
  return guarded(
      [&] { return prepare(kCall, allreduce_args(kCall, in, out, count, type, op, comm), comm, request); });
}

hips_status_t hips_allreduce_coalesced(const hips_buffer_t* buffers, size_t num, hips_op_t op,
                                       hips_comm_t comm) {
  return guarded([&] {
    if (comm == nullptr || (buffers == nullptr && num > 0))
      return null_argument("hips_allreduce_coalesced", comm == nullptr ? "comm" : "buffers");
    auto& coalescer = comm->shared->coalescer;
    if (!coalescer) coalescer = std::make_unique<hips::comm::Coalescer>(*comm->shared->communicator);
    return coalescer->allreduce(coalesced_buffers({buffers, num}), static_cast<hips::ReduceOp>(op));
  });
}
hips_status_t hips_iallreduce_coalesced(const hips_buffer_t* buffers, size_t num, hips_op_t op,
                                        hips_comm_t comm, hips_request_t* request) {
  return guarded([&] {
    if (comm == nullptr || request == nullptr || (buffers == nullptr && num > 0))
      return null_argument("hips_iallreduce_coalesced", comm == nullptr      ? "comm"
                                                        : request == nullptr ? "request"
                                                                             : "buffers");
    return start_coalesced(coalesced_buffers({buffers, num}), static_cast<hips::ReduceOp>(op), comm, request);
  });
}

hips_status_t hips_reduce_scatter_block(const void* in, void* out, uint64_t count, hips_type_t type,
                                        hips_op_t op, hips_comm_t comm) {
  return guarded([&] {
    return run(reduce_scatter_block_args("hips_reduce_scatter_block", in, out, count, type, op, comm), comm);
  });
}
hips_status_t hips_ireduce_scatter_block(const void* in, void* out, uint64_t count, hips_type_t type,
                                         hips_op_t op, hips_comm_t comm, hips_request_t* request) {
  constexpr const char* kCall = "hips_ireduce_scatter_block";
  return guarded([&] {
    return start(kCall, reduce_scatter_block_args(kCall, in, out, count, type, op, comm), comm, request);
  });
}
hips_status_t hips_reduce_scatter_block_init(const void* in, void* out, uint64_t count, hips_type_t type,
                                             hips_op_t op, hips_comm_t comm, hips_request_t* request) {
  constexpr const char* kCall = "hips_reduce_scatter_block_init";
  return guarded([&] {
    return prepare(kCall, reduce_scatter_block_args(kCall, in, out, count, type, op, comm), comm, request);
  });
}

hips_status_t hips_reduce_scatter(const void* in, void* out, const uint64_t* counts, hips_type_t type,
                                  hips_op_t op, hips_comm_t comm) {
  return guarded(
      [&] { return run(reduce_scatter_args("hips_reduce_scatter", in, out, counts, type, op, comm), comm); });
}
hips_status_t hips_ireduce_scatter(const void* in, void* out, const uint64_t* counts, hips_type_t type,
                                   hips_op_t op, hips_comm_t comm, hips_request_t* request) {
  constexpr const char* kCall = "hips_ireduce_scatter";
  return guarded([&] {
    return start(kCall, reduce_scatter_args(kCall, in, out, counts, type, op, comm), comm, request);
  });
}
hips_status_t hips_reduce_scatter_init(const void* in, void* out, const uint64_t* counts, hips_type_t type,
                                       hips_op_t op, hips_comm_t comm, hips_request_t* request) {
  constexpr const char* kCall = "hips_reduce_scatter_init";
  return guarded([&] {
    return prepare(kCall, reduce_scatter_args(kCall, in, out, counts, type, op, comm), comm, request);
  });
}

hips_status_t hips_allgather(const void* in, void* out, uint64_t count, hips_type_t type, hips_comm_t comm) {
  return guarded([&] { return run(allgather_args("hips_allgather", in, out, count, type, comm), comm); });
}
hips_status_t hips_iallgather(const void* in, void* out, uint64_t count, hips_type_t type, hips_comm_t comm,
                              hips_request_t* request) {
  constexpr const char* kCall = "hips_iallgather";
  return guarded(
      [&] { return start(kCall, allgather_args(kCall, in, out, count, type, comm), comm, request); });
}
hips_status_t hips_allgather_init(const void* in, void* out, uint64_t count, hips_type_t type,
                                  hips_comm_t comm, hips_request_t* request) {
  constexpr const char* kCall = "hips_allgather_init";
  return guarded(
      [&] { return prepare(kCall, allgather_args(kCall, in, out, count, type, comm), comm, request); });
}

hips_status_t hips_allgatherv(const void* in, void* out, const uint64_t* counts,
                              const uint64_t* displacements, hips_type_t type, hips_comm_t comm) {
  return guarded([&] {
    return run(allgatherv_args("hips_allgatherv", in, out, counts, displacements, type, comm), comm);
  });
}
hips_status_t hips_iallgatherv(const void* in, void* out, const uint64_t* counts,
                               const uint64_t* displacements, hips_type_t type, hips_comm_t comm,
                               hips_request_t* request) {
  constexpr const char* kCall = "hips_iallgatherv";
  return guarded([&] {
    return start(kCall, allgatherv_args(kCall, in, out, counts, displacements, type, comm), comm, request);
  });
}
hips_status_t hips_allgatherv_init(const void* in, void* out, const uint64_t* counts,
                                   const uint64_t* displacements, hips_type_t type, hips_comm_t comm,
                                   hips_request_t* request) {
  constexpr const char* kCall = "hips_allgatherv_init";
  return guarded([&] {
    return prepare(kCall, allgatherv_args(kCall, in, out, counts, displacements, type, comm), comm, request);
  });
}

hips_status_t hips_bcast(void* buffer, uint64_t count, hips_type_t type, int root, hips_comm_t comm) {
  return guarded([&] { return run(bcast_args("hips_bcast", buffer, count, type, root, comm), comm); });
}
hips_status_t hips_ibcast(void* buffer, uint64_t count, hips_type_t type, int root, hips_comm_t comm,
                          hips_request_t* request) {
  constexpr const char* kCall = "hips_ibcast";
  return guarded(
      [&] { return start(kCall, bcast_args(kCall, buffer, count, type, root, comm), comm, request); });
}
hips_status_t hips_bcast_init(void* buffer, uint64_t count, hips_type_t type, int root, hips_comm_t comm,
                              hips_request_t* request) {
  constexpr const char* kCall = "hips_bcast_init";
  return guarded(
      [&] { return prepare(kCall, bcast_args(kCall, buffer, count, type, root, comm), comm, request); });
}

hips_status_t hips_reduce(const void* in, void* out, uint64_t count, hips_type_t type, hips_op_t op, int root,
                          hips_comm_t comm) {
  return guarded([&] { return run(reduce_args("hips_reduce", in, out, count, type, op, root, comm), comm); });
}
hips_status_t hips_ireduce(const void* in, void* out, uint64_t count, hips_type_t type, hips_op_t op,
                           int root, hips_comm_t comm, hips_request_t* request) {
  constexpr const char* kCall = "hips_ireduce";
  return guarded(
      [&] { return start(kCall, reduce_args(kCall, in, out, count, type, op, root, comm), comm, request); });
}
hips_status_t hips_reduce_init(const void* in, void* out, uint64_t count, hips_type_t type, hips_op_t op,
                               int root, hips_comm_t comm, hips_request_t* request) {
  constexpr const char* kCall = "hips_reduce_init";
  return guarded([&] {
    return prepare(kCall, reduce_args(kCall, in, out, count, type, op, root, comm), comm, request);
  });
}

hips_status_t hips_gather(const void* in, void* out, uint64_t count, hips_type_t type, int root,
                          hips_comm_t comm) {
  return guarded([&] { return run(gather_args("hips_gather", in, out, count, type, root, comm), comm); });
}
hips_status_t hips_igather(const void* in, void* out, uint64_t count, hips_type_t type, int root,
                           hips_comm_t comm, hips_request_t* request) {
  constexpr const char* kCall = "hips_igather";
  return guarded(
      [&] { return start(kCall, gather_args(kCall, in, out, count, type, root, comm), comm, request); });
}
hips_status_t hips_gather_init(const void* in, void* out, uint64_t count, hips_type_t type, int root,
                               hips_comm_t comm, hips_request_t* request) {
  constexpr const char* kCall = "hips_gather_init";
  return guarded(
      [&] { return prepare(kCall, gather_args(kCall, in, out, count, type, root, comm), comm, request); });
}

hips_status_t hips_scatter(const void* in, void* out, uint64_t count, hips_type_t type, int root,
                           hips_comm_t comm) {
  return guarded([&] { return run(scatter_args("hips_scatter", in, out, count, type, root, comm), comm); });
}
hips_status_t hips_iscatter(const void* in, void* out, uint64_t count, hips_type_t type, int root,
                            hips_comm_t comm, hips_request_t* request) {
  constexpr const char* kCall = "hips_iscatter";
  return guarded(
      [&] { return start(kCall, scatter_args(kCall, in, out, count, type, root, comm), comm, request); });
}
hips_status_t hips_scatter_init(const void* in, void* out, uint64_t count, hips_type_t type, int root,
                                hips_comm_t comm, hips_request_t* request) {
  constexpr const char* kCall = "hips_scatter_init";
  return guarded(
      [&] { return prepare(kCall, scatter_args(kCall, in, out, count, type, root, comm), comm, request); });
}

hips_status_t hips_alltoall(const void* in, void* out, uint64_t count, hips_type_t type, hips_comm_t comm) {
  return guarded([&] { return run(alltoall_args("hips_alltoall", in, out, count, type, comm), comm); });
}
hips_status_t hips_ialltoall(const void* in, void* out, uint64_t count, hips_type_t type, hips_comm_t comm,
                             hips_request_t* request) {
  constexpr const char* kCall = "hips_ialltoall";
  return guarded(
      [&] { return start(kCall, alltoall_args(kCall, in, out, count, type, comm), comm, request); });
}
hips_status_t hips_alltoall_init(const void* in, void* out, uint64_t count, hips_type_t type,
                                 hips_comm_t comm, hips_request_t* request) {
  constexpr const char* kCall = "hips_alltoall_init";
  return guarded(
      [&] { return prepare(kCall, alltoall_args(kCall, in, out, count, type, comm), comm, request); });
}

hips_status_t hips_barrier(hips_comm_t comm) {
  return guarded([&] { return run(barrier_args("hips_barrier", comm), comm); });
}
hips_status_t hips_ibarrier(hips_comm_t comm, hips_request_t* request) {
  constexpr const char* kCall = "hips_ibarrier";
  return guarded([&] { return start(kCall, barrier_args(kCall, comm), comm, request); });
}
hips_status_t hips_barrier_init(hips_comm_t comm, hips_request_t* request) {
  constexpr const char* kCall = "hips_barrier_init";
  return guarded([&] { return prepare(kCall, barrier_args(kCall, comm), comm, request); });
}

}  // extern "C"
