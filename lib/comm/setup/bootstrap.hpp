#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hips/hips.h>
#include <hips/status.hpp>

#include "lib/base/config/config.hpp"
#include "lib/base/result.hpp"

namespace hips::comm {

using Blob = std::vector<std::byte>;

/// How the ranks of a communicator to be find each other: rank, size and one collective.
///
/// Threads  one call at a time.
/// Errors   a failed exchange leaves the bootstrap unusable; make a new one.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  [[nodiscard]] virtual Rank rank() const = 0;
  [[nodiscard]] virtual Rank size() const = 0;
  /// Every rank gives bytes, each its own number of them; all get everybody's, in rank order.
  virtual Result<std::vector<Blob>> allgather(std::span<const std::byte> mine) = 0;
  /// Moves the runtime that the ranks came from, while a call on the communicator waits; empty where there is
  /// none. May be called after the bootstrap is gone.
  [[nodiscard]] virtual std::function<void()> progress() const { return {}; }
};

/// Shares the outcome of a phase: success only if it is success everywhere, else the same error on all ranks.
///
/// Errors   the first failed rank's status by rank order, with "rank r: " in front unless all ranks say the
///          same; or the status of the exchange itself.
Status agree(Bootstrap& bootstrap, const Status& mine);

/// Wraps the callbacks of the C API.
///
/// Owns     nothing: `callbacks.context` must outlive the bootstrap, and with `progress` the communicator.
/// Errors   kInvalidArgument: no allgather, or a rank outside the size. The exchange: kSystem, with the value
///          that the callback returned.
Result<std::unique_ptr<Bootstrap>> make_callback_bootstrap(const hips_bootstrap_t& callbacks);

/// Which rank this process is and where rank 0 listens.
struct TcpRendezvous {
  Rank rank = -1;
  Rank size = 0;
  std::string host;
  std::uint16_t port = 0;
  std::string token;  ///< of the job; strangers with another one are refused
  /// How long to wait for all ranks to come.
  std::int64_t connect_timeout_ns = 60'000'000'000;
  /// How long one exchange may take once all are there; a dead rank is noticed at once in any case.
  std::int64_t exchange_timeout_ns = INT64_MAX;
  /// A host that answers nothing for so long is dead.
  std::int64_t dead_after_ns = 4'000'000'000;
};

/// Reads HIPS_RANK, HIPS_SIZE and HIPS_ROOT; where none of them is set, torchrun's RANK, WORLD_SIZE,
/// MASTER_ADDR and MASTER_PORT (one port above it, because the port itself belongs to torchrun's store).
///
/// Errors   kInvalidArgument: names the variable that is missing or wrong, and what is right.
Result<TcpRendezvous> rendezvous_from(const Config& config, const Environment& environment);

/// Meets the other ranks over TCP: rank 0 listens, the others connect and try again until it does.
///
/// Errors   kTimeout: names the ranks that did not come. kMismatch: a rank of this job has another wire
///          version or another size. kInvalidArgument: rank 0 refused this process, and why.
/// Source   the rendezvous of torch.distributed's env:// and of NCCL's bootstrap.
Result<std::unique_ptr<Bootstrap>> make_tcp_bootstrap(const TcpRendezvous& rendezvous);

}  // namespace hips::comm
