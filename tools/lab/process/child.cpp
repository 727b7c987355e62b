#include "tools/lab/process/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include <fmt/format.h>

namespace hips::lab {
namespace {

Status system_error(std::string what) {
  const int number = errno;
  Status status = Status::error(Code::kSystem, fmt::format("lab: {}: {}", what, std::strerror(number)));
  status.sys_errno = number;
  return status;
}

/// In the child, between fork() and exec: never returns.
[[noreturn]] void become(const ChildOptions& options, std::vector<char*>& argv) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (options.own_session) setsid();
  if (options.own_group) setpgid(0, 0);
  if (options.dies_with_us) prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int in = options.in >= 0 ? options.in : open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(in, 0);
  if (options.out >= 0) dup2(options.out, 1);
  if (options.err >= 0) dup2(options.err, 2);
  if (options.keep >= 0) fcntl(options.keep, F_SETFD, 0);
  if (!options.folder.empty() && chdir(options.folder.c_str()) != 0 && chdir("/") != 0) _exit(127);
  for (const auto& [name, value] : options.env) setenv(name.c_str(), value.c_str(), 1);
  execvp(argv.front(), argv.data());
  const std::string message = fmt::format("{}: {}\n", argv.front(), std::strerror(errno));
  [[maybe_unused]] const auto ignored = write(2, message.data(), message.size());
  _exit(127);
}

struct Pipe {
  UniqueFd from, to;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail(system_error("no pipe can be made"));
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// write() that fails with EPIPE where nobody reads any more, without the signal that would end us. The
/// thread holds the signal off and takes it back: how the process treats it is for others to say, and
/// children inherit that.
ssize_t write_without_signal(int fd, const char* data, std::size_t size) {
  sigset_t broken, before, pending;
  sigemptyset(&broken);
  sigaddset(&broken, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken, &before);
  sigpending(&pending);
  const ssize_t written = write(fd, data, size);
  const int error = errno;
  if (written < 0 && error == EPIPE && sigismember(&pending, SIGPIPE) == 0) {
    const timespec at_once{};
    sigtimedwait(&broken, nullptr, &at_once);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return written;
}

}  // namespace

Result<pid_t> start_child(const ChildOptions& options) {
  std::vector<std::string> words = options.argv;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) return fail(system_error(fmt::format("\"{}\" cannot be started", options.argv.front())));
  if (child == 0) become(options, argv);
  return child;
}

Result<Finished> run_child(ChildOptions options, const std::string& input, int timeout_ms) {
  auto in = make_pipe(), out = make_pipe(), err = make_pipe();
  if (!in || !out || !err) return fail(!in ? in.error() : !out ? out.error() : err.error());
  options.in = in->from.get();
  options.out = out->to.get();
  options.err = err->to.get();
  const auto child = start_child(options);
  if (!child) return fail(child.error());
  in->from.reset();
  out->to.reset();
  err->to.reset();
  for (const int fd : {in->to.get(), out->from.get(), err->from.get()}) set_nonblocking(fd);

  Finished finished;
  std::size_t written = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (out->from.valid() || err->from.valid()) {
    if (in->to.valid() && written == input.size()) in->to.reset();
    std::array<pollfd, 3> fds{
        {{out->from.get(), POLLIN, 0}, {err->from.get(), POLLIN, 0}, {in->to.get(), POLLOUT, 0}}};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 ||
        (poll(fds.data(), fds.size(), static_cast<int>(left.count())) < 0 && errno != EINTR)) {
      kill(*child, SIGKILL);
      waitpid(*child, nullptr, 0);
      return fail(Code::kTimeout,
                  fmt::format("lab: \"{}\" did not end in {} ms", options.argv.front(), timeout_ms));
    }
    if (fds[0].revents != 0 && !read_available(out->from.get(), finished.out)) out->from.reset();
    if (fds[1].revents != 0 && !read_available(err->from.get(), finished.err)) err->from.reset();
    if (fds[2].revents != 0) {
      const ssize_t size = write_without_signal(in->to.get(), input.data() + written, input.size() - written);
      if (size > 0) written += static_cast<std::size_t>(size);
      if (size < 0 && errno != EAGAIN) in->to.reset();
    }
  }
  waitpid(*child, &finished.wait_status, 0);
  return finished;
}

std::string describe_exit(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return fmt::format("was killed by signal {} ({})", WTERMSIG(wait_status),
                       strsignal(WTERMSIG(wait_status)));
  }
  return fmt::format("exited with code {}", WEXITSTATUS(wait_status));
}

int exit_code_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

bool read_available(int fd, std::string& text) {
  constexpr std::size_t kEnough = std::size_t{1} << 20;  // a writer that never pauses must not hold us here
  std::array<char, 65536> buffer{};
  const std::size_t before = text.size();
  for (;;) {
    if (text.size() - before >= kEnough) return true;
    const ssize_t size = read(fd, buffer.data(), buffer.size());
    if (size > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(size));
      if (static_cast<std::size_t>(size) < buffer.size()) return true;
    } else if (size == 0 || (errno != EINTR && errno != EAGAIN)) {
      return false;
    } else if (errno == EAGAIN) {
      return true;
    }
  }
}

void set_nonblocking(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

std::optional<std::string> find_on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(std::string(path ? path : "/usr/bin:/bin") + ":/usr/sbin:/sbin");
  std::string folder;
  while (std::getline(folders, folder, ':')) {
    std::string candidate = folder + "/" + program;
    // A folder may have that name, and then is "executable", too.
    struct stat file {};
    if (stat(candidate.c_str(), &file) == 0 && S_ISREG(file.st_mode) && access(candidate.c_str(), X_OK) == 0)
      return candidate;
  }
  return std::nullopt;
}

}  // namespace hips::lab
