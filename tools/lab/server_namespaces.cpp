#include "tools/lab/server_namespaces.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "tools/lab/process/child.hpp"
#include "tools/lab/server_setup.hpp"

namespace hips::lab {
namespace {

Status not_separate(const std::string& what) {
  return Status::error(Code::kSystem, fmt::format("lab: {}: {}", what, std::strerror(errno)));
}

/// What shows the namespaces' contents, and what programs of different servers must not share.
Status mount_own_files() {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return not_separate("mounts stay shared");
  if (mount("proc", "/proc", "proc", 0, nullptr) != 0) return not_separate("/proc cannot be mounted");
  if (mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777") != 0)
    return not_separate("/dev/shm cannot be mounted");
  if (mkdir(kServerFolder, 0755) != 0) return not_separate(fmt::format("{} cannot be made", kServerFolder));
  // A new /sys shows this namespace's interfaces. What is mounted below the old one is of use: limits of processors.
  const std::string groups = std::string(kServerFolder) + "/cgroup";
  const bool has_groups = mkdir(groups.c_str(), 0755) == 0 &&
                          mount("/sys/fs/cgroup", groups.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0;
  if (mount("sysfs", "/sys", "sysfs", 0, nullptr) != 0) return not_separate("/sys cannot be mounted");
  if (has_groups) mount(groups.c_str(), "/sys/fs/cgroup", nullptr, MS_MOVE, nullptr);
  // The machine's RDMA devices reach its own networks, not the lab's.
  mount("tmpfs", "/dev/infiniband", "tmpfs", 0, "mode=755");
  return Status::success();
}

}  // namespace

Result<int> run_as_server(std::int64_t server, const std::function<int()>& agent) {
  if (unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNS) != 0) {
    return fail(Code::kUnsupported,
                fmt::format("lab: no namespaces of a server can be made: {}", std::strerror(errno)));
  }
  const pid_t child = fork();
  if (child < 0) return fail(not_separate("fork"));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Status status = mount_own_files();
    const std::string name = fmt::format("node{}", server);
    if (status.ok() && sethostname(name.data(), name.size()) != 0)
      status = not_separate("the host name stays");
    if (!status.ok()) {
      std::fprintf(stderr, "hips %s\n", status.message.c_str());
      _exit(1);
    }
    _exit(agent());
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return exit_code_of(status);
}

}  // namespace hips::lab
