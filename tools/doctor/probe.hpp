#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/config/config.hpp"
#include "lib/comm/setup/bootstrap.hpp"
#include "lib/comm/setup/transport_registry.hpp"
#include "tools/doctor/job.hpp"

namespace hips::doctor {

/// Size of a trial's large message: several packets of any MTU, to detect paths that pass only small packets.
inline constexpr std::size_t kLargeBytes = 64U << 10;

/// The transports of a rank for its trials, created by the registry as for a communicator.
class ProbeTransports {
 public:
  /// Creates shared memory, and verbs if the rank has rails. Adds failures to `report`.
  static ProbeTransports make(const Config& config, RankReport& report);

  /// The transport of a rail; null if it could not be created.
  [[nodiscard]] transport::Transport* on(Rail rail) const;

 private:
  comm::TransportSet shm_, verbs_;
};

struct ProbeOptions {
  std::int64_t timeout_ns = 8'000'000'000;   ///< of one path
  std::int64_t budget_ns = 120'000'000'000;  ///< of all; paths beyond it are not tried
};

struct ProbeResult {
  std::vector<Trial> trials;  ///< of this rank
  std::size_t untried = 0;    ///< paths of the job for which no time was left
};

/// Probes paths round by round: connects, sends empty messages in both directions, then a large one.
///
/// Threads  collective: all ranks of the bootstrap call it with the same paths.
/// Errors   those of the bootstrap, which name a dead or missing rank. A path that does not work is reported
/// in
///          its trial.
Result<ProbeResult> probe(comm::Bootstrap& bootstrap, const ProbeTransports& transports,
                          std::span<const ProbePath> paths, const ProbeOptions& options);

}  // namespace hips::doctor
