#include "lib/comm/control/control.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <new>
#include <system_error>

#include <fmt/format.h>

#include "lib/comm/control/control_impl.hpp"
#include "lib/comm/setup/interfaces.hpp"

namespace hips::comm {
namespace {

constexpr auto kShutdownWait = std::chrono::seconds(1);
/// How long the thread waits after it ran out of memory.
constexpr auto kMemoryWait = std::chrono::milliseconds(10);

}  // namespace

Control::Control(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Control::~Control() {
  impl_->shutdown();
}
Result<ControlAddress> Control::listen(Reach reach) {
  return impl_->listen(reach);
}
void Control::join(GroupConfig config) {
  impl_->join(std::move(config));
}
void Control::derive(DerivedConfig config) {
  impl_->derive(std::move(config));
}
void Control::leave(std::uint64_t id) {
  impl_->leave(id);
}
void Control::report(std::uint64_t id, const Status& status) {
  impl_->report(id, status);
}
void Control::suspect(std::uint64_t id, Rank rank, const Status& status) {
  impl_->suspect(id, rank, status);
}
void Control::query(std::uint64_t id, Rank rank, std::uint64_t call_index) {
  impl_->query(id, rank, call_index);
}
Result<std::vector<std::optional<Blob>>> Control::gather(std::uint64_t id, std::uint64_t round,
                                                         std::span<const std::byte> mine,
                                                         std::int64_t timeout_ns,
                                                         const std::function<void()>& tick) {
  return impl_->gather(id, round, mine, timeout_ns, tick);
}
void Control::shutdown() {
  impl_->shutdown();
}
void Control::before_fork() {
  impl_->before_fork();
}
void Control::after_fork_in_parent() {
  impl_->after_fork_in_parent();
}
void Control::after_fork_in_child() {
  impl_->after_fork_in_child();
}

Result<std::unique_ptr<Control>> Control::create(Options options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  if (Status status = impl->start(); !status.ok()) return fail(std::move(status));
  return std::unique_ptr<Control>(new Control(std::move(impl)));
}

Control::Impl::~Impl() {
  shutdown();
}

Status Control::Impl::start() {
  wake_fd_ = UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake_fd_.valid()) {
    Status status = Status::error(
        Code::kSystem, fmt::format("cannot create an eventfd: {}", std::generic_category().message(errno)));
    status.sys_errno = errno;
    return status;
  }
  // Signals must be delivered to threads of the program, never to this one.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    return Status::error(Code::kSystem, fmt::format("cannot start the control thread: {}", error.what()));
  }
  pthread_setname_np(thread_.native_handle(), "hips-control");
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return Status::success();
}

Result<ControlAddress> Control::Impl::listen(Reach reach) {
  const std::lock_guard lock(mutex_);
  if (const auto known = listeners_.find(reach); known != listeners_.end()) return known->second.second;
  ControlAddress bound;
  Result<UniqueFd> fd = UniqueFd();
  if (reach == Reach::kNode) {
    bound.hosts = {"127.0.0.1"};
    fd = listen_tcp(any_address(AF_INET, INADDR_LOOPBACK));
  } else {
    // Only the peer can find out which of our addresses it reaches, so publish all of them.
    const auto networks = local_networks();
    if (!networks) return fail(networks.error());
    for (const LocalNetwork& network : *networks) bound.hosts.push_back(host_of(network.address));
    fd = listen_tcp(any_address(AF_INET6));
    if (!fd) fd = listen_tcp(any_address(AF_INET));  // a kernel without IPv6
  }
  if (!fd) return fail(fd.error());
  bound.port = port_of(local_address(fd->get()));
  listeners_.emplace(reach, std::pair{std::move(*fd), bound});
  wake();
  return bound;
}

void Control::Impl::wake() {
  const std::uint64_t one = 1;
  (void)!write(wake_fd_.get(), &one, sizeof one);
}

void Control::Impl::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    bool slept = false;
    try {
      sleep(lock, slept);
      if (stop_) break;
      if (lost_messages_) fail_without_memory();
      accept_all();
      for (Link& link : links_) service(link);
      drop_broken_links();
      expire(now_ns());
      erase_done_groups();
      deliver(lock);
    } catch (const std::bad_alloc&) {
      // The program may be short of memory for a moment only.
      lost_messages_ = lost_messages_ || slept;
      if (lock.owns_lock()) lock.unlock();
      std::this_thread::sleep_for(kMemoryWait);
      lock.lock();
    }
  }
}

/// Sleeps without the lock until a descriptor is ready or a deadline passes, sets `slept`, and handles ready pidfds.
void Control::Impl::sleep(std::unique_lock<std::mutex>& lock, bool& slept) {
  std::vector<pollfd> fds{{wake_fd_.get(), POLLIN, 0}};
  // A negative descriptor is ignored.
  for (const auto& [reach, listener] : listeners_)
    fds.push_back({accept_again_ns_ == 0 ? listener.first.get() : -1, POLLIN, 0});
  bool work_left = lost_messages_ || !deliveries_.empty();
  for (const Link& link : links_) {
    const bool writing = link.connecting || !link.writer.empty();
    fds.push_back({link.fd.get(), static_cast<short>(writing ? POLLIN | POLLOUT : POLLIN), 0});
    work_left |= link.broken;
  }
  const std::size_t first_watch = fds.size();
  std::vector<ProcessUid> watched;
  for (const auto& [uid, fd] : watches_) {
    fds.push_back({fd.get(), POLLIN, 0});
    watched.push_back(uid);
  }
  const std::int64_t deadline_ns = next_deadline_ns();
  timespec timeout{};
  const timespec* wait = nullptr;
  if (work_left || deadline_ns != INT64_MAX) {
    const std::int64_t left_ns = work_left ? 0 : std::max<std::int64_t>(deadline_ns - now_ns(), 0);
    timeout = {static_cast<time_t>(left_ns / 1'000'000'000), static_cast<long>(left_ns % 1'000'000'000)};
    wait = &timeout;
  }
  lock.unlock();
  ppoll(fds.data(), fds.size(), wait, nullptr);
  std::uint64_t ignored = 0;
  (void)!read(wake_fd_.get(), &ignored, sizeof ignored);
  lock.lock();
  slept = true;
  for (std::size_t i = 0; i < watched.size(); ++i) {
    if (fds[first_watch + i].revents == 0) continue;
    // While the lock was released, another thread may have closed the pidfd, and its number may name another
    // process since.
    const auto watch = watches_.find(watched[i]);
    if (watch == watches_.end()) continue;
    pollfd ended{watch->second.get(), POLLIN, 0};
    if (poll(&ended, 1, 0) != 1) continue;
    // Our receive buffers may still hold its last messages, or a hub's messages about it. Read them first.
    for (Link& link : links_) service(link);
    process_died(watched[i], kProcessEnded);
    watches_.erase(watched[i]);
  }
}

void Control::Impl::refresh_watches() {
  std::map<ProcessUid, std::int32_t> pids;
  const std::set<ProcessUid> wanted = processes_to_watch(pids);
  std::erase_if(watches_, [&](const auto& watch) { return !wanted.contains(watch.first); });
  for (const ProcessUid& uid : wanted) {
    if (watches_.contains(uid)) continue;
    // Without pidfd_open only a closed link tells that the process is dead.
    UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pids[uid], 0)));
    if (fd.valid())
      watches_.emplace(uid, std::move(fd));
    else if (errno == ESRCH)
      process_died(uid, kProcessEnded);
  }
  wake();
}

void Control::Impl::deliver(std::unique_lock<std::mutex>& lock) {
  while (!deliveries_.empty()) {
    std::vector<std::function<void()>> batch;
    batch.swap(deliveries_);
    lock.unlock();
    for (const auto& call : batch) call();
    lock.lock();
  }
}

void Control::Impl::shutdown() {
  if (forked_) {
    // The thread exists in the parent only.
    if (thread_.joinable()) thread_.detach();
    return;
  }
  std::unique_lock lock(mutex_);
  if (stop_) return;
  std::vector<std::uint64_t> ids;
  for (const auto& [id, group] : groups_)
    for (const auto& [member, communicator] : group.communicators) ids.push_back(member);
  lock.unlock();
  for (const std::uint64_t id : ids) leave(id);
  lock.lock();
  changed_.wait_for(lock, kShutdownWait, [&] { return groups_.empty(); });
  stop_ = true;
  changed_.notify_all();
  wake();
  lock.unlock();
  if (thread_.joinable()) thread_.join();
}

void Control::Impl::after_fork_in_child() {
  // The child of a threaded process may only make async-signal-safe calls: close(), no allocation.
  forked_ = true;
  for (Link& link : links_) link.fd.reset();
  for (auto& [reach, listener] : listeners_) listener.first.reset();
  for (auto& [uid, fd] : watches_) fd.reset();
  wake_fd_.reset();
  mutex_.unlock();
}

}  // namespace hips::comm
