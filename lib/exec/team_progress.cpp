#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <mutex>
#include <utility>

#include "lib/exec/team_impl.hpp"
#include "lib/reduce/reduce.hpp"

namespace hips::exec {
namespace {

/// More than a training step has sizes of tensors; and at most 16 MiB of them.
constexpr std::size_t kMaxLayouts = 1024, kMostStepsOfLayouts = std::size_t{1} << 18U;

}  // namespace

// ---- Starting ------------------------------------------------------------------------------------------

std::shared_ptr<Operation> TeamImpl::start(const OperationArgs& args) {
  if (const std::unique_lock driving(engine_, std::try_to_lock); driving) return start_in_progress(args);
  // Another thread drives progress and may be asleep. It begins the operation for this thread.
  std::shared_ptr<OperationImpl> operation;
  {
    const std::lock_guard lock(control_mutex_);
    operation = std::move(spare_);
  }
  if (!operation) operation = std::make_shared<OperationImpl>(*this);
  operation->args_ = args;
  operation->done_.store(false, std::memory_order_relaxed);
  {
    const std::lock_guard lock(control_mutex_);
    handed_over_.push_back(operation);
    has_handed_over_.store(true, std::memory_order_release);
  }
  engine_.control_pending.store(true, std::memory_order_release);
  engine_.wake();
  return operation;
}

std::shared_ptr<Operation> TeamImpl::start_in_progress(const OperationArgs& args) {
  take_handed_over();
  drop_finished();
  auto operation = idle_operation();
  operation->args_ = args;
  begin_guarded(*operation);
  return operation;
}

void TeamImpl::take_handed_over() {
  if (!has_handed_over_.load(std::memory_order_acquire)) return;
  std::vector<std::shared_ptr<OperationImpl>> operations;
  {
    const std::lock_guard lock(control_mutex_);
    pool_.reserve(pool_.size() + handed_over_.size());
    operations.swap(handed_over_);
    has_handed_over_.store(false, std::memory_order_relaxed);
  }
  for (auto& operation : operations) {
    if (!std::exchange(operation->pooled_, true)) pool_.push_back(operation);
    begin_guarded(*operation);
  }
  drop_finished();
  // For the next one: else each would leave one more in the pool.
  const std::size_t idle = idle_place();
  if (idle == pool_.size()) return;
  const std::lock_guard lock(control_mutex_);
  if (!spare_) spare_ = pool_[idle];
}

void TeamImpl::begin_guarded(OperationImpl& operation) {
  engine_.guard(*this, [&] { begin(operation); });
  // If it has failed before it was listed, nobody else ends it.
  if (ended_) finish(operation, failure_);
}

/// Of an idle operation in the pool; behind its end if there is none.
std::size_t TeamImpl::idle_place() {
  // The last one is in the caches; with many outstanding requests those after it are idle, and the first ones are not.
  for (std::size_t looked = 0; looked < pool_.size(); ++looked) {
    const std::size_t at = (last_idle_ + looked) % pool_.size();
    auto& operation = pool_[at];
    // Only the pool refers to the operation, and all its completions have arrived.
    if (operation.use_count() != 1 || !operation->done() || operation->posts_in_flight_ != 0) continue;
    // use_count() does not order this after the last reads of the thread that gave up its reference.
    std::atomic_thread_fence(std::memory_order_acquire);
    last_idle_ = at;
    return at;
  }
  return pool_.size();
}

std::shared_ptr<OperationImpl> TeamImpl::idle_operation() {
  const std::size_t at = idle_place();
  if (at == pool_.size()) {
    pool_.push_back(std::make_shared<OperationImpl>(*this));
    pool_.back()->pooled_ = true;
  }
  return pool_[at];
}

std::shared_ptr<const Layout> TeamImpl::layout_for(const OperationArgs& args) {
  const std::size_t element_bytes = size_of(args.type);
  if (const auto& [program, last] = last_layout_;
      last != nullptr && program == args.program && last->count == args.count &&
      last->element_bytes == element_bytes && last->boundaries == args.boundaries)
    return last;
  const LayoutKey key{args.program, args.count, element_bytes, args.boundaries};
  auto found = layouts_.find(key);
  if (found == layouts_.end()) {
    auto made = std::make_shared<Layout>(
        Layout::of(program_of(args.program), args.count, element_bytes, segment_bytes_, args.boundaries));
    made->ports = ports_of(*made);
    const std::size_t steps = made->steps.size();
    if (layouts_.size() == kMaxLayouts || steps_of_layouts_ + steps > kMostStepsOfLayouts) {
      layouts_.clear();
      steps_of_layouts_ = 0;
    }
    steps_of_layouts_ += steps;
    found = layouts_.emplace(key, std::move(made)).first;
  }
  last_layout_ = {args.program, found->second};
  return found->second;
}

PortSet TeamImpl::ports_of(const Layout& layout) const {
  PortSet ports;
  for (std::size_t c = 0; c < in_.size(); ++c) {
    if (layout.in_totals[c] > 0) ports.add(in_[c].connection->port->index);
  }
  for (std::size_t c = 0; c < out_.size(); ++c) {
    if (layout.out_totals[c] > 0) ports.add(out_[c].connection->port->index);
  }
  return ports;
}

const CompiledProgram& TeamImpl::program_of(std::int32_t index) {
  CompiledProgram& compiled = programs_[static_cast<std::size_t>(index)];
  if (!compiled.program) {
    const Config::RankPlan& plan = config_.plans[static_cast<std::size_t>(index)];
    compiled = CompiledProgram::of(plan.shape, std::make_shared<const Program>(plan.program()), channels_);
  }
  return compiled;
}

void TeamImpl::take_new_programs() {
  if (!has_new_programs_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(control_mutex_);
  std::move(new_programs_.begin(), new_programs_.end(), std::back_inserter(programs_));
  new_programs_.clear();
  has_new_programs_.store(false, std::memory_order_relaxed);
}

void TeamImpl::begin(OperationImpl& operation) {
  take_new_programs();
  const OperationArgs& args = operation.args_;
  operation.done_.store(false, std::memory_order_relaxed);
  operation.status_ = {};
  operation.sequence_ = next_sequence_++;
  operation.begin_ns_ = now_if_traced();
  operation.posts_in_flight_ = 0;
  operation.mismatched_ = false;
  operation.early_.clear();
  operation.work_.clear();
  if (ended_) {
    operation.status_ = failure_;
    operation.done_.store(true, std::memory_order_release);
    return;
  }
  operation.program_ = &program_of(args.program);
  operation.layout_ = layout_for(args);
  const Layout& layout = *operation.layout_;
  const std::size_t num_steps = layout.steps.size();
  operation.steps_left_ = layout.live_steps;
  operation.steps_.assign(num_steps, {});
  const std::size_t scratch_bytes =
      config_.phantom ? 0 : static_cast<std::size_t>(layout.scratch_elements) * layout.element_bytes;
  if (operation.scratch_.size() < scratch_bytes) operation.scratch_.resize(scratch_bytes);
  operation.in_base_ = next_base_;
  for (std::size_t c = 0; c < next_base_.size(); ++c) next_base_[c] += layout.in_totals[c];
  if (!config_.phantom) {
    hold_memory(operation);
    give_grants(operation);
  }
  if (in_flight_.empty()) used_ports_ = {};
  used_ports_.add(layout.ports);
  in_flight_.push_back(&operation);
  if (has_lost_connection_ || !port_down_.ok()) [[unlikely]]
    report_losses();
  operation.out_cursor_.assign(out_.size(), 0);
  for (std::size_t c = 0; c < out_.size(); ++c) {
    if (layout.out_totals[c] == 0) continue;
    std::int32_t& cursor = operation.out_cursor_[c];
    while (layout.steps[static_cast<std::size_t>(operation.program_->send_of(c, cursor))].segments == 0)
      ++cursor;
    out_[c].operations.push_back(&operation);
  }
  list_active();
  if (early_arrivals_ > 0) take_early_arrivals(operation);
  for (std::size_t id = 0; id < num_steps; ++id) {
    if (layout.steps[id].elements > 0) list_for_work(operation, static_cast<StepId>(id));
  }
  if (operation.steps_left_ == 0) finish(operation, {});
}

void TeamImpl::list_active() {
  if (listed_) return;
  listed_ = true;
  engine_.active.push_back(this);
}

void TeamImpl::list_for_work(OperationImpl& operation, StepId step) {
  StepState& state = operation.steps_[step];
  if (state.listed) return;
  state.listed = true;
  operation.work_.push_back(step);
  if (std::exchange(operation.has_work_, true)) return;
  with_work_.push_back(&operation);
}

void TeamImpl::list_dependents(OperationImpl& operation, StepId step) {
  for (const StepId dependent : operation.program_->dependents_of(step)) {
    if (operation.layout_->steps[dependent].elements > 0) {
      list_for_work(operation, dependent);
    }
  }
}

// ---- Progress ------------------------------------------------------------------------------------------

bool TeamImpl::advance() {
  bool moved = false;
  for (bool again = true; again;) {
    again = false;
    // Both lists grow during the loops: a finished step lists its dependents.
    for (std::size_t i = 0; i < with_work_.size(); ++i) {
      OperationImpl& operation = *with_work_[i];
      for (std::size_t w = 0; w < operation.work_.size() && !operation.done(); ++w) {
        const StepId step = operation.work_[w];
        operation.steps_[step].listed = false;
        if (operation.program_->program->steps[step].op == StepOp::kSend) {
          offer_segment(operation, step);
        } else {
          again |= run_local(operation, step);
        }
      }
      operation.work_.clear();
      operation.has_work_ = false;
    }
    with_work_.clear();
    for (auto& port : engine_.ports) again |= engine_.drain(*port);
    drop_finished();
    moved |= again;
  }
  moved |= return_credits();
  // All messages of a rank that left arrived before the news that it left, but perhaps after our last poll.
  if (any_left_ && !moved && engine_.quiet) check_left_peers();
  return moved;
}

bool TeamImpl::dependencies_met(const OperationImpl& operation, StepId id, std::int32_t segment) const {
  const Layout& layout = *operation.layout_;
  const Layout::StepLayout& at = layout.steps[id];
  const std::int64_t begin = at.first + segment * layout.segment_elements;
  const std::int64_t end = std::min(begin + layout.segment_elements, at.first + at.elements);
  for (std::int32_t d = layout.first_dep[id]; d < layout.first_dep[id + 1]; ++d) {
    const Layout::Dependency& dep = layout.deps[d];
    const Layout::StepLayout& before = layout.steps[dep.step];
    if (before.elements == 0) continue;
    const std::int32_t finished = operation.steps_[dep.step].finished;
    if (finished == before.segments) continue;
    if (dep.whole) return false;
    const std::int64_t before_end = before.first + before.elements;
    if (begin >= before_end || end <= before.first) continue;
    if (before.first + finished * layout.segment_elements < std::min(end, before_end)) return false;
  }
  return true;
}

bool TeamImpl::run_local(OperationImpl& operation, StepId id) {
  const Layout& layout = *operation.layout_;
  const Program& program = *operation.program_->program;
  const Step& step = program.steps[id];
  const Layout::StepLayout& at = layout.steps[id];
  StepState& state = operation.steps_[id];
  const std::int32_t last_source = step.first_source + step.num_sources;
  bool moved = false;
  while (!operation.mismatched_ && state.next < at.segments && dependencies_met(operation, id, state.next)) {
    const std::int64_t offset = state.next * layout.segment_elements;
    const auto elements = static_cast<std::size_t>(std::min(layout.segment_elements, at.elements - offset));
    operands_.clear();
    bool direct = false;
    for (std::int32_t s = step.first_source; s < last_source; ++s) {
      const Source& source = program.sources[s];
      if (source.kind == Source::Kind::kLocal) {
        operands_.push_back(local_source(operation, source.local, layout.source_first[s] + offset));
        continue;
      }
      const std::int32_t c = operation.program_->in_channel[s];
      const InChannel& channel = in_[c];
      const std::uint64_t number =
          operation.in_base_[c] + layout.first_message[s] + static_cast<std::uint64_t>(state.next);
      if (!channel.arrived(number)) {
        if (trace_sink_ != nullptr) {
          if (state.waiting_since_ns == 0) state.waiting_since_ns = now_if_traced();
          state.waiting_source = s;
        }
        return moved;
      }
      direct |= is_direct(operation, channel, number);
      operands_.push_back(config_.phantom ? nullptr : payload(channel, number));
    }
    if (state.waiting_since_ns != 0) {
      const Source& source = program.sources[state.waiting_source];
      trace(TraceEvent::Kind::kWait, operation, id, state.next, source.peer, source.rail,
            static_cast<std::int64_t>(elements * layout.element_bytes), state.waiting_since_ns);
      state.waiting_since_ns = 0;
    }
    const std::int64_t begin_ns = now_if_traced();
    if (operation.args_.out != nullptr) {
      std::byte* dst = destination(operation, step.dst, at.first + offset);
      if (step.op == StepOp::kReduce) {
        // A step may reduce only a part of the contributions; finish() turns sums into averages.
        reduce::fold(operation.args_.type, reduce::partial(operation.args_.op), dst, operands_, elements);
      } else if (!direct && dst != operands_[0]) {
        std::memcpy(dst, operands_[0], elements * layout.element_bytes);
      }
    }
    if (trace_sink_ != nullptr) {
      trace(TraceEvent::Kind::kReduce, operation, id, state.next, -1, kNoRail,
            static_cast<std::int64_t>(elements * layout.element_bytes), begin_ns);
    }
    for (std::int32_t s = step.first_source; s < last_source; ++s) {
      const std::int32_t c = operation.program_->in_channel[s];
      if (c < 0) continue;
      consume(c, operation.in_base_[c] + layout.first_message[s] + static_cast<std::uint64_t>(state.next));
    }
    ++state.next;
    finish_segment(operation, id);
    moved = true;
  }
  return moved;
}

void TeamImpl::finish_segment(OperationImpl& operation, StepId step) {
  StepState& state = operation.steps_[step];
  ++state.finished;
  list_dependents(operation, step);
  if (state.finished == operation.layout_->steps[step].segments && --operation.steps_left_ == 0) {
    finish(operation, {});
  }
}

void TeamImpl::finish(OperationImpl& operation, const Status& status) {
  if (operation.done()) return;
  operation.status_ = kept(status);
  // For an average, every rank divides the sum itself; the caller divides sections when it extracts them.
  // Sums are bitwise equal on all ranks, and so are the quotients, with every plan. All steps are done, so no
  // peer reads or writes the output any more.
  const OperationArgs& args = operation.args_;
  const bool has_result =
      args.collective == Collective::kAllreduce ||
      (args.collective == Collective::kReduce && args.detail == static_cast<std::uint32_t>(config_.rank));
  if (status.ok() && args.op == ReduceOp::kAvg && args.out != nullptr && has_result) {
    reduce::divide(args.type, args.out, args.count, static_cast<std::size_t>(config_.size));
  }
  trace(TraceEvent::Kind::kOperation, operation, -1, -1, -1, kNoRail,
        static_cast<std::int64_t>(operation.args_.count * size_of(operation.args_.type)),
        operation.begin_ns_);
  operation.temporary_registration_.end();
  if (!status.ok()) revoke_grants(operation);
  drop_memory(operation);  // before done(): a user who sees done() may deregister the memory
  any_finished_ = true;
  engine_.completed_some = true;
  operation.done_.store(true, std::memory_order_release);
}

void TeamImpl::drop_finished() {
  if (!any_finished_) return;
  any_finished_ = false;
  std::erase_if(in_flight_, [](const OperationImpl* operation) { return operation->done(); });
  if (in_flight_.empty()) used_ports_ = PortSet::all();
}

const std::byte* TeamImpl::local_source(const OperationImpl& operation, const BufferRange& range,
                                        std::int64_t first) const {
  const OperationArgs& args = operation.args_;
  if (args.out == nullptr) return nullptr;
  const std::byte* base = range.buffer == Buffer::kInput    ? args.in
                          : range.buffer == Buffer::kOutput ? args.out
                                                            : operation.scratch_.data();
  return base + static_cast<std::size_t>(first) * operation.layout_->element_bytes;
}

std::byte* TeamImpl::destination(OperationImpl& operation, const BufferRange& range,
                                 std::int64_t first) const {
  std::byte* base = range.buffer == Buffer::kScratch ? operation.scratch_.data() : operation.args_.out;
  return base + static_cast<std::size_t>(first) * operation.layout_->element_bytes;
}

// ---- Receiving -----------------------------------------------------------------------------------------

void TeamImpl::on_arrival(std::int32_t c, std::int32_t slot) {
  InChannel& channel = in_[c];
  if (channel.slots[slot] != InChannel::Slot::kEmpty) return;
  const std::uint64_t number = channel.number_of(slot);
  channel.slots[slot] = InChannel::Slot::kArrived;
  if (channel.back >= 0) take_carried_credits(channel, number);
  OperationImpl* const operation = receiver_of(c, number);
  if (operation == nullptr) {
    ++early_arrivals_;
  } else if (verify(*operation, c, number)) {
    list_for_work(*operation, receive_of(*operation, c, number).step);
  }
}

OperationImpl* TeamImpl::receiver_of(std::int32_t c, std::uint64_t number) const {
  // Numbers continue from call to call. Find the last operation that begins at or before `number`, if any.
  const auto after = std::ranges::upper_bound(
      in_flight_, number, {}, [c](const OperationImpl* operation) { return operation->in_base_[c]; });
  if (after == in_flight_.begin()) return nullptr;
  OperationImpl* const operation = *(after - 1);
  return number < operation->in_base_[c] + operation->layout_->in_totals[c] ? operation : nullptr;
}

void TeamImpl::take_carried_credits(const InChannel& channel, std::uint64_t number) {
  WireHeader header;
  std::memcpy(&header, payload(channel, number) - sizeof(WireHeader), sizeof(header));
  // verify() reports messages of another communicator; it needs the operation.
  if (header.magic != kWireMagic || header.communicator != static_cast<std::uint32_t>(config_.id)) return;
  if (header.credits > 0) on_credits(channel.back, header.credits);
}

Receive TeamImpl::receive_of(const OperationImpl& operation, std::int32_t c, std::uint64_t number) const {
  const auto receives = operation.program_->receives_of(static_cast<std::size_t>(c));
  const auto relative = static_cast<std::uint32_t>(number - operation.in_base_[c]);
  const auto& first_message = operation.layout_->first_message;
  // Find the last message that starts at or before the number; empty messages before it have the same start.
  const auto after = std::upper_bound(
      receives.begin(), receives.end(), relative,
      [&](std::uint32_t value, const Receive& receive) { return value < first_message[receive.source]; });
  return *std::prev(after);
}

void TeamImpl::take_early_arrivals(OperationImpl& operation) {
  const Layout& layout = *operation.layout_;
  for (std::size_t c = 0; c < in_.size(); ++c) {
    if (layout.in_totals[c] == 0) continue;
    const InChannel& channel = in_[c];
    const std::uint64_t base = operation.in_base_[c];
    const std::uint64_t end = std::min(base + layout.in_totals[c], channel.released + channel.slots.size());
    for (std::uint64_t number = std::max(base, channel.released); number < end; ++number) {
      if (!channel.arrived(number)) continue;
      --early_arrivals_;
      verify(operation, static_cast<std::int32_t>(c), number);
    }
  }
}

const std::byte* TeamImpl::payload(const InChannel& channel, std::uint64_t number) const {
  return channel.staging + number % channel.slots.size() * slot_stride_ + sizeof(WireHeader);
}

void TeamImpl::consume(std::int32_t c, std::uint64_t number) {
  InChannel& channel = in_[c];
  const std::size_t credits = channel.slots.size();
  channel.slots[number % credits] = InChannel::Slot::kConsumed;
  // Slots are released in order, so that a number of credits identifies the slots.
  while (channel.slots[channel.released % credits] == InChannel::Slot::kConsumed) {
    channel.slots[channel.released % credits] = InChannel::Slot::kEmpty;
    ++channel.released;
    ++channel.to_return;
  }
  // Return half of the credits at a time: this saves notifications and never stalls the sender.
  if (channel.to_return * 2 >= credits && !channel.listed) {
    channel.listed = true;
    credit_list_.push_back(c);
    list_active();
  }
}

bool TeamImpl::return_credits() {
  if (credit_list_.empty()) return false;
  // Segments may have carried some of the credits in the meantime, or the connection may be lost.
  std::erase_if(credit_list_, [this](std::int32_t c) {
    if (in_[c].to_return == 0 || !in_[c].connection->is_usable()) in_[c].listed = false;
    return !in_[c].listed;
  });
  bool moved = false;
  std::size_t kept = 0;
  // Consecutive channels of one port are posted together.
  std::array<transport::WorkRequest, EnginePort::kBatch> requests;
  for (std::size_t begin = 0; begin < credit_list_.size();) {
    EnginePort& port = *in_[credit_list_[begin]].port;
    std::size_t count = 0;
    while (begin + count < credit_list_.size() && count < requests.size()) {
      const InChannel& channel = in_[credit_list_[begin + count]];
      if (channel.port != &port) break;
      transport::WorkRequest& request = requests[count++];
      request = {};
      request.verb = transport::Verb::kPutNotify;
      request.peer = channel.peer;
      request.token = channel.credit_token | channel.to_return;
      request.signalled = false;
    }
    const std::size_t taken = port.transport->post({requests.data(), count});
    for (std::size_t i = begin; i < begin + count; ++i) {
      InChannel& channel = in_[credit_list_[i]];
      if (i >= begin + taken) {
        credit_list_[kept++] = credit_list_[i];
        continue;
      }
      channel.to_return = 0;
      channel.listed = false;
      moved = true;
    }
    begin += count;
  }
  credit_list_.resize(kept);
  return moved;
}

void TeamImpl::on_credits(std::int32_t c, std::uint32_t credits) {
  out_[c].credits += credits;
  list_head(c);
}

// ---- Tracing -------------------------------------------------------------------------------------------

std::int64_t TeamImpl::now_if_traced() const {
  return trace_sink_ == nullptr ? 0 : engine_.clock->now_ns();
}

void TeamImpl::trace(TraceEvent::Kind kind, const OperationImpl& operation, StepId id, std::int32_t segment,
                     Rank peer, Rail rail, std::int64_t bytes, std::int64_t begin_ns) const {
  if (trace_sink_ == nullptr) return;
  TraceEvent event;
  event.kind = kind;
  event.begin_ns = begin_ns;
  event.end_ns = engine_.clock->now_ns();
  event.communicator = config_.id;
  event.sequence = operation.sequence_;
  if (id >= 0) {
    const Step& step = operation.program_->program->steps[id];
    event.lane = step.lane;
    event.stage = step.stage;
    event.round = step.round;
    event.level = step.level;
  }
  event.rail = rail;
  event.peer = peer;
  event.segment = segment;
  event.bytes = bytes;
  trace_sink_->record(event);
}

}  // namespace hips::exec
