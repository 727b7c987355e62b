#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/base/config/config.hpp"
#include "lib/base/result.hpp"
#include "lib/base/wait/clock.hpp"
#include "lib/comm/setup/bootstrap.hpp"
#include "lib/comm/setup/design.hpp"
#include "lib/comm/setup/process_info.hpp"
#include "lib/cost/constants.hpp"

namespace hips::comm {

/// What this process knows of the network between nodes: measured by the first communicator that needs it, and again by one of far
/// more nodes.
///
/// Threads  any.
std::optional<cost::Constants> known_network();
void remember_network(const cost::Constants& constants);
/// Whether what was measured says enough of the network between the nodes of these processes. Between two nodes nothing arrives at
/// once, so it does not show what a message takes of a rank that has several.
bool is_enough_for(const std::vector<ProcessInfo>& processes, const cost::Constants& measured);

/// The inputs of measure_network().
struct MeasurementOrder {
  const Config& config;
  Clock* clock = nullptr;
  std::uint64_t id = 0;  ///< of the communicator
  const Design& design;
  const std::vector<ProcessInfo>& processes;
};

/// True if the plans between nodes are left to HiPS and may depend on times.
bool wants_measurement(const Design& design, const Config& config, const std::vector<ProcessInfo>& processes);

/// The result of measure_network().
struct Measurement {
  std::optional<cost::Constants>
      constants;  ///< none if the times could not be taken; the set-up that follows will say why
  /// Keeps the connections open until the communicator has its own, which are the same ones.
  std::shared_ptr<void> connections;
};

/// Times small and middle-sized allreduces between the first ranks of the nodes, in a team of their own, while the others wait.
/// All ranks call it and get the same constants.
///
/// Cost     four exchanges of the bootstrap; two calls of few bytes by each candidate, and more by those that may be the fastest, there and
///          with cost::kMiddleBytes; calls of growing vectors until one takes 10 ms or shows the rate. Some milliseconds on a fast
///          network, up to 200 at 200 Mbit/s, and some fifty round trips where those take long.
/// Errors   those of the bootstrap.
Result<Measurement> measure_network(Bootstrap& bootstrap, const MeasurementOrder& order);

}  // namespace hips::comm
