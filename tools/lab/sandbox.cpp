#include "tools/lab/sandbox.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "lib/base/os/unique_fd.hpp"
#include "tools/lab/process/child.hpp"

namespace hips::lab {
namespace {

/// After a signal the sandbox has this long to end by itself.
constexpr int kGraceMs = 5000;

bool write_file(const char* path, const std::string& text) {
  const UniqueFd fd(open(path, O_WRONLY | O_CLOEXEC));
  return fd.valid() && write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

Status enter_namespaces() {
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  const int user = uid == 0 ? 0 : CLONE_NEWUSER;
  int made = unshare(user | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS);
  // A new network namespace takes part in all RDMA devices, and is refused while one of them is just going:
  // that of another lab, or of the trial before this one.
  for (int i = 0; made != 0 && errno == ENODEV && i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    made = unshare(user | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS);
  }
  if (made != 0) {
    const int number = errno;
    return Status::error(
        Code::kUnsupported,
        fmt::format("lab: no namespaces can be made ({}): {}", std::strerror(number),
                    uid == 0 ? "root lacks CAP_SYS_ADMIN here, as in a container without --privileged"
                             : "run it as root, or allow them: sysctl kernel.unprivileged_userns_clone=1"));
  }
  if (user != 0 && !(write_file("/proc/self/setgroups", "deny") &&
                     write_file("/proc/self/uid_map", fmt::format("0 {} 1", uid)) &&
                     write_file("/proc/self/gid_map", fmt::format("0 {} 1", gid)))) {
    return Status::error(Code::kUnsupported, "lab: the user namespace cannot be mapped; run it as root");
  }
  return Status::success();
}

}  // namespace

Result<int> run_in_sandbox(const std::function<int(int lifeline)>& body) {
  std::fflush(nullptr);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const UniqueFd signal_fd(signalfd(-1, &signals, SFD_CLOEXEC));
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail(Code::kSystem, "lab: no pipe can be made");
  UniqueFd lifeline(ends[0]);
  UniqueFd own_end(ends[1]);
  if (Status status = enter_namespaces(); !status.ok()) return fail(std::move(status));

  const pid_t child = fork();
  if (child < 0) return fail(Code::kSystem, fmt::format("lab: fork: {}", std::strerror(errno)));
  if (child == 0) {
    // If our parent was killed before this line, the lifeline has ended already.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    own_end.reset();
    int code = 1;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("proc", "/proc", "proc", 0, nullptr) != 0) {
      std::fprintf(stderr, "hips lab: /proc cannot be mounted in the sandbox: %s\n", std::strerror(errno));
    } else {
      code = body(lifeline.get());
    }
    std::fflush(nullptr);
    _exit(code);
  }

  lifeline.reset();
  int timeout_ms = -1;
  for (;;) {
    pollfd ready{signal_fd.get(), POLLIN, 0};
    const int n = poll(&ready, 1, timeout_ms);
    if (n == 0) kill(child, SIGKILL);
    if (n > 0) {
      signalfd_siginfo info{};
      if (read(signal_fd.get(), &info, sizeof info) == sizeof info && info.ssi_signo != SIGCHLD) {
        kill(child, static_cast<int>(info.ssi_signo));
        timeout_ms = kGraceMs;
      }
    }
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) {
      if (WIFSIGNALED(status)) {
        return fail(Code::kInternal, fmt::format("lab: the sandbox {}", describe_exit(status)));
      }
      return WEXITSTATUS(status);
    }
  }
}

}  // namespace hips::lab
