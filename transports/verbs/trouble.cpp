#include "transports/verbs/trouble.hpp"

#include <sys/resource.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

namespace hips::verbs {
namespace {

constexpr const char* kRaiseMemlock =
    "run \"ulimit -l unlimited\" in the shell that starts the job, or put \"* - memlock unlimited\" into "
    "/etc/security/limits.d/hips.conf and log in again (for a service such as slurmd: LimitMEMLOCK=infinity)";

std::string memlock_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  if (limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return fmt::format("{} KiB", limit.rlim_cur / 1024);
}

std::string remedy_for(ibv_wc_status status, const PeerName& peer, const RetrySettings& retry) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return fmt::format(
          "it did not answer for {:.1f} s: its process or node has failed, or the path is broken; try "
          "\"ping {}\", check that switches do not drop RoCE packets (PFC, ECN), or raise HIPS_IB_TIMEOUT ({}) "
          "or HIPS_IB_RETRY_CNT ({})",
          4.096e-6 * std::exp2(retry.timeout) * (retry.retry_count + 1), peer.address, retry.timeout,
          retry.retry_count);
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "it has no receives posted; its process hangs or runs another version";
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
      return "its memory is deregistered, so it has failed or ended; see its output";
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_QP_OP_ERR:
      return "memory was deregistered or freed while it was being sent";
    default:
      return "see its output and the kernel's log (dmesg) on both nodes";
  }
}

}  // namespace

std::string PeerName::to_string() const {
  return fmt::format("pid {} on {} ({}, {})", pid, host, port, address);
}

Status completion_error(const std::string& port, const PeerName& peer, ibv_wc_status wc_status,
                        std::uint32_t vendor_error, const RetrySettings& retry) {
  const bool ours = wc_status == IBV_WC_LOC_PROT_ERR || wc_status == IBV_WC_LOC_LEN_ERR ||
                    wc_status == IBV_WC_LOC_QP_OP_ERR;
  Status status =
      Status::error(ours ? Code::kInternal : Code::kPeerLost,
                    fmt::format("verbs: {} lost the connection to {}: {} (status {}, vendor {:#x}); {}", port,
                                peer.to_string(), ibv_wc_status_str(wc_status), static_cast<int>(wc_status),
                                vendor_error, remedy_for(wc_status, peer, retry)),
                    Scope::kPeer);
  status.sys_errno = static_cast<int>(wc_status);
  return status;
}

Status call_error(const std::string& port, const std::string& call, int error) {
  Code code = Code::kSystem;
  std::string remedy = "see the kernel's log (dmesg)";
  switch (error) {
    case ENOMEM:
      code = Code::kOutOfMemory;
      remedy = fmt::format(
          "out of locked memory (RLIMIT_MEMLOCK is {}) or of the device's objects (\"rdma resource\"): "
          "{}",
          memlock_limit(), kRaiseMemlock);
      break;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ETIMEDOUT:
    case EADDRNOTAVAIL:
      code = Code::kPeerLost;
      remedy =
          "no route: give both NICs addresses of one network, or choose others with HIPS_IB_HCA and "
          "HIPS_IB_GID_INDEX";
      break;
    case EPERM:
    case EACCES:
      remedy = "see the permissions of /dev/infiniband";
      break;
    default:
      break;
  }
  Status status =
      Status::error(code, fmt::format("verbs: {}: {}: {}; {}", port, call, std::strerror(error), remedy),
                    code == Code::kPeerLost ? Scope::kPeer : Scope::kProcess);
  status.sys_errno = error;
  return status;
}

Status registration_error(const std::string& port, std::size_t bytes, int error) {
  if (error != ENOMEM && error != EAGAIN)
    return call_error(port, fmt::format("registering {} bytes of memory", bytes), error);
  Status status = Status::error(
      Code::kOutOfMemory,
      fmt::format("verbs: {} cannot lock {} KiB of memory: {}; RLIMIT_MEMLOCK is {}: {}; or lower "
                  "HIPS_STAGING_BYTES",
                  port, (bytes + 1023) / 1024, std::strerror(error), memlock_limit(), kRaiseMemlock),
      Scope::kProcess);
  status.sys_errno = error;
  return status;
}

}  // namespace hips::verbs
