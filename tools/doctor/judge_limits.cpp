#include <algorithm>

#include <fmt/format.h>

#include "tools/doctor/judge.hpp"

namespace hips::doctor {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
/// Staging of a communicator (HIPS_STAGING_BYTES, 8 MiB), queues of a few peers, and space for a second one.
constexpr std::uint64_t kLeastLocked = 16 * kMiB;
constexpr std::uint64_t kEnoughLocked = 1024 * kMiB;
/// A process has a control connection, a pipe and a segment for each local peer, besides the files of MPI.
constexpr std::uint64_t kEnoughFiles = 4096;

constexpr const char* kRaiseLocked =
    "echo '* - memlock unlimited' > /etc/security/limits.d/hips.conf, then log in again (services such as "
    "slurmd: "
    "LimitMEMLOCK=infinity; in this shell: ulimit -l unlimited)";

constexpr const char* kRaiseFiles =
    "echo '* - nofile 65536' > /etc/security/limits.d/hips-files.conf, then log in again; or docker run "
    "--ulimit nofile=65536";

void judge_locked(const ProcessLimits& limits, bool has_rails, Findings& findings) {
  if (!limits.locked_bytes) {
    findings.push_back({FindingLevel::kOk, "locked memory", "unlimited", ""});
    return;
  }
  const std::string size = size_text(*limits.locked_bytes);
  if (limits.may_lock_all) {
    findings.push_back(
        {FindingLevel::kOk, "locked memory",
         fmt::format("the limit of {} does not apply to this process (CAP_IPC_LOCK), but to other users",
                     size),
         ""});
    return;
  }
  if (!has_rails) {
    findings.push_back(
        {FindingLevel::kNote, "locked memory",
         fmt::format("RLIMIT_MEMLOCK is {}; HiPS locks no memory without an RDMA device", size), ""});
    return;
  }
  if (*limits.locked_bytes >= kEnoughLocked) {
    findings.push_back({FindingLevel::kOk, "locked memory", size, ""});
    return;
  }
  const bool least = *limits.locked_bytes < kLeastLocked;
  findings.push_back(
      {least ? FindingLevel::kError : FindingLevel::kWarning, "locked memory",
       fmt::format("RLIMIT_MEMLOCK is {}: {}", size,
                   least ? "too little for a communicator's staging and queues"
                         : "enough for a few communicators, but not for large registered buffers"),
       kRaiseLocked});
}

void judge_files(const ProcessLimits& limits, Findings& findings) {
  if (!limits.open_files || *limits.open_files >= kEnoughFiles) {
    findings.push_back({FindingLevel::kOk, "open files",
                        limits.open_files ? std::to_string(*limits.open_files) : "unlimited", ""});
    return;
  }
  const FindingLevel level = *limits.open_files < 256 ? FindingLevel::kWarning : FindingLevel::kNote;
  findings.push_back(
      {level, "open files",
       fmt::format("the limit of {} suffices for about {} ranks", *limits.open_files, *limits.open_files / 4),
       limits.open_files_hard && *limits.open_files_hard < kEnoughFiles
           ? kRaiseFiles
           : fmt::format("ulimit -n {}",
                         limits.open_files_hard ? std::to_string(*limits.open_files_hard) : "65536")});
}

void judge_memory(const ProcessLimits& limits, Findings& findings) {
  if (limits.shm_bytes > 0 && limits.shm_bytes <= 64 * kMiB)
    findings.push_back(
        {FindingLevel::kNote, "/dev/shm",
         fmt::format("{} MiB: HiPS does not use it, but Open MPI does and may fail with a bus error",
                     limits.shm_bytes / kMiB),
         "mount -o remount,size=2g /dev/shm, or docker run --shm-size=2g"});
  if (limits.huge_pages > 0 && limits.huge_page_bytes > 0 && limits.memory_bytes > 0 &&
      limits.huge_pages_free * limits.huge_page_bytes > limits.memory_bytes / 2)
    findings.push_back(
        {FindingLevel::kWarning, "huge pages",
         fmt::format("{} of {} MiB of memory are reserved for huge pages, which HiPS does not use",
                     limits.huge_pages_free * limits.huge_page_bytes / kMiB, limits.memory_bytes / kMiB),
         "sysctl vm.nr_hugepages=0"});
}

void judge_cpus(const ProcessLimits& limits, Findings& findings) {
  if (limits.num_cpus == 0) return;
  findings.push_back(
      {FindingLevel::kOk, "CPUs",
       limits.num_cpus == limits.num_online_cpus
           ? fmt::format("all {}", limits.num_cpus)
           : fmt::format("{} of {} ({})", limits.num_cpus, limits.num_online_cpus, limits.cpus),
       ""});
}

}  // namespace

std::string size_text(std::uint64_t bytes) {
  return bytes < kMiB ? fmt::format("{} KiB", bytes / 1024) : fmt::format("{} MiB", bytes / kMiB);
}

Findings judge_limits(const NodeFacts& node, const RailChoice& rails) {
  Findings findings;
  judge_locked(node.limits, !rails.by_rail.empty(), findings);
  judge_files(node.limits, findings);
  judge_memory(node.limits, findings);
  judge_cpus(node.limits, findings);
  return findings;
}

Findings judge_environment(const LoadedConfig& loaded) {
  Findings findings;
  const auto name_in = [](const std::string& message) {
    return message.substr(0, message.find_first_of("= "));
  };
  if (!loaded.status.ok())
    findings.push_back({FindingLevel::kError, "environment", loaded.status.message,
                        fmt::format("unset {}, or give it a valid value", name_in(loaded.status.message))});
  for (const std::string& warning : loaded.warnings)
    findings.push_back(
        {FindingLevel::kWarning, "environment", warning, fmt::format("unset {}", name_in(warning))});
  return findings;
}

Findings judge_node(const NodeFacts& node, const LoadedConfig& loaded, const RailChoice& rails) {
  Findings findings = judge_environment(loaded);
  for (Findings part :
       {judge_devices(node, loaded.config, rails), judge_limits(node, rails), judge_counters(node, rails)})
    findings.insert(findings.end(), part.begin(), part.end());
  return findings;
}

}  // namespace hips::doctor
