#include <array>
#include <cstring>
#include <utility>

#include "lib/exec/team_impl.hpp"

namespace hips::exec {

// ---- The user's registered memory ----------------------------------------------------------------------

// Looks the memory up once for each operation; a segment only reads the result.
void TeamImpl::hold_memory(OperationImpl& operation) {
  const OperationArgs& args = operation.args_;
  MemoryRegistry& registry = MemoryRegistry::process();
  const std::size_t bytes = static_cast<std::size_t>(args.count) * size_of(args.type);
  operation.out_range_ = registry.hold(args.out, bytes);
  operation.in_range_ = args.in == args.out ? nullptr : registry.hold(args.in, bytes);
  const auto known = [&](const UserRange* range) -> UserRegion* {
    if (range == nullptr || registering_.empty()) return nullptr;
    UserRegion& region = engine_.user_regions.of(*range);
    for (EnginePort* port : registering_)
      engine_.user_regions.register_on(region, *range, port->index, *port->transport);
    return &region;
  };
  operation.out_memory_ = known(operation.out_range_);
  operation.in_memory_ = args.in == args.out ? operation.out_memory_ : known(operation.in_range_);
}

void TeamImpl::drop_memory(OperationImpl& operation) {
  MemoryRegistry::drop(std::exchange(operation.in_range_, nullptr));
  MemoryRegistry::drop(std::exchange(operation.out_range_, nullptr));
  operation.in_memory_ = nullptr;
  operation.out_memory_ = nullptr;
}

UserRegion* TeamImpl::memory_of(const OperationImpl& operation, Buffer buffer) {
  switch (buffer) {
    case Buffer::kInput:
      return operation.in_memory_;
    case Buffer::kOutput:
      return operation.out_memory_;
    case Buffer::kScratch:
      return nullptr;
  }
  return nullptr;
}

// ---- Segments ------------------------------------------------------------------------------------------

StepId TeamImpl::head_of(const OperationImpl& operation, std::int32_t channel) const {
  const auto& operations = out_[channel].operations;
  if (operations.empty() || operations.front() != &operation) return -1;
  return operation.program_->send_of(static_cast<std::size_t>(channel), operation.out_cursor_[channel]);
}

bool TeamImpl::send_ready(const OperationImpl& operation, StepId step) const {
  const std::int32_t c = operation.program_->out_channel[step];
  const StepState& state = operation.steps_[step];
  return state.next < operation.layout_->steps[step].segments && head_of(operation, c) == step &&
         out_[c].may_send() && dependencies_met(operation, step, state.next);
}

void TeamImpl::offer_segment(OperationImpl& operation, StepId id) {
  StepState& state = operation.steps_[id];
  if (state.queued || operation.mismatched_ || operation.done() || !send_ready(operation, id)) return;
  const Step& step = operation.program_->program->steps[id];
  state.queued = true;
  send_path_for(operation, id)
      .port->queue.push({.team = this,
                         .operation = &operation,
                         .step = id,
                         .priority = operation.args_.priority,
                         .sequence = operation.sequence_,
                         .segment = state.next,
                         .stage = step.stage});
}

const SendPath& TeamImpl::send_path_for(const OperationImpl& operation, StepId id) {
  const Step& step = operation.program_->program->steps[id];
  const auto& paths = out_[static_cast<std::size_t>(operation.program_->out_channel[id])].by_rail;
  const bool named = step.rail >= 0 && static_cast<std::size_t>(step.rail) < paths.size();
  return paths[named ? static_cast<std::size_t>(step.rail) : 0];
}

bool TeamImpl::batch_segment(EnginePort& port, const ReadySegment& ready) {
  OperationImpl& operation = *ready.operation;
  const auto id = static_cast<std::size_t>(ready.step);
  StepState& state = operation.steps_[id];
  state.queued = false;
  if (operation.done() || !send_ready(operation, ready.step)) return false;

  const Layout& layout = *operation.layout_;
  const Program& program = *operation.program_->program;
  const Step& step = program.steps[id];
  const Layout::StepLayout& at = layout.steps[id];
  const std::int32_t c = operation.program_->out_channel[id];
  OutChannel& channel = out_[c];
  const std::int32_t segment = state.next;
  const std::int64_t offset = segment * layout.segment_elements;
  const auto bytes = static_cast<std::uint32_t>(std::min(layout.segment_elements, at.elements - offset) *
                                                static_cast<std::int64_t>(layout.element_bytes));
  const std::uint32_t slot = channel.next_slot();
  const std::int64_t begin_ns = now_if_traced();
  if (!channel.connection->is_usable()) [[unlikely]]
    return give_up_segment(port, ready, bytes);
  const Source& source = program.sources[step.first_source];
  const std::byte* payload =
      local_source(operation, source.local, layout.source_first[step.first_source] + offset);
  const transport::MemoryId slots = send_path_for(operation, ready.step).slots;
  // If the payload lies in registered memory, the NIC reads it from there, and only the header is copied.
  UserRegion* memory = slots >= 0 ? memory_of(operation, source.local.buffer) : nullptr;
  const transport::MemoryId there = memory == nullptr ? -1 : memory->on(port.index);
  if (there < 0) memory = nullptr;
  const Grant* grant = bytes >= kMinDirectBytes ? grant_for(operation, ready.step) : nullptr;
  WireHeader content = header_of(operation, ready.step, segment);
  content.bytes = bytes;
  content.posted_ns = begin_ns;
  if (grant != nullptr) content.flags = kDirect;
  // The segment carries credits, which saves a separate notification.
  if (channel.back >= 0) content.credits = std::exchange(in_[channel.back].to_return, 0);

  // One request for header and payload; two requests if the receiver has granted access to its output.
  std::array<transport::LocalPiece, 2> pieces;
  if (slots >= 0) {
    std::byte* place = channel.send_slots + slot * slot_stride_;
    std::memcpy(place, &content, sizeof(content));
    if (memory != nullptr) {
      pieces = {{{place, sizeof(content), slots}, {payload, bytes, there}}};
    } else {
      if (payload != nullptr) std::memcpy(place + sizeof(content), payload, bytes);
      pieces = {{{place, sizeof(content), slots}, {place + sizeof(content), bytes, slots}}};
    }
    channel.sending[slot] = 1;
  } else {
    // The header's memory is reused together with the slot, after the peer has consumed the segment.
    std::byte* header = channel.headers.data() + slot * sizeof(WireHeader);
    std::memcpy(header, &content, sizeof(content));
    pieces = {{{config_.phantom ? nullptr : header, sizeof(WireHeader), -1}, {payload, bytes, -1}}};
  }
  Posted record{&operation, this, &port, ready.step, segment, bytes, begin_ns, channel.peer, c, slot, memory};
  if (grant != nullptr) {
    transport::WorkRequest& put = port.batch[port.num_batched];
    put = {};
    put.verb = transport::Verb::kPut;
    put.peer = channel.peer;
    put.pieces[0] = pieces[1];
    put.num_pieces = 1;
    put.remote = &grant->region;
    put.remote_offset =
        grant->offset + static_cast<std::uint64_t>(layout.target_first[id] + offset) * layout.element_bytes;
    put.signalled = false;  // the header's completion covers the payload, too
    port.batched[port.num_batched] = record;
    port.batched[port.num_batched++].kind = Posted::Kind::kPayload;
    record.kind = Posted::Kind::kHeader;
  }
  transport::WorkRequest& request = port.batch[port.num_batched];
  request = {};
  request.verb = transport::Verb::kPutNotify;
  request.peer = channel.peer;
  request.pieces[0] = pieces[0];
  request.num_pieces = 1;
  if (grant == nullptr && slots >= 0 && memory == nullptr) {
    request.pieces[0].bytes += bytes;  // header and payload are contiguous
  } else if (grant == nullptr) {
    request.pieces[1] = pieces[1];
    request.num_pieces = 2;
  }
  request.remote = channel.remote;
  request.remote_offset = channel.remote_offset + slot * slot_stride_;
  request.token = SlotToken{channel.remote_slot_base + slot, channel.remote_generation[slot], 0}.pack();
  request.signalled = !port.transport->query().completes_on_post;
  ++operation.posts_in_flight_;
  if (request.signalled) {
    request.context = engine_.add_posted(record);
    port.posted_bytes += bytes;
    if (memory != nullptr) ++memory->posts;
  }
  port.batched[port.num_batched++] = record;
  count_segment(operation, ready.step);
  return true;
}

// Nothing is posted to a connection that is lost. The loss is reported, and the operation ends with the team,
// unless the peer has left.
bool TeamImpl::give_up_segment(EnginePort& port, const ReadySegment& ready, std::uint32_t bytes) {
  OperationImpl& operation = *ready.operation;
  const std::int32_t c = operation.program_->out_channel[ready.step];
  Posted lost{.operation = &operation, .team = this, .port = &port, .step = ready.step, .bytes = bytes};
  lost.segment = operation.steps_[ready.step].next;
  lost.begin_ns = now_if_traced();
  lost.channel = c;
  lost.slot = out_[c].next_slot();
  ++operation.posts_in_flight_;
  count_segment(operation, ready.step);
  on_unacknowledged(lost);
  return true;
}

void TeamImpl::count_segment(OperationImpl& operation, StepId id) {
  const std::int32_t c = operation.program_->out_channel[id];
  StepState& state = operation.steps_[id];
  ++out_[c].next_number;
  --out_[c].credits;
  if (++state.next == operation.layout_->steps[id].segments)
    next_send(operation, c);
  else
    offer_segment(operation, id);
}

void TeamImpl::next_send(OperationImpl& operation, std::int32_t c) {
  const Layout& layout = *operation.layout_;
  const auto sends = operation.program_->sends_of(static_cast<std::size_t>(c));
  auto cursor = static_cast<std::size_t>(operation.out_cursor_[c]);
  do {
    ++cursor;
  } while (cursor < sends.size() && layout.steps[static_cast<std::size_t>(sends[cursor])].segments == 0);
  operation.out_cursor_[c] = static_cast<std::int32_t>(cursor);
  auto& operations = out_[c].operations;
  if (cursor == sends.size()) operations.pop_front();
  list_head(c);
}

void TeamImpl::list_head(std::int32_t c) {
  const auto& operations = out_[c].operations;
  if (operations.empty()) return;
  OperationImpl& operation = *operations.front();
  list_for_work(operation, head_of(operation, c));
}

void TeamImpl::on_lost(const Posted& posted) {
  --posted.operation->posts_in_flight_;
}

void TeamImpl::on_unacknowledged(const Posted& posted) {
  // A peer leaves after the end of all calls that it takes part in, so it has all data of theirs. The notice that it left may
  // have overtaken the last acknowledgement, or the acknowledgement was lost.
  if (left_[static_cast<std::size_t>(out_[static_cast<std::size_t>(posted.channel)].key.peer)])
    on_completion(posted);
  else
    unacknowledged_.push_back(posted);
}

void TeamImpl::on_completion(const Posted& posted) {
  if (posted.kind == Posted::Kind::kGrant) {
    in_[static_cast<std::size_t>(posted.channel)].granting[posted.slot] = false;
    return;
  }
  OutChannel& channel = out_[static_cast<std::size_t>(posted.channel)];
  if (channel.send_slots != nullptr) {
    channel.sending[posted.slot] = 0;
    list_head(posted.channel);
  }
  if (posted.operation == nullptr) return;
  OperationImpl& operation = *posted.operation;
  --operation.posts_in_flight_;
  if (operation.done()) return;  // a failure has ended the operation
  if (trace_sink_ != nullptr) {
    const Step& step = operation.program_->program->steps[posted.step];
    trace(TraceEvent::Kind::kWire, operation, posted.step, posted.segment, step.peer, step.rail, posted.bytes,
          posted.begin_ns);
  }
  StepState& state = operation.steps_[posted.step];
  if (posted.segment != state.finished) {
    operation.early_.push_back({posted.step, posted.segment});
    return;
  }
  finish_segment(operation, posted.step);
  // Later segments may have completed earlier.
  for (bool found = true; found && !operation.early_.empty();) {
    found = false;
    for (std::size_t i = 0; i < operation.early_.size(); ++i) {
      if (operation.early_[i].step != posted.step || operation.early_[i].segment != state.finished) continue;
      operation.early_[i] = operation.early_.back();
      operation.early_.pop_back();
      finish_segment(operation, posted.step);
      found = true;
      break;
    }
  }
}

}  // namespace hips::exec
