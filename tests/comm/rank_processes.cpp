#include "tests/comm/rank_processes.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <stdexcept>

namespace hips::test {
namespace {

constexpr uid_t kOtherUser = 12345;
constexpr char kReadyMark = '\1';

void write_all(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(fd, text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) return;
    if (written > 0) done += static_cast<std::size_t>(written);
  }
}

}  // namespace

std::uint16_t free_port() {
  // Below the ports that the kernel gives to connections, which it may do before rank 0 listens.
  constexpr int kFirst = 15'000, kLast = 32'000;
  std::random_device random;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const auto port = static_cast<std::uint16_t>(std::uniform_int_distribution(kFirst, kLast)(random));
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const bool is_free = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    if (fd >= 0) close(fd);
    if (is_free) return port;
  }
  throw std::runtime_error("no free port on loopback");
}

std::vector<std::string> left_in_dev_shm() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    if (entry.path().filename().string().find("hips") != std::string::npos) names.push_back(entry.path());
  return names;
}

void move_to_another_host() {
  // For RDMA, where a container allows it; sockets do not need it.
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  (void)setrlimit(RLIMIT_MEMLOCK, &unlimited);
  const bool moved = setgroups(0, nullptr) == 0 && setresgid(kOtherUser, kOtherUser, kOtherUser) == 0 &&
                     setresuid(kOtherUser, kOtherUser, kOtherUser) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0;
  if (!moved) throw std::runtime_error("needs to be root, to act for another host");
}

RankProcesses::RankProcesses(int num_ranks, const Body& body,
                             const std::map<std::string, std::string>& environment) {
  const std::string root = "127.0.0.1:" + std::to_string(free_port());
  for (int rank = 0; rank < num_ranks; ++rank) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    const pid_t pid = fork();
    if (pid < 0) throw std::runtime_error("no process");
    if (pid != 0) {
      close(ends[1]);
      Child child;
      child.pid = pid;
      child.pipe = ends[0];
      children_.push_back(child);
      continue;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    for (const Child& sibling : children_) close(sibling.pipe);
    setenv("HIPS_RANK", std::to_string(rank).c_str(), 1);
    setenv("HIPS_SIZE", std::to_string(num_ranks).c_str(), 1);
    setenv("HIPS_ROOT", root.c_str(), 1);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    const auto ready = [&] { write_all(ends[1], std::string(1, kReadyMark)); };
    int code = 0;
    try {
      write_all(ends[1], body(rank, ready));
    } catch (const std::exception& error) {
      write_all(ends[1], error.what());
      code = 1;
    }
    // exit, not _exit: the library's exit handlers belong to what is tested.
    std::exit(code);
  }
}

RankProcesses::~RankProcesses() {
  for (Child& child : children_) {
    if (child.pid > 0) {
      kill(child.pid, SIGKILL);
      waitpid(child.pid, nullptr, 0);
    }
    if (child.pipe >= 0) close(child.pipe);
  }
}

void RankProcesses::read_from(Child& child) {
  char buffer[4096];
  const ssize_t got = read(child.pipe, buffer, sizeof buffer);
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) {
    close(child.pipe);
    child.pipe = -1;
    return;
  }
  for (ssize_t i = 0; i < got; ++i) {
    if (buffer[i] == kReadyMark)
      child.ready = true;
    else
      child.outcome.text += buffer[i];
  }
}

void RankProcesses::poll_pipes(std::chrono::milliseconds limit) {
  std::vector<pollfd> fds;
  std::vector<Child*> owners;
  for (Child& child : children_) {
    if (child.pipe < 0) continue;
    fds.push_back({child.pipe, POLLIN, 0});
    owners.push_back(&child);
  }
  poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(limit.count(), 0)));
  for (std::size_t i = 0; i < fds.size(); ++i)
    if (fds[i].revents != 0) read_from(*owners[i]);
}

bool RankProcesses::wait_ready(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (true) {
    if (std::all_of(children_.begin(), children_.end(), [](const Child& c) { return c.ready; })) return true;
    if (std::any_of(children_.begin(), children_.end(),
                    [](const Child& c) { return !c.ready && c.pipe < 0; }))
      return false;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left <= 0ms) return false;
    poll_pipes(left);
  }
}

void RankProcesses::signal(int rank, int signal) {
  // A process number of -1, of a rank that has ended, would mean every process there is.
  const pid_t pid = children_[static_cast<std::size_t>(rank)].pid;
  if (pid > 0) kill(pid, signal);
}

std::vector<Outcome> RankProcesses::wait(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (std::any_of(children_.begin(), children_.end(), [](const Child& c) { return c.pid > 0; })) {
    bool all_pipes_closed = true;
    for (Child& child : children_) all_pipes_closed &= child.pipe < 0;
    // A closed pipe says nothing more; the end of the process has to be asked for.
    if (all_pipes_closed)
      usleep(1000);
    else
      poll_pipes(20ms);
    const bool late = std::chrono::steady_clock::now() >= end;
    for (Child& child : children_) {
      if (child.pid <= 0) continue;
      int status = 0;
      if (waitpid(child.pid, &status, WNOHANG) == 0) {
        if (!late) continue;
        child.outcome.hung = true;
        kill(child.pid, SIGKILL);
        waitpid(child.pid, &status, 0);
      }
      child.pid = -1;
      child.outcome.ended = std::chrono::steady_clock::now();
      child.outcome.exited = WIFEXITED(status) && !child.outcome.hung;
      if (WIFEXITED(status)) child.outcome.exit_code = WEXITSTATUS(status);
      if (WIFSIGNALED(status)) child.outcome.signal = WTERMSIG(status);
      while (child.pipe >= 0) read_from(child);
    }
  }
  std::vector<Outcome> outcomes;
  for (const Child& child : children_) outcomes.push_back(child.outcome);
  return outcomes;
}

}  // namespace hips::test
