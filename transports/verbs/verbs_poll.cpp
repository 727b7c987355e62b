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
    if (num_indebted_ > 0) [[unlikely]]
      settle_debts();
    if (num_connecting_ > 0) [[unlikely]]
      look_at_connections();
    if (!owned_.closing.empty()) [[unlikely]]
      reap_closing();
    if (!found && ++idle_polls_ % kIdlePollsPerLook == 0) look_at_kernel();
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
    // A shared receive bears the name of whoever posted it.
    if (const auto found = sharing_.find(completion.qp_num); found != sharing_.end()) pair = found->second;
  }
  if (pair == nullptr) {
    if (id.slot >= slots_.size() || slots_[id.slot].generation != id.generation) return;  // it is gone
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
  Endpoint& mine = *pair.endpoint;
  if (mine.state == Endpoint::State::kClosing) {
    if (pair.goodbye_sent && pair.completed() > pair.goodbye_number) any_closed_ = true;
    return;
  }
  release(mine);
}

void VerbsTransport::release(Endpoint& mine) {
  while (!mine.pending.empty()) {
    const PendingRequests::Entry& oldest = mine.pending.front();
    if (mine.pairs[oldest.pair]->completed() <= oldest.number) return;
    if (oldest.signalled) {
      Event& event = next_event();
      event.kind = Event::Kind::kCompletion;
      event.peer = mine.peer;
      event.token = oldest.token;
      event.context = oldest.context;
      if (!event.error.ok()) event.error = Status::success();
    }
    mine.pending.pop();
  }
}

void VerbsTransport::take_received(QueuePair& pair, const ibv_wc& completion, std::uint32_t buffer) {
  Endpoint& mine = *pair.endpoint;
  Note note;
  if (!immediates_) {
    note = pair.read_note(buffer);
  } else if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
    note = {Note::Kind::kToken, ntohl(completion.imm_data)};
  } else {
    note = Note::of_immediate(ntohl(completion.imm_data));
  }
  const bool was_established = pair.established;
  pair.on_received(note, buffer);
  if (note.kind == Note::Kind::kToken) {
    if (mine.state != Endpoint::State::kClosing) {
      Event& event = next_event();
      event.kind = Event::Kind::kArrival;
      event.peer = mine.peer;
      event.token = note.value;
      event.context = 0;
      if (!event.error.ok()) event.error = Status::success();
    }
    if (!pair.owes_answer()) [[likely]]
      return;
  }
  // Receives first: the answer promises them.
  if (Status status = pair.post_receives(); !status.ok()) {
    break_endpoint(mine, std::move(status));
    return;
  }
  if (pair.owes_answer() && !pair.answer() && !std::exchange(mine.answers_owed, true)) ++num_indebted_;
  if (!was_established && pair.established) settle_connections(mine);
  if (note.kind == Note::Kind::kGoodbye) {
    if (mine.state == Endpoint::State::kClosing) {
      any_closed_ = true;  // it has closed as well: nobody waits for our goodbye
      return;
    }
    // What it has posted on the other queue pairs comes first.
    const bool all = std::all_of(mine.pairs.begin(), mine.pairs.end(),
                                 [](const auto& p) { return p != nullptr && p->goodbye_seen; });
    if (all) {
      break_endpoint(mine, Status::error(Code::kPeerLost,
                                         fmt::format("verbs: {} closed its connection to {}",
                                                     mine.name.to_string(), port_.name),
                                         Scope::kPeer));
    }
  }
}

void VerbsTransport::take_error(QueuePair& pair, const ibv_wc& completion) {
  Endpoint& mine = *pair.endpoint;
  switch (mine.state) {
    case Endpoint::State::kBroken:
      return;  // told already; these are the flushed ones
    case Endpoint::State::kClosing:
      pair.goodbye_seen = true;  // nobody is there to hear ours
      any_closed_ = true;
      return;
    default:
      break;
  }
  break_endpoint(mine, completion_error(port_.name, mine.name, completion.status, completion.vendor_err,
                                        {options_.timeout, options_.retry_count}));
}

void VerbsTransport::settle_debts() {
  if (num_indebted_ == 0) return;
  const auto settle = [this](Endpoint* mine) {
    if (mine == nullptr || !mine->answers_owed) return;
    bool left = false;
    for (auto& pair : mine->pairs) {
      if (pair == nullptr || !pair->established) continue;
      if (pair->owes_answer() && !pair->answer()) left = true;
    }
    if (mine->state == Endpoint::State::kClosing) {
      say_goodbyes(*mine);
      left |= std::any_of(mine->pairs.begin(), mine->pairs.end(),
                          [](const auto& pair) { return pair != nullptr && pair->goodbye_due; });
    }
    if (left) return;
    mine->answers_owed = false;
    --num_indebted_;
  };
  for (auto& mine : owned_.endpoints) settle(mine.get());
  for (auto& mine : owned_.closing) settle(mine.get());
}

// --- What the kernel says ----------------------------------------------------------------------------------

void VerbsTransport::look_at_kernel() {
  if (owned_.cm) look_at_connections();
  ibv_async_event event;
  while (ibv_get_async_event(owned_.context, &event) == 0) {
    Event told;
    switch (event.event_type) {
      case IBV_EVENT_PORT_ERR:
      case IBV_EVENT_DEVICE_FATAL:
        if (event.event_type == IBV_EVENT_PORT_ERR && event.element.port_num != port_.port) break;
        if (std::exchange(port_down_told_, true)) break;
        told.kind = Event::Kind::kPortDown;
        told.error =
            Status::error(Code::kPeerLost,
                          fmt::format("verbs: {} on {} went down: {}; look at the cable, the switch port and "
                                      "\"ip link\", then start "
                                      "the job again, with HIPS_IB_HCA=^{} where it stays down",
                                      port_.name, host_, ibv_event_type_str(event.event_type), port_.name),
                          Scope::kLink);
        push(std::move(told));
        break;
      case IBV_EVENT_PORT_ACTIVE:
        port_down_told_ = false;
        break;
      case IBV_EVENT_QP_FATAL:
      case IBV_EVENT_QP_REQ_ERR:
      case IBV_EVENT_QP_ACCESS_ERR:
        for (const Slot& slot : slots_) {
          if (slot.pair == nullptr || &slot.pair->handle() != event.element.qp) continue;
          Endpoint& mine = *slot.pair->endpoint;
          if (mine.state == Endpoint::State::kClosing) break;
          break_endpoint(mine, Status::error(Code::kPeerLost,
                                             fmt::format("verbs: {}: the connection to {} broke: {}; see the "
                                                         "peer's output and the kernel's log (dmesg)",
                                                         port_.name, mine.name.to_string(),
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
