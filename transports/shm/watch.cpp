#include "transports/shm/watch.hpp"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include <fmt/format.h>

namespace hips::shm {

namespace {

constexpr std::uint64_t kPipeKey = UINT64_MAX;

Status system_error(const char* call) {
  const int error = errno;
  const char* hint = error == EMFILE ? " (raise the limit of open files, ulimit -n)" : "";
  Status status = Status::error(Code::kSystem, fmt::format("shm: {}: {}{}", call, std::strerror(error), hint),
                                Scope::kProcess);
  status.sys_errno = error;
  return status;
}

}  // namespace

Result<Watch> Watch::create() {
  Watch watch;
  auto pipe = WakePipe::create();
  if (!pipe) return fail(std::move(pipe).error());
  watch.pipe_ = *std::move(pipe);
  watch.epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!watch.epoll_.valid()) return fail(system_error("epoll_create1"));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kPipeKey;
  if (epoll_ctl(watch.epoll_.get(), EPOLL_CTL_ADD, watch.pipe_.fd(), &event) != 0)
    return fail(system_error("epoll_ctl"));
  return watch;
}

Status Watch::add(std::int32_t key, int pidfd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<std::uint32_t>(key);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, pidfd, &event) != 0) return system_error("epoll_ctl");
  return Status::success();
}

void Watch::forget(int pidfd) {
  // close() is not enough: a forked child may hold the same description, which would stay watched.
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, pidfd, nullptr);
}

void Watch::look(std::vector<std::int32_t>& ended) const {
  std::array<epoll_event, 32> events;
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t key = events[static_cast<std::size_t>(i)].data.u64;
    if (key != kPipeKey) ended.push_back(static_cast<std::int32_t>(key));
  }
}

Result<UniqueFd> open_pidfd(std::int32_t pid) {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (fd.valid() || errno == ENOSYS || errno == EPERM)
    return fd;  // EPERM: seccomp filter of an old container runtime
  if (errno == ESRCH) {
    return fail(Code::kPeerLost, fmt::format("shm: process {} has ended", pid), Scope::kPeer);
  }
  return fail(system_error("pidfd_open"));
}

}  // namespace hips::shm
