#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/base/wait/clock.hpp"
#include "transports/verbs/trouble.hpp"
#include "transports/verbs/verbs_transport.hpp"

namespace hips::verbs {

using transport::Event;

// --- Events ----------------------------------------------------------------------------------------------

Event& VerbsTransport::next_event() {
  if (num_events_ == events_.size()) [[unlikely]] {
    std::rotate(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(events_head_), events_.end());
    events_head_ = 0;
    events_.resize(2 * events_.size());
  }
  const std::size_t at = events_head_ + num_events_++;
  return events_[at >= events_.size() ? at - events_.size() : at];
}

void VerbsTransport::push(Event event) {
  next_event() = std::move(event);
}

std::size_t VerbsTransport::take_events(std::span<Event> events) {
  std::size_t filled = 0;
  for (; filled < events.size() && num_events_ > 0; --num_events_) {
    events[filled++] = std::move(events_[events_head_]);
    events_head_ = events_head_ + 1 == events_.size() ? 0 : events_head_ + 1;
  }
  return filled;
}

std::size_t VerbsTransport::poll(std::span<Event> events) {
  if (num_events_ == 0) {
    const bool found = poll_queues();
    if (num_control_due_ > 0) [[unlikely]]
      send_due_control();
    if (num_connecting_ > 0) [[unlikely]]
      poll_connections();
    if (!owned_.closing.empty()) [[unlikely]]
      reap_closing();
    if (!found && ++idle_polls_ % kIdlePollsPerAsyncPoll == 0) poll_async_events();
  }
  return take_events(events);
}

// --- Completions -----------------------------------------------------------------------------------------

bool VerbsTransport::poll_queues() {
  std::array<ibv_wc, 32> completions;
  const std::size_t count = owned_.queues->poll(completions);
  for (std::size_t i = 0; i < count; ++i) take(completions[i]);
  return count > 0;
}

void VerbsTransport::take(const ibv_wc& completion) {
  const WorkId id = WorkId::unpack(completion.wr_id);
  QueuePair* pair = nullptr;
  if (id.receive && !sharing_.empty()) {
    // The wr_id of a shared receive names the queue pair that posted it, so the queue pair number is used.
    if (const auto found = sharing_.find(completion.qp_num); found != sharing_.end()) pair = found->second;
  }
  if (pair == nullptr) {
    if (id.slot >= slots_.size() || slots_[id.slot].generation != id.generation)
      return;  // of a destroyed one
    pair = slots_[id.slot].pair;
    if (pair == nullptr || pair->handle().qp_num != completion.qp_num) return;
  }
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
    take_error(*pair, completion);
  } else if (id.receive) {
    take_received(*pair, completion, id.number);
  } else {
    take_sent(*pair, id.number);
  }
}

void VerbsTransport::take_sent(QueuePair& pair, std::uint32_t number) {
  pair.on_sent(number);
  VerbsEndpoint& endpoint = *pair.endpoint;
  if (endpoint.state == VerbsEndpoint::State::kClosing) {
    if (pair.disconnect_sent && pair.completed() > pair.disconnect_number) any_closed_ = true;
    return;
  }
  release(endpoint);
}

void VerbsTransport::release(VerbsEndpoint& endpoint) {
  while (!endpoint.pending.empty()) {
    const PendingRequests::Entry& oldest = endpoint.pending.front();
    if (endpoint.pairs[oldest.pair]->completed() <= oldest.number) return;
    if (oldest.signalled) {
      Event& event = next_event();
      event.kind = Event::Kind::kCompletion;
      event.peer = endpoint.peer;
      event.token = oldest.token;
      event.context = oldest.context;
      if (!event.error.ok()) event.error = Status::success();
    }
    endpoint.pending.pop();
  }
}

void VerbsTransport::take_received(QueuePair& pair, const ibv_wc& completion, std::uint32_t buffer) {
  VerbsEndpoint& endpoint = *pair.endpoint;
  ControlMessage message;
  if (!immediates_) {
    message = pair.read_control(buffer);
  } else if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
    message = {ControlMessage::Kind::kToken, ntohl(completion.imm_data)};
  } else {
    message = ControlMessage::of_immediate(ntohl(completion.imm_data));
  }
  const bool was_established = pair.established;
  pair.on_received(message, buffer);
  if (message.kind == ControlMessage::Kind::kToken) {
    if (endpoint.state != VerbsEndpoint::State::kClosing) {
      Event& event = next_event();
      event.kind = Event::Kind::kArrival;
      event.peer = endpoint.peer;
      event.token = message.value;
      event.context = 0;
      if (!event.error.ok()) event.error = Status::success();
    }
    if (!pair.owes_credits()) [[likely]]
      return;
  }
  // Receives must be posted before the credits that promise them.
  if (Status status = pair.post_receives(); !status.ok()) {
    break_endpoint(endpoint, std::move(status));
    return;
  }
  if (pair.owes_credits() && !pair.return_credits() && !std::exchange(endpoint.control_due, true))
    ++num_control_due_;
  if (!was_established && pair.established) finish_connecting(endpoint);
  if (message.kind == ControlMessage::Kind::kDisconnect) {
    if (endpoint.state == VerbsEndpoint::State::kClosing) {
      any_closed_ = true;  // both sides have closed; our disconnect message is not needed
      return;
    }
    // Requests on the other queue pairs may still arrive; wait for all disconnect messages.
    const bool all = std::all_of(endpoint.pairs.begin(), endpoint.pairs.end(),
                                 [](const auto& p) { return p != nullptr && p->disconnect_received; });
    if (all) {
      break_endpoint(endpoint, Status::error(Code::kPeerLost,
                                             fmt::format("verbs: {} closed its connection to {}",
                                                         endpoint.name.to_string(), port_.name),
                                             Scope::kPeer));
    }
  }
}

void VerbsTransport::take_error(QueuePair& pair, const ibv_wc& completion) {
  VerbsEndpoint& endpoint = *pair.endpoint;
  switch (endpoint.state) {
    case VerbsEndpoint::State::kBroken:
      return;  // reported already; these are flushed requests
    case VerbsEndpoint::State::kClosing:
      pair.disconnect_received = true;  // the peer is gone and receives no disconnect message
      any_closed_ = true;
      return;
    default:
      break;
  }
  break_endpoint(endpoint, completion_error(port_.name, endpoint.name, completion.status,
                                            completion.vendor_err, {options_.timeout, options_.retry_count}));
}

void VerbsTransport::send_due_control() {
  if (num_control_due_ == 0) return;
  const auto send_due = [this](VerbsEndpoint* endpoint) {
    if (endpoint == nullptr || !endpoint->control_due) return;
    bool left = false;
    for (auto& pair : endpoint->pairs) {
      if (pair == nullptr || !pair->established) continue;
      if (pair->owes_credits() && !pair->return_credits()) left = true;
    }
    if (endpoint->state == VerbsEndpoint::State::kClosing) {
      send_disconnects(*endpoint);
      left |= std::any_of(endpoint->pairs.begin(), endpoint->pairs.end(),
                          [](const auto& pair) { return pair != nullptr && pair->disconnect_due; });
    }
    if (left) return;
    endpoint->control_due = false;
    --num_control_due_;
  };
  for (auto& endpoint : owned_.endpoints) send_due(endpoint.get());
  for (auto& endpoint : owned_.closing) send_due(endpoint.get());
}

// --- Events of the device ------------------------------------------------------------------------------------

void VerbsTransport::poll_async_events() {
  if (owned_.cm) poll_connections();
  ibv_async_event event;
  while (ibv_get_async_event(owned_.context, &event) == 0) {
    Event port_down;
    switch (event.event_type) {
      case IBV_EVENT_PORT_ERR:
      case IBV_EVENT_DEVICE_FATAL:
        if (event.event_type == IBV_EVENT_PORT_ERR && event.element.port_num != port_.port) break;
        if (port_down_reported_) break;
        port_down.kind = Event::Kind::kPortDown;
        port_down.error =
            Status::error(Code::kPeerLost,
                          fmt::format("verbs: {} on {} went down: {}; check the cable, the switch port and "
                                      "\"ip link\", then start "
                                      "the job again, with HIPS_IB_HCA=^{} if it stays down",
                                      port_.name, host_, ibv_event_type_str(event.event_type), port_.name),
                          Scope::kLink);
        push(std::move(port_down));
        port_down_reported_ = true;
        break;
      case IBV_EVENT_PORT_ACTIVE:
        if (event.element.port_num == port_.port && std::exchange(port_down_reported_, false)) {
          Event port_up;
          port_up.kind = Event::Kind::kPortUp;
          push(std::move(port_up));
        }
        break;
      case IBV_EVENT_QP_FATAL:
      case IBV_EVENT_QP_REQ_ERR:
      case IBV_EVENT_QP_ACCESS_ERR:
        for (const Slot& slot : slots_) {
          if (slot.pair == nullptr || &slot.pair->handle() != event.element.qp) continue;
          VerbsEndpoint& endpoint = *slot.pair->endpoint;
          if (endpoint.state == VerbsEndpoint::State::kClosing) break;
          break_endpoint(endpoint,
                         Status::error(Code::kPeerLost,
                                       fmt::format("verbs: {}: the connection to {} failed: {}; see the "
                                                   "peer's output and the kernel's log (dmesg)",
                                                   port_.name, endpoint.name.to_string(),
                                                   ibv_event_type_str(event.event_type)),
                                       Scope::kPeer));
          break;
        }
        break;
      case IBV_EVENT_CQ_ERR:
        log::error(log::Subsystem::kTransport, "verbs: {}: a completion queue overran", port_.name);
        break;
      default:
        log::debug(log::Subsystem::kTransport, "verbs: {}: {}", port_.name,
                   ibv_event_type_str(event.event_type));
        break;
    }
    ibv_ack_async_event(&event);
  }
}

}  // namespace hips::verbs
