#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/os/unique_fd.hpp"
#include "lib/base/result.hpp"

namespace hips::lab {

/// How a child process begins.
struct ChildOptions {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;  ///< added to ours
  std::string folder;
  int in = -1, out = -1, err = -1;  ///< its standard streams; -1: /dev/null for `in`, ours for the others
  int keep = -1;                    ///< a further descriptor that it inherits
  bool own_session = false;         ///< away from our terminal and process group
  bool own_group = false;           ///< a process group of its own, in our session
  bool dies_with_us = false;        ///< gets SIGKILL when our process ends, however that happens
};

/// Starts a program; its signal mask is empty. A program that cannot be executed says so on its standard
/// error and exits 127.
Result<pid_t> start_child(const ChildOptions& options);

/// What a program that ran to its end left.
struct Finished {
  int wait_status = 0;
  std::string out, err;

  [[nodiscard]] bool ok() const { return wait_status == 0; }
};

/// Runs a program with this input, to its end or for at most `timeout_ms`, when it is killed.
///
/// Errors   kSystem: it cannot be started. kTimeout.
Result<Finished> run_child(ChildOptions options, const std::string& input = {}, int timeout_ms = 60'000);

/// "exited with code 3", "was killed by signal 11 (Segmentation fault)".
std::string describe_exit(int wait_status);

/// What a shell would give: the code, or 128 + the signal.
int exit_code_of(int wait_status);

/// Reads what there is without waiting, appends it, and tells whether more may come.
bool read_available(int fd, std::string& text);

void set_nonblocking(int fd);

/// Whether execvp() finds this program; /usr/sbin and /sbin are looked into even where PATH lacks them.
std::optional<std::string> find_on_path(const std::string& program);

}  // namespace hips::lab
