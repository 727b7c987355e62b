#include "lib/base/os/printed.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace hips {

Status printed() {
  // If an earlier write failed and there is nothing left to flush, errno still holds its reason.
  if (std::ferror(stdout) == 0) errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return Status::success();
  const int error = errno;
  Status status =
      Status::error(Code::kSystem, std::string("cannot write the output") +
                                       (error == 0 ? "" : std::string(": ") + std::strerror(error)));
  status.sys_errno = error;
  return status;
}

}  // namespace hips
