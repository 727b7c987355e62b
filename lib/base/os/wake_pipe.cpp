#include "lib/base/os/wake_pipe.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace hips {

Result<WakePipe> WakePipe::create() {
  WakePipe made;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    const int error = errno;
    const char* hint = error == EMFILE ? " (raise the limit of open files, ulimit -n)" : "";
    Status status =
        Status::error(Code::kSystem, fmt::format("shared memory: pipe2: {}{}", std::strerror(error), hint),
                      Scope::kProcess);
    status.sys_errno = error;
    return fail(std::move(status));
  }
  made.read_end_.reset(ends[0]);
  made.write_end_.reset(ends[1]);  // kept open, so that the pipe never hangs up
  // One byte makes the pipe readable. The default size of 64 KiB would count against the user's limit of pipe
  // pages.
  (void)fcntl(ends[0], F_SETPIPE_SZ, 4096);
  auto name = process_file(ends[0]);
  if (!name) return fail(std::move(name).error());
  made.name_ = *name;
  return made;
}

void WakePipe::empty() const {
  std::array<char, 512> bytes;
  while (read(read_end_.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())) {
  }
}

Result<UniqueFd> WakePipe::open_end(const ProcessFile& name) {
  return open_process_file(name, O_RDWR | O_NONBLOCK);
}

void WakePipe::ring(const UniqueFd& end) {
  const char byte = 1;
  // If the pipe is full, it is readable already. No other error can occur: this process holds both ends.
  [[maybe_unused]] const ssize_t written = write(end.get(), &byte, 1);
}

}  // namespace hips
