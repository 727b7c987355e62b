#pragma once

#include <cstdint>

#include <hips/status.hpp>

#include "lib/exec/port_set.hpp"

namespace hips::exec {

struct Connection;
struct EnginePort;
struct Posted;
struct ReadySegment;

/// What the engine tells a team, and asks it for. TeamImpl is the only one.
///
/// Threads  the progress owner only.
class EngineTeam {
 public:
  // A peer has written to memory of this rank.
  virtual void on_arrival(std::int32_t channel, std::int32_t slot) = 0;
  virtual void on_credits(std::int32_t channel, std::uint32_t credits) = 0;
  virtual void on_grant(std::int32_t channel) = 0;

  // A request of the team has ended: completed, dropped before it was posted, or its connection broke before
  // the NIC had confirmed that the peer received the data.
  virtual void on_completion(const Posted& posted) = 0;
  virtual void on_lost(const Posted& posted) = 0;
  virtual void on_unacknowledged(const Posted& posted) = 0;

  virtual void on_broken(const Connection& connection) = 0;
  virtual void on_port(const EnginePort& port) = 0;
  /// Another thread has handed something over, or reported a failure.
  virtual void on_control() = 0;
  /// An exception has left the team's state unknown: ends all operations and reports `status`.
  virtual void on_exception(Status status) noexcept = 0;

  /// Processes work lists, NIC queues and credits as far as possible; true if anything happened.
  virtual bool advance() = 0;
  /// Whether it has outstanding operations or credits to return. The engine drops a team that is not busy from
  /// its active list.
  [[nodiscard]] virtual bool busy() const = 0;
  virtual void set_listed(bool listed) = 0;
  /// The ports of the outstanding operations; all, if there is none.
  [[nodiscard]] virtual PortSet used_ports() const = 0;
  /// Puts the segment into the port's batch; false if it cannot be sent after all.
  virtual bool batch_segment(EnginePort& port, const ReadySegment& ready) = 0;

 protected:
  ~EngineTeam() = default;
};

}  // namespace hips::exec
