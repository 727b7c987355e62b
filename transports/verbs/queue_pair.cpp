#include "transports/verbs/queue_pair.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "transports/verbs/trouble.hpp"

namespace hips::verbs {
namespace {

/// A sender that finds no receive tries again after 0.64 ms. The window prevents that.
constexpr std::uint8_t kMinRnrTimer = 12;

}  // namespace

Result<std::unique_ptr<QueuePair>> QueuePair::create(const Setup& setup) {
  std::unique_ptr<QueuePair> pair(new QueuePair);
  pair->cm_.reset(setup.cm);
  ibv_qp_init_attr attributes{};
  int error = 0;
  // Some devices reject a size of inline data that they do not support, where others reduce it.
  for (std::uint32_t wanted_inline = setup.inline_bytes;; wanted_inline /= 2) {
    attributes = {};
    attributes.send_cq = setup.queue;
    attributes.recv_cq = setup.queue;
    attributes.srq = setup.shared_receives;
    attributes.cap.max_send_wr = setup.budget.send_depth;
    attributes.cap.max_recv_wr = setup.shared_receives != nullptr ? 0 : setup.window + Budget::kControl;
    attributes.cap.max_send_sge = setup.budget.pieces;
    attributes.cap.max_recv_sge = 1;
    attributes.cap.max_inline_data = wanted_inline;
    attributes.qp_type = IBV_QPT_RC;
    attributes.sq_sig_all = 0;
    if (setup.cm != nullptr) {
      if (rdma_create_qp(setup.cm, setup.domain, &attributes) == 0) pair->qp_ = setup.cm->qp;
    } else {
      pair->own_.reset(ibv_create_qp(setup.domain, &attributes));
      pair->qp_ = pair->own_.get();
    }
    if (pair->qp_ != nullptr) break;
    error = errno;
    if (wanted_inline == 0) break;
  }
  if (pair->qp_ == nullptr) return fail(call_error(setup.port, "creating a queue pair", error));
  pair->immediates_ = setup.immediates;
  pair->shared_ = setup.shared_receives;
  pair->shares_receives_ = setup.shared_receives != nullptr;
  pair->slot_ = setup.slot;
  pair->generation_ = setup.generation;
  // A device may grant more than requested; the completion queue has room for the requested depth only.
  pair->depth_ = std::min(attributes.cap.max_send_wr, setup.budget.send_depth);
  pair->max_inline_ = attributes.cap.max_inline_data;
  pair->window_ = setup.window;
  pair->port_ = setup.port;
  pair->num_receives_ = setup.window + Budget::kControl;
  pair->taken_.reserve(pair->num_receives_);
  for (std::uint32_t i = pair->num_receives_; i-- > 0;) pair->taken_.push_back(i);
  if (!setup.immediates) {
    pair->control_messages_.resize(pair->num_receives_ + pair->depth_);
    pair->control_memory_.reset(ibv_reg_mr(setup.domain, pair->control_messages_.data(),
                                           pair->control_messages_.size() * sizeof(ControlMessage),
                                           IBV_ACCESS_LOCAL_WRITE));
    if (pair->control_memory_ == nullptr)
      return fail(
          registration_error(setup.port, pair->control_messages_.size() * sizeof(ControlMessage), errno));
  }
  return pair;
}

QueuePair::~QueuePair() = default;

Status QueuePair::initialise(std::uint8_t port) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.pkey_index = 0;
  attributes.port_num = port;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  const int error =
      ibv_modify_qp(qp_, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  return error == 0 ? Status::success() : call_error(port_, "initialising a queue pair", error);
}

Status QueuePair::connect(const Path& path, std::uint32_t own_packet_number) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(path.mtu);
  attributes.dest_qp_num = path.queue_pair;
  attributes.rq_psn = path.packet_number;
  attributes.max_dest_rd_atomic = path.reads;
  attributes.min_rnr_timer = kMinRnrTimer;
  attributes.ah_attr.is_global = 1;
  std::memcpy(attributes.ah_attr.grh.dgid.raw, path.gid.bytes.data(), path.gid.bytes.size());
  attributes.ah_attr.grh.sgid_index = path.gid_index;
  attributes.ah_attr.grh.hop_limit = 64;
  attributes.ah_attr.grh.traffic_class = path.traffic_class;
  attributes.ah_attr.grh.flow_label = path.flow_label;
  attributes.ah_attr.dlid = path.lid;
  attributes.ah_attr.sl = path.service_level;
  attributes.ah_attr.port_num = path.port;
  int error = ibv_modify_qp(qp_, &attributes,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != 0) return call_error(port_, "connecting to " + path.gid.address(), error);
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = own_packet_number;
  attributes.timeout = path.timeout;
  attributes.retry_cnt = path.retry_count;
  attributes.rnr_retry = 7;  // infinite: a slow peer is not an error
  attributes.max_rd_atomic = path.reads;
  error = ibv_modify_qp(qp_, &attributes,
                        IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_MAX_QP_RD_ATOMIC);
  if (error != 0) return call_error(port_, "connecting to " + path.gid.address(), error);
  established = true;
  return Status::success();
}

void QueuePair::stop() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  (void)ibv_modify_qp(qp_, &attributes, IBV_QP_STATE);  // fails only if it is in the error state already
  first_ = last_ = nullptr;
  established = false;
}

Status QueuePair::post_receives() {
  std::array<ibv_recv_wr, 32> requests;
  std::array<ibv_sge, 32> buffers;
  while (!taken_.empty()) {
    const std::size_t count = std::min(taken_.size(), requests.size());
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t buffer = taken_[taken_.size() - 1 - i];
      ibv_recv_wr& request = requests[i];
      request.wr_id =
          WorkId{.receive = true, .slot = slot_, .generation = generation_, .number = buffer}.pack();
      request.next = i + 1 < count ? &requests[i + 1] : nullptr;
      request.sg_list = nullptr;
      request.num_sge = 0;
      if (!immediates_) {
        buffers[i] = {.addr = reinterpret_cast<std::uintptr_t>(&control_messages_[buffer]),
                      .length = sizeof(ControlMessage),
                      .lkey = control_memory_->lkey};
        request.sg_list = &buffers[i];
        request.num_sge = 1;
      }
    }
    ibv_recv_wr* refused = nullptr;
    const int error = shared_ != nullptr ? ibv_post_srq_recv(shared_, requests.data(), &refused)
                                         : ibv_post_recv(qp_, requests.data(), &refused);
    if (error != 0) return call_error(port_, "posting receives", error);
    taken_.resize(taken_.size() - count);
  }
  return Status::success();
}

std::uint64_t QueuePair::append(ibv_send_wr& request, bool signalled) {
  const std::uint64_t number = posted_++;
  request.wr_id =
      WorkId{.slot = slot_, .generation = generation_, .number = static_cast<std::uint32_t>(number)}.pack();
  request.next = nullptr;
  if (signalled) {
    request.send_flags |= IBV_SEND_SIGNALED;
    unsignalled_ = 0;
  } else {
    ++unsignalled_;
  }
  if (last_ == nullptr) {
    first_ = &request;
  } else {
    last_->next = &request;
  }
  last_ = &request;
  return number;
}

int QueuePair::flush() {
  ibv_send_wr* chain = first_;
  first_ = last_ = nullptr;
  if (chain == nullptr) return 0;
  ibv_send_wr* refused = nullptr;
  return ibv_post_send(qp_, chain, &refused);
}

ibv_sge QueuePair::control_memory(const ControlMessage& message, std::uint64_t number) {
  ControlMessage& memory = control_messages_[num_receives_ + number % depth_];
  memory = message;
  return {.addr = reinterpret_cast<std::uintptr_t>(&memory),
          .length = sizeof(ControlMessage),
          .lkey = control_memory_->lkey};
}

bool QueuePair::send_control(const ControlMessage& message) {
  if (posted_ - completed_ >= depth_ || !established) return false;
  ibv_send_wr request{};
  ibv_sge piece{};
  if (immediates_) {
    request.opcode = IBV_WR_SEND_WITH_IMM;
    request.imm_data = htonl(message.immediate());
  } else {
    request.opcode = IBV_WR_SEND;
    piece = control_memory(message, posted_);
    request.sg_list = &piece;
    request.num_sge = 1;
    if (max_inline_ >= sizeof(ControlMessage)) request.send_flags = IBV_SEND_INLINE;
  }
  (void)append(request, true);
  return flush() == 0;
}

void QueuePair::on_sent(std::uint32_t number) {
  // Fewer than 2^32 requests are outstanding, so the low half identifies one of them.
  const std::uint64_t until =
      completed_ + static_cast<std::uint32_t>(number - static_cast<std::uint32_t>(completed_)) + 1;
  if (until <= posted_) completed_ = until;
}

void QueuePair::on_received(const ControlMessage& message, std::uint32_t buffer) {
  taken_.push_back(buffer);
  switch (message.kind) {
    case ControlMessage::Kind::kToken:
      ++tokens_received_;
      break;
    case ControlMessage::Kind::kCredits:
      tokens_credited_ +=
          (message.value - static_cast<std::uint32_t>(tokens_credited_)) & ControlMessage::kValueMask;
      break;
    case ControlMessage::Kind::kDisconnect:
      disconnect_received = true;
      break;
    case ControlMessage::Kind::kHello:
      established = true;
      break;
  }
}

ControlMessage QueuePair::read_control(std::uint32_t buffer) const {
  ControlMessage message;
  if (buffer < control_messages_.size()) std::memcpy(&message, &control_messages_[buffer], sizeof message);
  return message;
}

bool QueuePair::return_credits() {
  if (!send_control({ControlMessage::Kind::kCredits,
                     static_cast<std::uint32_t>(tokens_received_) & ControlMessage::kValueMask}))
    return false;
  tokens_returned_ = tokens_received_;
  return true;
}

}  // namespace hips::verbs
