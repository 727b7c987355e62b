#pragma once

#include <hips/hips.h>
#include <hips/status.hpp>

namespace hips {

/// What hips_last_error_info() gives, as a Status: code, scope, rank at fault, NIC, errno and sentence of the
/// calling thread's last failed call. Its `code` is kOk when no call has failed.
///
/// Threads  any; each thread has its own last error.
inline Status last_error() {
  hips_error_info_t info = HIPS_ERROR_INFO_INIT;
  (void)hips_last_error_info(&info);
  Status status = Status::error(static_cast<Code>(info.code), info.text, static_cast<Scope>(info.scope));
  status.rank = info.rank;
  status.rail = info.rail;
  status.sys_errno = info.sys_errno;
  return status;
}

/// Throws the last error as an Error unless `status`, which a call of the C API has just returned, is
/// HIPS_OK.
inline void throw_if_failed(hips_status_t status) {
  if (status != HIPS_OK) throw Error(last_error());
}

}  // namespace hips
