#include "tools/discover/lldpctl.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "lib/base/os/unique_fd.hpp"

namespace hips::discover {
namespace {

using Clock = std::chrono::steady_clock;

/// The program in the folders of PATH, or in those of root, which the PATH of users lacks.
std::optional<std::string> find_lldpctl() {
  const char* const path = std::getenv("PATH");
  std::string folders = fmt::format("{}:/usr/sbin:/sbin", path == nullptr ? "/usr/bin:/bin" : path);
  std::size_t begin = 0;
  while (begin <= folders.size()) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    std::string file = folders.substr(begin, end - begin) + "/lldpctl";
    if (file.front() == '/' && access(file.c_str(), X_OK) == 0) return file;
    begin = end + 1;
  }
  return std::nullopt;
}

/// Starts `lldpctl -f json` with its standard output in `out`.
Result<pid_t> start(const std::string& program, int out) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::array<std::string, 3> words{program, "-f", "json"};
  std::array<char*, 4> argv{words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t child = -1;
  const int error = posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return fail(Code::kSystem, fmt::format("{} cannot be started: {}", program, std::strerror(error)));
  return child;
}

/// Reads up to the end of the output.
Result<std::string> read_output(int fd, std::size_t most, Clock::time_point deadline) {
  std::string text;
  std::array<char, 1 << 16> buffer{};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ready{fd, POLLIN, 0};
    const int count = left > 0 ? poll(&ready, 1, static_cast<int>(left)) : 0;
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail(Code::kTimeout, "lldpctl has not answered in time");
    const ssize_t bytes = read(fd, buffer.data(), buffer.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(bytes));
    if (text.size() > most)
      return fail(Code::kInvalidArgument,
                  fmt::format("lldpctl prints more than {} bytes (valid: up to that)", most));
  }
}

/// The wait status of a program that has closed its output; one that still runs at the deadline is killed.
int wait_until(pid_t child, Clock::time_point deadline) {
  int status = 0;
  for (;;) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return status;
    if (Clock::now() >= deadline) kill(child, SIGKILL);
    poll(nullptr, 0, 1);
  }
}

}  // namespace

Result<std::vector<topology::LldpNeighbour>> ask_lldpd(const LldpctlLimits& limits) {
  const auto program = find_lldpctl();
  if (!program) return fail(Code::kUnsupported, "lldpctl is not installed");
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail(Code::kSystem, "no pipe can be made");
  const UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  const auto child = start(*program, out.get());
  if (!child) return fail(child.error());
  out.reset();
  const auto deadline = Clock::now() + limits.time;
  auto text = read_output(in.get(), limits.bytes, deadline);
  if (!text) kill(*child, SIGKILL);
  const int status = wait_until(*child, deadline);
  if (!text) return fail(text.error());
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return fail(Code::kSystem,
                fmt::format("{} -f json fails: no lldpd runs, or this user may not ask it", *program));
  return topology::read_lldp_json("lldpctl -f json", 1, *text);
}

}  // namespace hips::discover
