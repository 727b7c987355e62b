#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/lab/process/agent.hpp"
#include "tools/lab/process/child.hpp"
#include "tools/lab/process/frames.hpp"
#include "tools/lab/process/start_request.hpp"

namespace hips::lab {
namespace {

/// What ssh gives where it fails itself.
constexpr int kNoConnection = 255;

UniqueFd connect_to(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(kAgentTcpPort).c_str(), &hints, &found) != 0) return {};
  UniqueFd fd(socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, 0));
  const bool connected = connect(fd.get(), found->ai_addr, found->ai_addrlen) == 0;
  freeaddrinfo(found);
  return connected ? std::move(fd) : UniqueFd();
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = write(fd, bytes.data(), bytes.size());
    if (size < 0 && errno != EINTR) return;
    if (size > 0) bytes.remove_prefix(static_cast<std::size_t>(size));
  }
}

}  // namespace

int run_remote_shell(const std::vector<std::string>& words) {
  if (words.size() < 2) {
    std::fprintf(stderr, "hips lab rsh: a host and a command are needed: hips lab rsh node1 COMMAND\n");
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  const UniqueFd fd = connect_to(words.front());
  if (!fd.valid()) {
    std::fprintf(stderr, "hips lab rsh: \"%s\" is no guest of this lab, or is down\n", words.front().c_str());
    return kNoConnection;
  }
  StartRequest request;
  request.argv = {"sh", "-c", fmt::format("{}", fmt::join(words.begin() + 1, words.end(), " "))};
  request.folder = "/root";
  std::string wire;
  append_frame(wire, FrameKind::kStart, 1, to_json(request));
  write_all(fd.get(), wire);

  AgentFrameReader reader;
  for (;;) {
    pollfd ready{fd.get(), POLLIN, 0};
    poll(&ready, 1, -1);
    std::string bytes;
    set_nonblocking(fd.get());
    const bool open = read_available(fd.get(), bytes);
    reader.add(bytes);
    for (auto frame = reader.next(); frame && *frame; frame = reader.next()) {
      if ((*frame)->kind == FrameKind::kOutput) write_all(1, (*frame)->payload);
      if ((*frame)->kind == FrameKind::kError) write_all(2, (*frame)->payload);
      if ((*frame)->kind == FrameKind::kExit) return exit_code_of(std::atoi((*frame)->payload.c_str()));
    }
    if (!open) {
      std::fprintf(stderr, "hips lab rsh: the connection to %s is lost\n", words.front().c_str());
      return kNoConnection;
    }
  }
}

}  // namespace hips::lab
