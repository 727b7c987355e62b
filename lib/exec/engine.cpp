#include "lib/exec/engine.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <system_error>

#include <fmt/format.h>

#include "lib/base/wait/wait_clock.hpp"
#include "lib/base/wait/waiter.hpp"
#include "lib/exec/engine_impl.hpp"

namespace hips::exec {

EngineImpl::EngineImpl(Engine::Options given) : options(given) {
  clock = options.clock != nullptr ? options.clock : &SystemClock::instance();
  if (!options.waits) options.waits = std::make_shared<WaitPolicy>(SpinLimits::of(1, 1));
  trace = options.trace;
  wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd < 0) {
    const int error = errno;
    start_error = Status::error(Code::kSystem,
                                fmt::format("cannot create an eventfd: {}; see \"ulimit -n\"",
                                            std::generic_category().message(error)),
                                Scope::kProcess);
    start_error.sys_errno = error;
  }
  MemoryRegistry::process().add_listener(this);
}

EngineImpl::~EngineImpl() {
  MemoryRegistry::process().remove_listener(this);
  // A connection sends what it can when it closes, from memory that goes before the transports do.
  for (auto& port : ports)
    for (auto& [peer, connection] : port->connections)
      if (connection != nullptr && connection->state != Connection::State::kClosed)
        port->transport->close(peer);
  if (wake_fd >= 0) ::close(wake_fd);
}

void EngineImpl::lock() {
  if (try_lock()) return;
  waiters.fetch_add(1, std::memory_order_seq_cst);
  lockers.fetch_add(1, std::memory_order_seq_cst);
  wake();
  std::unique_lock waiting(mutex);
  changed.wait(waiting, [&] { return try_lock(); });
  lockers.fetch_sub(1, std::memory_order_seq_cst);
  waiters.fetch_sub(1, std::memory_order_seq_cst);
}

void EngineImpl::unlock() {
  completed_some = false;  // before other threads can own progress
  owned.store(false, std::memory_order_seq_cst);
  tell_waiters();
}

void EngineImpl::tell_waiters() {
  if (waiters.load(std::memory_order_seq_cst) == 0) return;
  // Taking the lock orders this after the waiter's last check, so the waiter cannot miss the notification.
  { const std::lock_guard lock(mutex); }
  changed.notify_all();
}

void EngineImpl::wake() const {
  const std::uint64_t one = 1;
  // If the counter is full, the sleeper has been woken already.
  if (wake_fd >= 0) (void)!::write(wake_fd, &one, sizeof(one));
}

EnginePort* EngineImpl::port_of(transport::Transport* transport) {
  for (auto& port : ports) {
    if (port->transport.get() == transport) return port.get();
  }
  return nullptr;
}

std::uint32_t EngineImpl::add_posted(const Posted& record) {
  if (free_posted.empty()) {
    if (posted.size() == posted.capacity()) {
      // release() then throws nothing.
      free_posted.reserve(2 * posted.size() + 64);
      posted.reserve(2 * posted.size() + 64);
    }
    posted.push_back(record);
    return static_cast<std::uint32_t>(posted.size() - 1);
  }
  const std::uint32_t index = free_posted.back();
  free_posted.pop_back();
  posted[index] = record;
  return index;
}

void EngineImpl::complete(std::uint32_t index) {
  if (index >= posted.size()) return;
  const Posted record = posted[index];
  release(index);
  if (record.team != nullptr) guard(*record.team, [&] { record.team->on_completion(record); });
}

void EngineImpl::release(std::uint32_t index) {
  const Posted& record = posted[index];
  if (record.port == nullptr) return;
  record.port->posted_bytes -= record.bytes;
  if (record.memory != nullptr) user_regions.posted_done(*record.memory);
  if (!still_read.empty()) [[unlikely]]
    still_read.erase(index);
  posted[index] = {};
  free_posted.push_back(index);
}

void EngineImpl::range_removed(std::uint64_t range) {
  {
    const std::lock_guard lock(removed_ranges_mutex);
    removed_ranges.push_back(range);
  }
  // The thread that drives progress processes the range in its next round. This thread does not wait for it:
  // it may be that thread itself, in a callback of a wait.
  control_pending.store(true, std::memory_order_release);
  const std::unique_lock driving(*this, std::try_to_lock);
  if (driving) take_removed_ranges();
}

void EngineImpl::take_removed_ranges() {
  std::vector<std::uint64_t> ranges;
  {
    const std::lock_guard lock(removed_ranges_mutex);
    ranges.swap(removed_ranges);
  }
  for (const std::uint64_t range : ranges) user_regions.forget(range);
}

void EngineImpl::dispatch(EnginePort& port, const transport::Event& event) {
  using Kind = transport::Event::Kind;
  switch (event.kind) {
    case Kind::kArrival: {
      const SlotToken token = SlotToken::unpack(event.token);
      SlotTable::Entry* entry = slots.find(token);
      if (entry == nullptr) return;  // of a team that is gone
      guard(*entry->team, [&] {
        if (entry->index == SlotTable::kGrant) {
          entry->team->on_grant(entry->channel);
        } else if (entry->index == SlotTable::kCredits) {
          entry->team->on_credits(entry->channel, token.credits);
        } else {
          entry->team->on_arrival(entry->channel, entry->index);
        }
      });
      return;
    }
    case Kind::kCompletion:
      complete(static_cast<std::uint32_t>(event.context));
      return;
    case Kind::kPeerDead:
      if (const auto lost = port.connections.find(event.peer);
          lost != port.connections.end() && lost->second != nullptr)
        lose(*lost->second, event.error);
      return;
    case Kind::kPortDown:
      port.down = kept(event.error);
      for (EngineTeam* team : teams) guard(*team, [&] { team->on_port(port); });
      return;
    case Kind::kPortUp:
      port.down = {};
      for (EngineTeam* team : teams) guard(*team, [&] { team->on_port(port); });
      return;
  }
}

bool EngineImpl::drain(EnginePort& port) {
  bool moved = false;
  if (port.refused) {
    moved = flush(port) > 0;
    if (port.num_batched > 0) return moved;
  }
  while (!port.queue.empty() && port.posted_bytes < kMaxPostedBytes) {
    // Grants alone may have filled the batch.
    if (port.num_batched >= port.batch_limit) (void)flush(port);
    if (port.num_batched >= port.batch_limit) return moved;
    const ReadySegment ready = port.queue.front();
    port.queue.pop();
    bool batched = false;
    guard(*ready.team, [&] { batched = ready.team->batch_segment(port, ready); });
    if (!batched) continue;
    moved = true;
    if (port.num_batched < port.batch_limit) continue;
    (void)flush(port);
    if (port.num_batched > 0) return true;
  }
  if (port.num_batched > 0) (void)flush(port);
  return moved;
}

std::size_t EngineImpl::flush(EnginePort& port) {
  const std::size_t given = port.num_batched;
  const std::size_t taken = port.transport->post({port.batch.data(), given});
  const auto drop_taken = [&] {
    port.remove_batched_if([&](std::size_t i) { return i < taken; });
    port.refused = port.num_batched > 0;
  };
  if (!port.transport->query().completes_on_post) {
    drop_taken();
    const std::size_t count = port.transport->poll_completions(completions);
    for (std::size_t i = 0; i < count; ++i) dispatch(port, completions[i]);
    dispatched_completions |= count > 0;
    return taken;
  }
  std::array<Posted, EnginePort::kBatch + 1> done;
  std::copy_n(port.batched.begin(), taken, done.begin());
  drop_taken();
  // Completions are handled last, because they may offer further segments.
  for (std::size_t i = 0; i < taken; ++i) {
    if (done[i].kind == Posted::Kind::kPayload) continue;
    guard(*done[i].team, [&] { done[i].team->on_completion(done[i]); });
  }
  return taken;
}

void EngineImpl::drop_batched(const EngineTeam* team) {
  for (auto& port : ports) {
    port->remove_batched_if([&](std::size_t i) {
      const Posted& record = port->batched[i];
      if (record.team != team) return false;
      if (record.kind == Posted::Kind::kPayload) return true;
      if (record.operation != nullptr) record.team->on_lost(record);
      if (port->transport->query().completes_on_post) return true;
      const auto index = static_cast<std::uint32_t>(port->batch[i].context);
      // The payload was posted without a completion of its own, so nobody reports when it has been read. The
      // memory therefore stays registered until the engine ends.
      if (i == 0 && record.kind == Posted::Kind::kHeader) posted[index].memory = nullptr;
      release(index);
      return true;
    });
  }
}

bool EngineImpl::poll_ports() {
  // What a client waits for is in memory, or an operation of a team.
  PortSet used = clients.empty() && active.empty() ? PortSet::all() : PortSet{};
  for (const EngineTeam* team : active) used.add(team->used_ports());
  used.add(std::exchange(woken, {}));
  if (rounds++ % kRoundsPerSweep == 0) used = PortSet::all();
  bool moved = false, all = true;
  for (auto& port : ports) {
    if (!used.has(port->index)) {
      all = false;
      continue;
    }
    const std::size_t count = port->transport->poll(events);
    for (std::size_t i = 0; i < count; ++i) dispatch(*port, events[i]);
    moved |= count > 0;
  }
  quiet = all && !moved;
  return moved;
}

bool EngineImpl::progress() {
  bool moved = poll_ports();
  if (control_pending.load(std::memory_order_relaxed) &&
      control_pending.exchange(false, std::memory_order_acquire)) {
    try {
      take_removed_ranges();
      take_new_clients();
    } catch (...) {
      control_pending.store(true, std::memory_order_release);  // the teams have not seen it
      throw;
    }
    for (EngineTeam* team : teams) guard(*team, [&] { team->on_control(); });
    quiet = false;
    moved = true;
  }
  // A team may leave the list while it advances, so the loop uses indices.
  for (std::size_t i = 0; i < active.size(); ++i) {
    EngineTeam* team = active[i];
    guard(*team, [&] { moved |= team->advance(); });
    if (!team->busy()) {
      team->set_listed(false);
      active[i--] = active.back();
      active.pop_back();
    }
  }
  moved |= std::exchange(dispatched_completions, false);
  if (!clients.empty()) moved |= advance_clients();
  if (completed_some) {
    completed_some = false;
    // A waiter counts itself before it looks whether its operation is done; this is the same in the other order.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    tell_waiters();
  }
  return moved;
}

bool EngineImpl::advance_clients() {
  bool moved = false;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    EngineClient* client = clients[i];
    moved |= client->advance();
    if (!client->busy()) {
      clients[i--] = clients.back();
      clients.pop_back();
    }
  }
  // Another waiting thread may wait for what a client has just completed.
  completed_some |= moved;
  return moved;
}

void EngineImpl::activate(EngineClient& client) {
  if (std::ranges::find(clients, &client) == clients.end()) clients.push_back(&client);
}

void EngineImpl::take_new_clients() {
  const std::lock_guard lock(new_clients_mutex);
  for (EngineClient* client : new_clients) activate(*client);
  new_clients.clear();
}

void EngineImpl::sleep(std::int64_t timeout_ns) {
  std::size_t armed = 0;
  bool ready = false, stays_readable = true;
  sleeping_on.assign(1, {wake_fd, POLLIN, 0});
  for (; armed < ports.size() && !ready; ++armed) {
    const transport::Armed answer = ports[armed]->transport->arm();
    ready = answer.ready;
    stays_readable = stays_readable && answer.stays_readable;
    sleeping_on.push_back({answer.fd, POLLIN, 0});  // ppoll() passes over -1
  }
  armed_clients.clear();
  for (std::size_t i = 0; i < clients.size() && !ready; ++i) {
    armed_clients.push_back(clients[i]);
    if (const int fd = clients[i]->arm(); fd >= 0) sleeping_on.push_back({fd, POLLIN, 0});
  }
  rounds = 0;  // the next round polls every port
  // News between the last poll and arm() may have caused no wake-up: poll once more before sleeping.
  const bool nothing_new =
      stays_readable && armed_clients.empty() && !control_pending.load(std::memory_order_relaxed);
  if (!ready && (nothing_new || !progress())) {
    const timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
    (void)::ppoll(sleeping_on.data(), sleeping_on.size(), &timeout, nullptr);
    // What ended the sleep is polled next, and every port if nothing did.
    rounds = 0;
    for (std::size_t i = 0; i < armed; ++i)
      if (sleeping_on[1 + i].revents != 0) woken.add(i);
    if (!woken.empty()) rounds = 1;
  }
  for (std::size_t i = 0; i < armed; ++i) ports[i]->transport->disarm();
  for (EngineClient* client : armed_clients) client->disarm();
  if ((sleeping_on[0].revents & POLLIN) != 0) {
    std::uint64_t drained = 0;
    (void)!::read(wake_fd, &drained, sizeof(drained));
  }
}

Engine::Engine(Options options) : impl_(std::make_unique<EngineImpl>(options)) {}
Engine::~Engine() = default;

transport::Transport* Engine::add_transport(std::unique_ptr<transport::Transport> transport) {
  auto port = std::make_unique<EnginePort>();
  port->transport = std::move(transport);
  // If a request completes when it is posted, a batch saves no doorbell, and later segments can follow
  // immediately.
  if (port->transport->query().completes_on_post) port->batch_limit = 1;
  transport::Transport* added = port->transport.get();
  const std::lock_guard driving(*impl_);
  port->index = impl_->ports.size();
  if (added->query().polls_by_system_call) impl_->wait_kind = WaitKind::kSystemCalls;
  impl_->ports.push_back(std::move(port));
  return added;
}

transport::PeerId Engine::peer_for(std::uint64_t uid_high, std::uint64_t uid_low, std::uint32_t port) {
  const std::lock_guard driving(*impl_);
  const auto next = static_cast<transport::PeerId>(impl_->peers.size());
  return impl_->peers.emplace(std::tuple(uid_high, uid_low, port), next).first->second;
}

bool Engine::progress() {
  const std::lock_guard driving(*impl_);
  return impl_->progress();
}

void Engine::try_progress() {
  if (impl_->lockers.load(std::memory_order_relaxed) > 0) return;
  const std::unique_lock driving(*impl_, std::try_to_lock);
  if (driving) (void)impl_->progress();
}

bool Engine::while_still(const std::function<void()>& visit) {
  const std::unique_lock driving(*impl_, std::try_to_lock);
  if (driving) visit();
  return driving.owns_lock();
}

void Engine::activate(EngineClient& client) {
  if (const std::unique_lock driving(*impl_, std::try_to_lock); driving) {
    impl_->activate(client);
    (void)impl_->advance_clients();
    return;
  }
  // Another thread drives progress and may be asleep.
  {
    const std::lock_guard lock(impl_->new_clients_mutex);
    impl_->new_clients.push_back(&client);
  }
  impl_->control_pending.store(true, std::memory_order_release);
  impl_->wake();
}

void Engine::remove(EngineClient& client) {
  const std::lock_guard driving(*impl_);
  std::erase(impl_->clients, &client);
  const std::lock_guard lock(impl_->new_clients_mutex);
  std::erase(impl_->new_clients, &client);
}

Status Engine::wait(Waitable& awaited, const WaitOptions& options) {
  EngineImpl& impl = *impl_;
  WaitClock time(options, *impl.clock);
  bool hand_on = false;  // another thread waits too, and has ticks of its own
  const auto timed_out = [&] {
    return Status::error(Code::kTimeout, "the deadline passed; missing: " + awaited.waiting_text());
  };

  // A thread in lock() takes precedence over threads that only wait. Without this, the waiting thread would
  // immediately take progress again.
  const auto steps_back = [&] { return impl.lockers.load(std::memory_order_seq_cst) > 0; };

  while (!awaited.done()) {
    std::unique_lock driving(impl, std::defer_lock);
    if (steps_back() || !driving.try_lock()) {
      // Another thread drives progress, or is about to. It notifies this thread when operations end and when
      // it stops driving progress.
      impl.waiters.fetch_add(1, std::memory_order_seq_cst);
      {
        std::unique_lock lock(impl.mutex);
        if (!awaited.done() && (impl.owned.load(std::memory_order_seq_cst) || steps_back())) {
          // In real time, like the owner's ppoll. A clock that is injected decides the deadline alone: it is
          // looked at again after a tick at the latest.
          impl.changed.wait_for(lock, std::chrono::nanoseconds(time.sleep_ns()));
        }
      }
      impl.waiters.fetch_sub(1, std::memory_order_seq_cst);
      if (!awaited.done() && impl.clock->now_ns() >= options.deadline_ns) {
        driving.lock();
        return timed_out();
      }
      continue;
    }
    for (Waiter waiter(*impl.options.waits, impl.wait_kind, *impl.clock);
         !awaited.done() && !hand_on && !steps_back();) {
      if (impl.progress()) {
        waiter.moved();
        continue;
      }
      if (waiter.stay_awake()) {
        if (!waiter.time_to_look(time.polls_per_look())) continue;
      } else if (!awaited.done()) {
        impl.sleep(time.sleep_ns());
      }
      if (awaited.done()) break;
      if (time.look()) {
        hand_on = impl.waiters.load(std::memory_order_relaxed) > 0;
        // What is called may use the engine: create and free communicators.
        driving.unlock();
        time.tick();
        if (!driving.try_lock()) break;
      }
      if (time.late()) return timed_out();
    }
    if (driving.owns_lock()) driving.unlock();
    if (hand_on) sched_yield();
    hand_on = false;
  }
  return awaited.status();
}

void Engine::wake() {
  impl_->wake();
}
Status Engine::status() const {
  return impl_->start_error;
}
Clock& Engine::clock() const {
  return *impl_->clock;
}
TraceSink* Engine::trace() const {
  return impl_->trace;
}

}  // namespace hips::exec
