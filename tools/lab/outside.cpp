#include "tools/lab/outside.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/base/os/unique_fd.hpp"
#include "tools/lab/network/shaping.hpp"
#include "tools/lab/process/child.hpp"

namespace hips::lab {
namespace {

Status wrong_argument(std::string message) {
  return Status::error(Code::kInvalidArgument, "lab: " + std::move(message));
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::vector<std::string> words_of(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid));
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

std::int64_t parent_of(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string key, value; file >> key && std::getline(file >> std::ws, value);) {
    if (key == "PPid:") return number(value).value_or(0);
  }
  return 0;
}

/// The server whose agent a process is: "hips lab agent --fd 7 --server 4".
std::optional<std::int64_t> server_of(std::int64_t pid) {
  const auto words = words_of(pid);
  if (words.size() != 7 || words[1] != "lab" || words[2] != "agent" || words[5] != "--server")
    return std::nullopt;
  return number(words[6]);
}

/// All labs of namespaces, by process id. An agent has a parent that waits for it, whose parent is the lab.
std::map<std::int64_t, RunningLab> running_labs() {
  std::map<std::int64_t, std::map<std::int64_t, std::int64_t>> agents;  // by lab, server
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto pid = number(entry.path().filename().string());
    if (!pid) continue;
    const auto server = server_of(*pid);
    if (!server || server_of(parent_of(*pid)) != server) continue;
    // The child of an agent is called like it until it becomes its program.
    if (server_of(parent_of(parent_of(*pid))) == server) continue;
    agents[parent_of(parent_of(*pid))][*server] = *pid;
  }
  std::map<std::int64_t, RunningLab> labs;
  for (const auto& [lab, by_server] : agents) {
    labs[lab].pid = lab;
    for (const auto& [server, pid] : by_server) {
      labs[lab].servers.resize(static_cast<std::size_t>(server) + 1, 0);
      labs[lab].servers.back() = pid;
    }
  }
  return labs;
}

/// A command that was not started because its server's namespaces cannot be entered.
constexpr int kNotEntered = 125;

/// Enters these namespaces of a process. In another user namespace we become its root.
Status enter(std::int64_t pid, std::initializer_list<const char*> kinds) {
  // All are opened before the first is entered: afterwards /proc is another one.
  std::vector<UniqueFd> fds;
  bool is_other_user = false;
  for (const char* kind : kinds) {
    const std::string theirs = fmt::format("/proc/{}/ns/{}", pid, kind),
                      ours = fmt::format("/proc/self/ns/{}", kind);
    std::error_code error;
    if (std::filesystem::equivalent(theirs, ours, error)) continue;
    UniqueFd fd(open(theirs.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid())
      return Status::error(Code::kSystem, fmt::format("lab: {}: {}", theirs, std::strerror(errno)));
    fds.push_back(std::move(fd));
    is_other_user |= std::string_view(kind) == "user";
  }
  for (const UniqueFd& fd : fds) {
    if (setns(fd.get(), 0) != 0) {
      return Status::error(
          Code::kSystem,
          fmt::format("lab: the namespaces of process {} cannot be entered: {}", pid, std::strerror(errno)));
    }
  }
  if (is_other_user && geteuid() != 0 && (setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0)) {
    return Status::error(Code::kSystem, fmt::format("lab: the rights of process {} cannot be taken: {}", pid,
                                                    std::strerror(errno)));
  }
  return Status::success();
}

Result<std::int64_t> agent_of(const RunningLab& lab, const std::string& server) {
  const auto idx = server.starts_with("node") ? number(std::string_view(server).substr(4)) : std::nullopt;
  if (!idx || static_cast<std::size_t>(*idx) >= lab.servers.size()) {
    return fail(wrong_argument(fmt::format("\"{}\" is no server of the lab; it has node0 to node{}", server,
                                           lab.servers.size() - 1)));
  }
  const std::int64_t pid = lab.servers[static_cast<std::size_t>(*idx)];
  if (pid == 0) return fail(wrong_argument(fmt::format("{} is down", server)));
  return pid;
}

/// What is killed when hips ends before its command: the command's process group (negative), or its process.
volatile sig_atomic_t to_kill = 0;

void kill_command(int) {
  if (to_kill != 0) kill(static_cast<pid_t>(to_kill), SIGKILL);
  _exit(1);
}

void set_handler(std::initializer_list<int> signals, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  for (const int number : signals) sigaction(number, &action, nullptr);
}

/// Runs a command with the namespaces of a process, in a child: who has entered them stays there. Signals of the terminal are
/// for the command, and hips waits for what it makes of them. If hips is killed, so is the command, with those that it has
/// started; from a terminal the command alone, since the group is that of the shell.
Result<int> run_beside(std::int64_t pid, std::initializer_list<const char*> kinds,
                       const std::vector<std::string>& command) {
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error).string();
  const pid_t hips = getpid();
  const bool has_terminal = isatty(0) == 1;
  const pid_t outer = fork();
  if (outer < 0) return fail(Code::kSystem, fmt::format("lab: fork: {}", std::strerror(errno)));
  if (outer == 0) {
    if (Status status = enter(pid, kinds); !status.ok()) {
      std::fprintf(stderr, "hips: %s\n", status.message.c_str());
      _exit(kNotEntered);
    }
    // Now: the kernel forgets it when rights change.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != hips) _exit(1);
    ChildOptions options;
    options.argv = command;
    options.folder = folder;
    options.in = 0;
    options.own_group = !has_terminal;
    options.dies_with_us = true;
    const auto child = start_child(options);
    int status = 1 << 8;
    if (child) {
      to_kill = has_terminal ? *child : -*child;
      set_handler({SIGTERM, SIGHUP}, kill_command);
      // A waiter that a terminal stops would keep the lab from ending.
      set_handler({SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU}, SIG_IGN);
      if (getppid() != hips) kill_command(SIGTERM);
      while (waitpid(*child, &status, 0) < 0 && errno == EINTR) {
      }
    }
    _exit(exit_code_of(status));
  }
  if (has_terminal) set_handler({SIGINT, SIGQUIT}, SIG_IGN);
  int status = 0;
  while (waitpid(outer, &status, 0) < 0 && errno == EINTR) {
  }
  return exit_code_of(status);
}

Status run_quietly(std::int64_t pid, std::initializer_list<const char*> kinds, const std::string& script) {
  const auto code = run_beside(pid, kinds, {"sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; " + script});
  if (!code) return code.error();
  return *code == 0 ? Status::success() : Status::error(Code::kSystem, "lab: the cable cannot be changed");
}

}  // namespace

Result<RunningLab> find_running_lab(std::int64_t pid) {
  const auto labs = running_labs();
  if (labs.empty())
    return fail(wrong_argument("no lab of namespaces runs here; start one: hips lab run --namespaces ..."));
  if (pid != 0) {
    const auto found = labs.find(pid);
    if (found != labs.end()) return found->second;
    // What started the lab: the process that a shell knows.
    for (const auto& [each, lab] : labs)
      if (parent_of(each) == pid) return lab;
  } else if (labs.size() == 1) {
    return labs.begin()->second;
  }
  std::vector<std::int64_t> pids;
  for (const auto& [each, lab] : labs) pids.push_back(each);
  return fail(wrong_argument(
      pid != 0 ? fmt::format("process {} is no lab; there is {}", pid, fmt::join(pids, ", "))
               : fmt::format("several labs run here; choose one: --lab {}", fmt::join(pids, ", or --lab "))));
}

Result<int> run_in_server(const RunningLab& lab, const std::string& server,
                          const std::vector<std::string>& command) {
  const auto agent = agent_of(lab, server);
  if (!agent) return fail(agent.error());
  return run_beside(*agent, {"user", "ipc", "uts", "net", "pid", "mnt"}, command);
}

Status change_cable(const RunningLab& lab, const std::string& nic, const std::string& state) {
  const auto colon = nic.find(':');
  const std::string server = nic.substr(0, colon);
  const auto agent = agent_of(lab, server);
  if (!agent) return agent.error();
  const std::string name = colon == std::string::npos ? "" : nic.substr(colon + 1);
  const auto rail = name.starts_with("nic") ? number(std::string_view(name).substr(3)) : std::nullopt;
  if (!rail) return wrong_argument(fmt::format("\"{}\" is no NIC; write {}:nic0", nic, server));
  const std::string end = fmt::format("s{}n{}", server.substr(4), *rail);
  const auto exists = run_beside(
      lab.pid, {"user", "net"},
      {"sh", "-c", fmt::format("PATH=$PATH:/sbin:/usr/sbin; ip link show {} >/dev/null 2>&1", end)});
  if (!exists) return exists.error();
  if (*exists == kNotEntered) return Status::error(Code::kSystem, "lab: the lab cannot be entered");
  if (*exists != 0) return wrong_argument(fmt::format("{} has no {}", server, name));
  if (state == "up" || state == "down") {
    return run_quietly(lab.pid, {"user", "net"}, fmt::format("ip link set {} {}", end, state));
  }
  Shaping shaping;
  shaping.bucket_bytes = kNamespaceBucketBytes;
  if (state != "unlimited") {
    shaping.rate = state;
    if (!check_shaping(shaping).ok()) {
      return wrong_argument(fmt::format(
          "\"{}\" is no state of a cable; give down, up, a rate such as 50mbit, or unlimited", state));
    }
  }
  // Below what loses or delays packets, where there is that.
  const auto shape = [&](const std::string& interface) {
    const std::string place = fmt::format(
        "if tc qdisc show dev {0} | grep -q netem; then at='parent 1:1 handle 2:'; else at=root; fi; ",
        interface);
    return place + (shaping.rate.empty()
                        ? fmt::format("tc qdisc del dev {} $at 2>/dev/null || true", interface)
                        : fmt::format("tc qdisc replace dev {} $at {}", interface, bucket_of(shaping)));
  };
  if (Status status = run_quietly(lab.pid, {"user", "net"}, shape(end)); !status.ok()) return status;
  return run_quietly(*agent, {"user", "net"}, shape(name));
}

}  // namespace hips::lab
