#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hips/hips.h>
#include <hips/status.hpp>

#include "lib/base/config/config.hpp"
#include "lib/base/exchange.hpp"
#include "lib/base/result.hpp"

namespace hips::comm {

using hips::Blob;

/// Connects the ranks before they have a communicator: rank, size and one exchange among all.
///
/// Threads  one call at a time.
/// Errors   a failed exchange leaves the bootstrap unusable; create a new one.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  [[nodiscard]] virtual Rank rank() const = 0;
  [[nodiscard]] virtual Rank size() const = 0;
  /// Gathers the bytes of all ranks, in rank order. Each rank may pass a different number of bytes.
  virtual Result<std::vector<Blob>> allgather(std::span<const std::byte> mine) = 0;
  /// The same with bytes for single ranks beside. By default an allgather of all of it, which gives every rank what only some need.
  virtual Result<Inbound> exchange(const Outbound& mine);
  /// The number of exchanges that have taken place, so that a rank knows it of one that threw, too. None: it does not.
  [[nodiscard]] virtual std::optional<std::uint64_t> num_exchanges() const { return std::nullopt; }
  /// Makes progress in the runtime that started the ranks, while a call on the communicator waits; empty if
  /// there is none. The function may be called after the bootstrap is destroyed.
  [[nodiscard]] virtual std::function<void()> progress() const { return {}; }
};

/// Exchanges of a set-up that a rank can end on all ranks when it cannot go on: with each goes whether it does.
///
/// Errors   of an exchange: the status of the lowest failed rank, prefixed with "rank r: " unless all ranks have the same one; else
///          those of the bootstrap.
class SetUpExchanges final : public Bootstrap {
 public:
  explicit SetUpExchanges(Bootstrap& bootstrap) : bootstrap_(bootstrap) {}
  [[nodiscard]] Rank rank() const override { return bootstrap_.rank(); }
  [[nodiscard]] Rank size() const override { return bootstrap_.size(); }
  Result<std::vector<Blob>> allgather(std::span<const std::byte> mine) override;
  Result<Inbound> exchange(const Outbound& mine) override;
  // The same where this rank may have none: all ranks get its error then.
  Result<std::vector<Blob>> allgather_outcomes(const Result<Blob>& mine);
  Result<Inbound> exchange_outcomes(const Result<Outbound>& mine);
  /// Success if all ranks have succeeded, else the same error on all. A rank that has no memory after it is not heard.
  Status agree(const Status& mine);
  [[nodiscard]] std::function<void()> progress() const override { return bootstrap_.progress(); }

  /// Takes part in the exchange in which the others wait, and ends it with `status`; gives what all ranks get. Not where an
  /// exchange of this rank has failed: the others hear of it when the bootstrap goes.
  Status give_up(const Status& status) noexcept;
  /// The others wait in no exchange any more: a later give_up() takes part in none.
  void end() { others_wait_ = false; }

 private:
  enum class Next { kAnother, kNone };  ///< after the exchange
  Result<Inbound> exchange(const Outbound& mine, const Status& status, Next next = Next::kAnother);
  Result<Inbound> exchange_or_throw(const Outbound& mine, Next next);

  Bootstrap& bootstrap_;
  bool others_wait_ = true;  ///< in an exchange, for this rank
};

/// Wraps the callbacks of the C API.
///
/// Owns     nothing: `callbacks.context` must outlive the bootstrap, and with `progress` the communicator.
/// Errors   kInvalidArgument: no allgather, or a rank out of range. An exchange: kSystem, with the value that the
///          callback returned.
Result<std::unique_ptr<Bootstrap>> make_callback_bootstrap(const hips_bootstrap_t& callbacks);

/// The rank of this process and the address at which rank 0 listens.
struct TcpRendezvous {
  Rank rank = -1;
  Rank size = 0;
  std::string host;
  std::uint16_t port = 0;
  std::string token;  ///< job token; a process with a different one is rejected
  /// How long to wait for all ranks to connect.
  std::int64_t connect_timeout_ns = 60'000'000'000;
  /// How long one exchange may take after all ranks have connected. A dead rank is detected immediately.
  std::int64_t exchange_timeout_ns = INT64_MAX;
  /// A node that does not respond for this long is dead.
  std::int64_t dead_after_ns = 4'000'000'000;
};

/// Reads HIPS_RANK, HIPS_SIZE and HIPS_ROOT. If none of them is set, reads torchrun's RANK, WORLD_SIZE,
/// MASTER_ADDR and MASTER_PORT, and uses MASTER_PORT + 1, because torchrun's store listens on MASTER_PORT.
/// With HIPS_ROOT alone, rank and size are those of mpirun, mpiexec.hydra or srun. Under srun HIPS_ROOT may be
/// missing, too (slurm_step.hpp).
///
/// Errors   kInvalidArgument: names the variable that is missing or invalid, and a valid value.
Result<TcpRendezvous> rendezvous_from(const Config& config, const Environment& environment);

/// Connects all ranks over TCP. Rank 0 listens; the others retry until they can connect to it.
///
/// Errors   kTimeout: names the missing ranks. kMismatch: a rank of this job has a different wire version or
///          size. kInvalidArgument: rank 0 rejected this process; says why.
/// Source   the rendezvous of torch.distributed's env:// and of NCCL's bootstrap.
Result<std::unique_ptr<Bootstrap>> make_tcp_bootstrap(const TcpRendezvous& rendezvous);

}  // namespace hips::comm
