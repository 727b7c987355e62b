#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/config.hpp"
#include "lib/comm/bootstrap.hpp"
#include "lib/comm/transport_registry.hpp"
#include "tools/doctor/job.hpp"

namespace hips::doctor {

/// In one message of a trial: more than one packet of any MTU, so that a way that carries only small packets
/// is found out.
inline constexpr std::size_t kLargeBytes = 64U << 10;

/// What a rank tries its ways with: the transports that HiPS would make, made by its registry.
class Instruments {
 public:
  /// Makes shared memory, and verbs where the rank has rails; `report` learns what cannot be made.
  static Instruments make(const Config& config, RankReport& report);

  /// Null where the way's transport could not be made.
  [[nodiscard]] transport::Transport* on(Rail rail) const;

 private:
  comm::TransportSet shm_, verbs_;
};

struct ProbeOptions {
  std::int64_t patience_ns = 8'000'000'000;  ///< of one way
  std::int64_t budget_ns = 120'000'000'000;  ///< of all; ways beyond it are not tried
};

struct ProbeResult {
  std::vector<Trial> trials;  ///< of this rank
  std::size_t untried = 0;    ///< ways of the job for which no time was left
};

/// Tries ways round by round: connects, sends empty messages to and fro, then a large one.
///
/// Threads  collective: all ranks of the bootstrap call it with the same ways.
/// Errors   those of the bootstrap: a rank is gone or does not answer, and which. A way that does not work is
/// no
///          error; it is in its trial.
Result<ProbeResult> probe(comm::Bootstrap& bootstrap, const Instruments& instruments,
                          std::span<const Way> ways, const ProbeOptions& options);

}  // namespace hips::doctor
