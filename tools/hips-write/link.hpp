#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lib/base/result.hpp"
#include "tools/hips-write/control.hpp"
#include "tools/hips-write/options.hpp"
#include "tools/hips-write/phases.hpp"
#include "tools/hips-write/report.hpp"
#include "tools/hips-write/samples.hpp"
#include "transports/verbs/verbs.hpp"

namespace hips::write {

/// One run of messages in one direction or both.
struct Stream {
  std::size_t bytes = 0;
  Phases phases;  ///< its count is per queue pair
  bool sends = false, receives = false;
  bool stamps = false;  ///< records when each message was posted and complete
};

/// One run of messages, each sent after the answer to the previous one.
struct PingPong {
  std::size_t bytes = 0;
  Phases phases;
  bool first = false;  ///< this end sends first
};

/// The last byte of target(0) before a ping-pong. No first message has it there.
inline constexpr std::byte kNotArrived{1};

/// What is measured: the way from the memory of one end to that of the other.
///
/// Both ends create one, exchange address(), connect(), wait for each other at a barrier, and call the same run.
/// Errors   of runs: kPeerLost, with the message of the device or of the control connection.
class WriteLink {
 public:
  virtual ~WriteLink() = default;
  [[nodiscard]] virtual std::string address() const = 0;
  virtual Status connect(const std::string& address, PeerMonitor& monitor) = 0;
  virtual Result<Samples> stream(const Stream& run, PeerMonitor& monitor) = 0;
  virtual Result<Samples> ping_pong(const PingPong& run, PeerMonitor& monitor) = 0;

  [[nodiscard]] virtual PortDescription port() const = 0;
  [[nodiscard]] virtual EndDescription local() const = 0;
  [[nodiscard]] virtual EndDescription remote() const = 0;
  /// The memory of queue pair `pair` from which messages are sent, and into which those of the other end
  /// arrive.
  [[nodiscard]] virtual std::span<std::byte> source(std::uint32_t pair) = 0;
  [[nodiscard]] virtual std::span<std::byte> target(std::uint32_t pair) = 0;
  /// The number of buffers in each direction: several queue pairs may share one.
  [[nodiscard]] virtual std::uint32_t num_buffers() const = 0;
};

/// A link of bare work requests: RDMA writes posted as by ib_write_bw and ib_write_lat.
Result<std::unique_ptr<WriteLink>> make_raw_link(const WriteOptions& options, const verbs::PortChoice& port);
/// A link of notified puts of transports/verbs.
Result<std::unique_ptr<WriteLink>> make_put_link(const WriteOptions& options, const verbs::PortChoice& port);

/// Finds the port that -d, -i and -x select.
///
/// Errors   those of verbs::find_ports(), with the names of the flags.
Result<verbs::PortChoice> choose_port(const WriteOptions& options);

/// Replaces the library's variables in a message by the flags of these programs.
Status with_flag_names(Status status);

/// Describes a port for the banner, without inline_bytes.
Result<PortDescription> describe_port(const WriteOptions& options, const verbs::PortChoice& port);

}  // namespace hips::write
