#include "lib/base/os/process_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace hips {

namespace {

Status system_error(int error, std::string message) {
  Status status = Status::error(error == ENOMEM ? Code::kOutOfMemory : Code::kSystem, std::move(message));
  status.sys_errno = error;
  return status;
}

/// Has the process ended? One that was killed keeps its number until its parent asks for the exit code.
bool has_ended(pid_t pid) {
  if (kill(pid, 0) != 0 && errno != EPERM) return true;
  const UniqueFd stat(open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t bytes = stat.valid() ? read(stat.get(), text, sizeof text) : 0;
  // "17276 (name) Z ...", where the name may have any characters.
  const std::string_view line(text, bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  const std::size_t end_of_name = line.rfind(") ");
  return end_of_name != std::string_view::npos && end_of_name + 2 < line.size() &&
         (line[end_of_name + 2] == 'Z' || line[end_of_name + 2] == 'X');
}

/// Explains why /proc/PID/fd/N could not be opened. One errno has several causes, so this examines the
/// process.
Status explain(const ProcessFile& file, int error) {
  if (has_ended(file.pid)) {
    return Status::error(Code::kPeerLost, fmt::format("shared memory: process {} has ended", file.pid),
                         Scope::kPeer);
  }
  Status status;
  struct stat info {};
  if (stat(fmt::format("/proc/{}", file.pid).c_str(), &info) != 0) {
    status = Status::error(
        Code::kUnsupported,
        fmt::format(
            "shared memory: process {} runs but /proc/{} is hidden ({}): /proc is mounted with hidepid, "
            "or not mounted; run all ranks as one user with /proc visible",
            file.pid, file.pid, std::strerror(errno)),
        Scope::kPeer);
  } else if (error == EACCES || error == EPERM) {
    const std::string cause =
        info.st_uid == geteuid()
            ? std::string("it may not be inspected (a security module forbids it)")
            : fmt::format(
                  "it belongs to user {} and this process to user {} (or it is not dumpable: set-uid, "
                  "file capabilities)",
                  info.st_uid, geteuid());
    status =
        Status::error(Code::kUnsupported,
                      fmt::format("shared memory: no access to /proc/{}/fd/{}: {}", file.pid, file.fd, cause),
                      Scope::kPeer);
  } else if (error == ENOENT) {
    status = Status::error(
        Code::kPeerLost,
        fmt::format("shared memory: process {} has closed its descriptor {}", file.pid, file.fd),
        Scope::kPeer);
  } else {
    status = system_error(error, fmt::format("shared memory: cannot open /proc/{}/fd/{}: {}", file.pid,
                                             file.fd, std::strerror(error)));
  }
  status.sys_errno = error;
  return status;
}

}  // namespace

Result<ProcessFile> process_file(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) {
    const int error = errno;
    return fail(
        system_error(error, fmt::format("cannot inspect descriptor {}: {}", fd, std::strerror(error))));
  }
  return ProcessFile{.pid = getpid(), .fd = fd, .device = info.st_dev, .inode = info.st_ino};
}

Result<UniqueFd> open_process_file(const ProcessFile& file, int open_flags) {
  // O_PATH refers to the file without opening it; opening an unknown terminal or device could have side
  // effects.
  const UniqueFd held(open(fmt::format("/proc/{}/fd/{}", file.pid, file.fd).c_str(), O_PATH | O_CLOEXEC));
  if (!held.valid()) return fail(explain(file, errno));
  struct stat info {};
  if (fstat(held.get(), &info) != 0 || info.st_dev != file.device || info.st_ino != file.inode) {
    return fail(
        Code::kPeerLost,
        fmt::format("shared memory: descriptor {} of process {} now refers to another file: the process "
                    "has closed it, or has ended and its process id was reused",
                    file.fd, file.pid),
        Scope::kPeer);
  }
  UniqueFd opened(open(fmt::format("/proc/self/fd/{}", held.get()).c_str(), open_flags | O_CLOEXEC));
  if (!opened.valid()) return fail(explain(file, errno));
  return opened;
}

}  // namespace hips
