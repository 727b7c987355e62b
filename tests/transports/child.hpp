#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <span>
#include <stdexcept>
#include <vector>

#include "lib/base/os/unique_fd.hpp"

namespace hips::test {

/// Messages between a test and a process that it has started; a wait ends after twenty seconds.
class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}

  void send(std::span<const std::byte> bytes) {
    const std::uint64_t size = bytes.size();
    write_all(std::as_bytes(std::span(&size, 1)));
    write_all(bytes);
  }
  std::vector<std::byte> receive() {
    std::uint64_t size = 0;
    read_all(std::as_writable_bytes(std::span(&size, 1)));
    std::vector<std::byte> bytes(size);
    read_all(bytes);
    return bytes;
  }

  template <typename T>
  void send_value(const T& value) {
    send(std::as_bytes(std::span(&value, 1)));
  }
  template <typename T>
  T receive_value() {
    const auto bytes = receive();
    T value;
    if (bytes.size() != sizeof value) throw std::runtime_error("a message of another size was expected");
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

 private:
  void write_all(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) throw std::runtime_error("the other process is gone");
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }
  void read_all(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      pollfd waiting{.fd = fd_.get(), .events = POLLIN, .revents = 0};
      if (poll(&waiting, 1, 20'000) != 1) throw std::runtime_error("no message within twenty seconds");
      const ssize_t count = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
      if (count <= 0) throw std::runtime_error("the other process is gone");
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }

  UniqueFd fd_;
};

/// A child process of a test. Its exit code is its function's result, or 99 after an exception. The destructor
/// kills it and waits for it, so no test leaves one behind.
class Child {
 public:
  explicit Child(const std::function<int(Channel&)>& run) : Child(run, pair()) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) {
      kill();
      (void)wait();
    }
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  Channel& channel() { return channel_; }
  void kill() const { ::kill(pid_, SIGKILL); }

  /// Exit code, or 128 + signal.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  struct Ends {
    int parent, child;
  };
  static Ends pair() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) throw std::runtime_error("socketpair");
    return {fds[0], fds[1]};
  }

  Child(const std::function<int(Channel&)>& run, Ends ends) : channel_(ends.parent) {
    std::fflush(nullptr);
    pid_ = fork();
    if (pid_ != 0) {
      ::close(ends.child);
      return;
    }
    ::close(ends.parent);
    int code = 99;
    try {
      Channel channel(ends.child);
      code = run(channel);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child %d: %s\n", getpid(), error.what());
    }
    std::fflush(nullptr);
    _exit(code);
  }

  Channel channel_;
  pid_t pid_ = -1;
};

}  // namespace hips::test
