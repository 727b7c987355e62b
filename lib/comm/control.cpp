#include "lib/comm/control.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
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
#include <cstring>
#include <ctime>
#include <system_error>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/comm/control_impl.hpp"

namespace hips::comm {
namespace {

using log::Subsystem;

constexpr auto kGoodbyeWait = std::chrono::seconds(1);
constexpr const char* kProcessEnded = "its process ended without saying goodbye";

/// Why a link ended, in words that do not depend on who noticed it how.
std::string cause_of(int error) {
  switch (error) {
    case 0:
    case EPIPE:
    case ECONNRESET:
      return kProcessEnded;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return "its host does not answer any more";
    default:
      return fmt::format("its control link broke: {}", std::generic_category().message(error));
  }
}

/// The first address of this machine that others can use.
Result<SocketAddress> network_address() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return fail(Code::kSystem, "cannot list the network interfaces");
  SocketAddress found;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* entry = list; entry != nullptr && found.length == 0; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != family) continue;
      if ((entry->ifa_flags & IFF_UP) == 0 || (entry->ifa_flags & IFF_LOOPBACK) != 0) continue;
      if (family == AF_INET6) {
        const auto* address = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr);
        if (IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr)) continue;
      }
      found.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      std::memcpy(&found.storage, entry->ifa_addr, found.length);
    }
  }
  freeifaddrs(list);
  if (found.length == 0) return fail(Code::kSystem, "this host has no network address but loopback");
  return found;
}

std::string host_of(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.storage.ss_family == AF_INET6)
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr, text,
              sizeof text);
  else
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr, text, sizeof text);
  return text;
}

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
void Control::leave(std::uint64_t group) {
  impl_->leave(group);
}
void Control::report(std::uint64_t group, const Status& status) {
  impl_->report(group, status);
}
void Control::suspect(std::uint64_t group, Rank rank, const Status& status) {
  impl_->suspect(group, rank, status);
}
void Control::query(std::uint64_t group, Rank rank, std::uint64_t call_index) {
  impl_->query(group, rank, call_index);
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
        Code::kSystem, fmt::format("cannot make an eventfd: {}", std::generic_category().message(errno)));
    status.sys_errno = errno;
    return status;
  }
  // The program's signals are for the program's threads.
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
  SocketAddress address;
  if (reach == Reach::kHost) {
    auto* loopback = reinterpret_cast<sockaddr_in*>(&address.storage);
    loopback->sin_family = AF_INET;
    loopback->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.length = sizeof *loopback;
  } else {
    auto found = network_address();
    if (!found) return fail(found.error());
    address = *found;
  }
  auto fd = listen_tcp(address);
  if (!fd) return fail(fd.error());
  const ControlAddress bound{host_of(address), port_of(local_address(fd->get()))};
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
    sleep(lock);
    if (stop_) break;
    accept_all();
    for (Link& link : links_) service(link);
    drop_broken_links();
    expire(now_ns());
    erase_done_groups();
    deliver(lock);
  }
}

/// Builds the list of descriptors, sleeps without the lock, and reads the dead off the pidfds.
void Control::Impl::sleep(std::unique_lock<std::mutex>& lock) {
  std::vector<pollfd> fds{{wake_fd_.get(), POLLIN, 0}};
  for (const auto& [reach, listener] : listeners_) fds.push_back({listener.first.get(), POLLIN, 0});
  bool work_left = !deliveries_.empty();
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
  for (std::size_t i = 0; i < watched.size(); ++i) {
    if (fds[first_watch + i].revents == 0) continue;
    // What was said before it ended, by it or by a hub about it, may still wait in our receive buffers.
    for (Link& link : links_) service(link);
    process_died(watched[i], kProcessEnded);
    watches_.erase(watched[i]);
  }
}

void Control::Impl::accept_all() {
  for (const auto& [reach, listener] : listeners_) {
    while (auto fd = accept_tcp(listener.first.get())) {
      Link& link = links_.emplace_back(std::move(*fd));
      ByteWriter hello;
      hello.put(ControlFrame::kHello);
      hello.put(kWireMagic);
      hello.put(kWireVersion);
      hello.put_text(options_.token);
      hello.put(options_.self.uid.high);
      hello.put(options_.self.uid.low);
      send(link, hello);
    }
  }
}

Control::Impl::Link& Control::Impl::link_to(const ProcessInfo& process) {
  for (Link& link : links_)
    if (link.uid == process.uid && !link.broken) return link;
  auto addresses = resolve(process.control.host, process.control.port);
  auto fd = addresses ? connect_tcp(addresses->front()) : Result<UniqueFd>(fail(addresses.error()));
  Link& link = links_.emplace_back(fd ? std::move(*fd) : UniqueFd());
  link.uid = process.uid;
  if (!fd) {
    break_link(link, fd.error().message);
    return link;
  }
  link.connecting = true;
  ByteWriter hello;
  hello.put(ControlFrame::kHello);
  hello.put(kWireMagic);
  hello.put(kWireVersion);
  hello.put_text(options_.token);
  hello.put(options_.self.uid.high);
  hello.put(options_.self.uid.low);
  link.writer.push(hello.blob());
  wake();
  return link;
}

void Control::Impl::send(Link& link, const ByteWriter& frame) {
  if (link.broken) return;
  link.writer.push(frame.blob());
  // At once, not when the thread next runs: a goodbye has to be out before the process ends.
  if (!link.connecting && !link.writer.flush(link.fd.get())) break_link(link, cause_of(errno));
  if (!link.writer.empty()) wake();
}

void Control::Impl::break_link(Link& link, std::string cause) {
  if (link.broken) return;
  link.broken = true;
  link.cause = std::move(cause);
  wake();
}

void Control::Impl::service(Link& link) {
  if (link.broken) return;
  if (link.connecting) {
    pollfd ready{link.fd.get(), POLLOUT, 0};
    if (poll(&ready, 1, 0) <= 0) return;
    if (const int error = connect_error(link.fd.get()); error != 0) {
      break_link(link, error == ECONNREFUSED ? kProcessEnded : cause_of(error));
      return;
    }
    link.connecting = false;
  }
  const bool writable = link.writer.flush(link.fd.get());
  const auto state = link.reader.fill(link.fd.get());
  while (auto frame = link.reader.next()) {
    take_frame(link, *frame);
    if (link.broken) return;
  }
  if (state == FrameReader::State::kBroken)
    break_link(link, "it sent what is no HiPS control frame");
  else if (state == FrameReader::State::kClosed)
    break_link(link, cause_of(link.reader.sys_errno));
  else if (!writable)
    break_link(link, kProcessEnded);
}

bool Control::Impl::take_hello(Link& link, ByteReader& reader) {
  const auto magic = reader.get<std::uint32_t>();
  const auto version = reader.get<std::uint32_t>();
  const std::string token = reader.get_text();
  ProcessUid uid;
  uid.high = reader.get<std::uint64_t>();
  uid.low = reader.get<std::uint64_t>();
  std::string why;
  if (!reader.ok() || magic != kWireMagic)
    why = "it does not speak HiPS";
  else if (version != kWireVersion)
    why = fmt::format("it has wire version {}, this process has {}", version, kWireVersion);
  else if (token != options_.token)
    why = "its job token is not this job's";
  else if (link.uid != ProcessUid() && link.uid != uid)
    why = "another process has taken its address";
  if (!why.empty()) {
    log::warn(Subsystem::kControl, "refused a control connection: {}", why);
    break_link(link, why);
    return false;
  }
  link.uid = uid;
  link.greeted = true;
  return true;
}

void Control::Impl::drop_broken_links() {
  // process_died() may break further links, so begin anew after each.
  for (auto link = links_.begin(); link != links_.end();) {
    if (!link->broken) {
      ++link;
      continue;
    }
    // Somebody may have told us why, and we have not read it yet.
    for (Link& other : links_) service(other);
    for (auto& [id, group] : groups_) {
      std::erase_if(group.links, [&](const auto& entry) { return entry.second == &*link; });
      if (group.hub_link != &*link) continue;
      group.hub_link = nullptr;
      // Nobody is left whom our goodbye would reach.
      if (group.leaving) group.done = true;
    }
    std::erase_if(early_joins_, [&](const EarlyJoin& join) { return join.link == &*link; });
    const ProcessUid uid = link->uid;
    const std::string cause = link->cause;
    links_.erase(link);
    if (uid != ProcessUid()) process_died(uid, cause);
    link = links_.begin();
  }
}

void Control::Impl::refresh_watches() {
  std::map<ProcessUid, std::int32_t> pids;
  const std::set<ProcessUid> wanted = processes_to_watch(pids);
  std::erase_if(watches_, [&](const auto& watch) { return !wanted.contains(watch.first); });
  for (const ProcessUid& uid : wanted) {
    if (watches_.contains(uid)) continue;
    // Where the kernel refuses, the links alone have to do.
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
    // The thread lives in the parent only.
    if (thread_.joinable()) thread_.detach();
    return;
  }
  std::unique_lock lock(mutex_);
  if (stop_) return;
  std::vector<std::uint64_t> ids;
  for (const auto& [id, group] : groups_) ids.push_back(id);
  lock.unlock();
  for (const std::uint64_t id : ids) leave(id);
  lock.lock();
  changed_.wait_for(lock, kGoodbyeWait, [&] { return groups_.empty(); });
  stop_ = true;
  wake();
  lock.unlock();
  if (thread_.joinable()) thread_.join();
}

void Control::Impl::after_fork_in_child() {
  // Only calls that are safe in the child of a threaded process: close, and no allocation.
  forked_ = true;
  for (Link& link : links_) link.fd.reset();
  for (auto& [reach, listener] : listeners_) listener.first.reset();
  for (auto& [uid, fd] : watches_) fd.reset();
  wake_fd_.reset();
  mutex_.unlock();
}

}  // namespace hips::comm
