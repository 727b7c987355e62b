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
  Phases phases;  ///< its count is that of one queue pair
  bool sends = false, receives = false;
  bool stamps = false;  ///< note when each message was posted and done
};

/// One run of messages that are answered one by one.
struct PingPong {
  std::size_t bytes = 0;
  Phases phases;
  bool first = false;  ///< this end begins
};

/// What the last byte of target(0) has to be before a ping-pong: no message has it there first.
inline constexpr std::byte kNothingYet{1};

/// What is measured: the way from the memory of one end to that of the other.
///
/// Both ends make one, exchange address(), connect(), meet at a barrier, and call the same run.
/// Errors   of runs: kPeerLost, with the words of the device or of the control connection.
class Link {
 public:
  virtual ~Link() = default;
  [[nodiscard]] virtual std::string address() const = 0;
  virtual Status connect(const std::string& address, Watch& watch) = 0;
  virtual Result<Samples> stream(const Stream& run, Watch& watch) = 0;
  virtual Result<Samples> ping_pong(const PingPong& run, Watch& watch) = 0;

  [[nodiscard]] virtual PortWords port() const = 0;
  [[nodiscard]] virtual EndWords local() const = 0;
  [[nodiscard]] virtual EndWords remote() const = 0;
  /// Memory of queue pair `pair`, that messages go out from, and that the other end's come in.
  [[nodiscard]] virtual std::span<std::byte> source(std::uint32_t pair) = 0;
  [[nodiscard]] virtual std::span<std::byte> target(std::uint32_t pair) = 0;
  /// How many buffers there are: messages of several queue pairs may share one.
  [[nodiscard]] virtual std::uint32_t num_buffers() const = 0;
};

/// Bare work requests: RDMA writes as ib_write_bw and ib_write_lat post them.
Result<std::unique_ptr<Link>> make_raw_link(const Options& options, const verbs::PortChoice& port);
/// Notified puts of transports/verbs.
Result<std::unique_ptr<Link>> make_put_link(const Options& options, const verbs::PortChoice& port);

/// The port that -d, -i and -x mean.
///
/// Errors   those of verbs::find_ports(), in the words of the flags.
Result<verbs::PortChoice> choose_port(const Options& options);

/// Names flags where a message names the variables of the library.
Status in_words_of_flags(Status status);

/// What the banner says of a port, but for the inline data.
Result<PortWords> words_of(const Options& options, const verbs::PortChoice& port);

}  // namespace hips::write
