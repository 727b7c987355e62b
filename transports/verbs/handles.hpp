#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <memory>

namespace hips::verbs {

/// Owners of objects of libibverbs and librdmacm. An object must not outlive those that it was made from, so
/// declare members of these types in the order of creation.
template <auto destroy>
struct Destroy {
  template <typename T>
  void operator()(T* object) const {
    (void)destroy(object);  // fails only for an object in use or gone; there is no remedy
  }
};

using ContextHandle = std::unique_ptr<ibv_context, Destroy<ibv_close_device>>;
using DomainHandle = std::unique_ptr<ibv_pd, Destroy<ibv_dealloc_pd>>;
using MemoryHandle = std::unique_ptr<ibv_mr, Destroy<ibv_dereg_mr>>;
using ChannelHandle = std::unique_ptr<ibv_comp_channel, Destroy<ibv_destroy_comp_channel>>;
using QueueHandle = std::unique_ptr<ibv_cq, Destroy<ibv_destroy_cq>>;
using SharedReceivesHandle = std::unique_ptr<ibv_srq, Destroy<ibv_destroy_srq>>;
using PairHandle = std::unique_ptr<ibv_qp, Destroy<ibv_destroy_qp>>;
using CmChannelHandle = std::unique_ptr<rdma_event_channel, Destroy<rdma_destroy_event_channel>>;

/// An rdma_cm connection and its queue pair, if it has one.
struct DestroyCmId {
  void operator()(rdma_cm_id* id) const {
    if (id->qp != nullptr) rdma_destroy_qp(id);
    (void)rdma_destroy_id(id);
  }
};
using CmIdHandle = std::unique_ptr<rdma_cm_id, DestroyCmId>;

}  // namespace hips::verbs
