#include "lib/comm/setup/bootstrap.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "lib/base/exception_status.hpp"
#include "lib/comm/control/wire.hpp"
#include "lib/comm/setup/agreement.hpp"
#include "lib/comm/setup/slurm_step.hpp"

namespace hips::comm {
namespace {

/// The callback gathers equal sizes only: what ranks have beside their lengths in the first call, and in any call.
constexpr std::size_t kMostHeads = 64U << 10U, kMostPieces = 1U << 20U;

class CallbackBootstrap final : public Bootstrap {
 public:
  explicit CallbackBootstrap(const hips_bootstrap_t& callbacks) {
    std::memcpy(&callbacks_, &callbacks, std::min(callbacks.struct_size, sizeof callbacks_));
    const auto num_ranks = static_cast<std::size_t>(callbacks_.size);
    head_ = std::clamp<std::size_t>(kMostHeads / num_ranks, 64, 1024);
    piece_.resize(std::clamp<std::size_t>(kMostPieces / num_ranks, head_, 8U << 10U));
    pieces_.resize(num_ranks * piece_.size());
  }
  [[nodiscard]] Rank rank() const override { return callbacks_.rank; }
  [[nodiscard]] Rank size() const override { return callbacks_.size; }

  [[nodiscard]] std::function<void()> progress() const override {
    if (callbacks_.progress == nullptr) return {};
    return [call = callbacks_.progress, context = callbacks_.context] { call(context); };
  }

  Result<std::vector<Blob>> allgather(std::span<const std::byte> mine) override {
    // In pieces that fit into memory which is there from the beginning: a rank that has none for the result still makes the calls that
    // the others make. The first piece begins with the length, and most of what a set-up exchanges has room beside it.
    constexpr std::size_t kLength = sizeof(std::uint64_t);
    const auto num_ranks = static_cast<std::size_t>(size());
    std::vector<Blob> blobs(num_ranks);
    std::vector<std::size_t> bytes(num_ranks);
    bool has_memory = true;
    const auto keep = [&](std::size_t r, const std::byte* begin, std::size_t count) {
      try {
        if (has_memory) blobs[r].insert(blobs[r].end(), begin, begin + count);
      } catch (const std::bad_alloc&) {
        has_memory = false;
      }
    };
    const std::uint64_t my_bytes = mine.size();
    const std::size_t room = head_ - kLength;
    std::memcpy(piece_.data(), &my_bytes, kLength);
    std::copy_n(mine.begin(), std::min(mine.size(), room), piece_.begin() + kLength);
    if (Status status = call(head_); !status.ok()) return fail(status);
    for (std::size_t r = 0; r < num_ranks; ++r) {
      const std::byte* const begin = pieces_.data() + r * head_;
      std::uint64_t length = 0;
      std::memcpy(&length, begin, kLength);
      bytes[r] = length;
      keep(r, begin + kLength, std::min(bytes[r], room));
    }
    const std::size_t longest = *std::ranges::max_element(bytes);
    for (std::size_t at = room; at < longest; at += piece_.size()) {
      const std::size_t count = std::min(piece_.size(), longest - at);
      if (mine.size() > at)
        std::copy_n(mine.begin() + static_cast<std::ptrdiff_t>(at), std::min(count, mine.size() - at),
                    piece_.begin());
      if (Status status = call(count); !status.ok()) return fail(status);
      for (std::size_t r = 0; r < num_ranks; ++r)
        if (bytes[r] > at) keep(r, pieces_.data() + r * count, std::min(count, bytes[r] - at));
    }
    ++num_exchanges_;
    if (!has_memory) throw std::bad_alloc();
    return blobs;
  }
  [[nodiscard]] std::optional<std::uint64_t> num_exchanges() const override { return num_exchanges_; }

 private:
  /// Gathers the first bytes of `piece_` in `pieces_`.
  Status call(std::size_t bytes) {
    const int result = callbacks_.allgather(callbacks_.context, piece_.data(), pieces_.data(), bytes);
    if (result == 0) return Status::success();
    return Status::error(
        Code::kSystem,
        fmt::format("bootstrap: the caller's allgather of {} bytes returned {} instead of 0", bytes, result));
  }

  hips_bootstrap_t callbacks_{};
  std::uint64_t num_exchanges_ = 0;
  std::size_t head_ = 0;
  Blob piece_, pieces_;  ///< of this rank, and of all
};

const std::string* find(const Environment& environment, std::string_view name) {
  const auto entry =
      std::find_if(environment.begin(), environment.end(), [&](const auto& e) { return e.first == name; });
  return entry == environment.end() ? nullptr : &entry->second;
}

template <typename T>
Result<T> number(std::string_view name, std::string_view text, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    return fail(Code::kInvalidArgument,
                fmt::format("{}=\"{}\" is wrong: give a number from {} to {}", name, text, least, most));
  return value;
}

Status missing(std::string_view name, std::string_view set, std::string_view right) {
  return Status::error(Code::kInvalidArgument,
                       fmt::format("{} is set but {} is not: set {}", set, name, right));
}

Status check_rank(std::string_view rank_name, std::string_view size_name, const TcpRendezvous& rendezvous) {
  if (rendezvous.rank < rendezvous.size) return Status::success();
  return Status::error(Code::kInvalidArgument,
                       fmt::format("{}={} is out of range [0, {}] for {}={}", rank_name, rendezvous.rank,
                                   rendezvous.size - 1, size_name, rendezvous.size));
}

/// The variables of torchrun, torch.distributed.launch and other launchers that support env://.
Result<TcpRendezvous> torch_rendezvous(TcpRendezvous rendezvous, const Environment& environment) {
  const std::string* rank = find(environment, "RANK");
  const std::string* size = find(environment, "WORLD_SIZE");
  if (rank == nullptr || size == nullptr)
    return fail(
        Code::kInvalidArgument,
        "the rank of this process is unknown: set HIPS_RANK, HIPS_SIZE and HIPS_ROOT=host:port, or start it "
        "under torchrun or srun, or under mpirun or mpiexec.hydra with HIPS_ROOT=host:port");
  constexpr Rank kMostRanks = std::numeric_limits<Rank>::max();
  const auto parsed_rank = number<Rank>("RANK", *rank, 0, kMostRanks);
  if (!parsed_rank) return fail(parsed_rank.error());
  const auto parsed_size = number<Rank>("WORLD_SIZE", *size, 1, kMostRanks);
  if (!parsed_size) return fail(parsed_size.error());
  rendezvous.rank = *parsed_rank;
  rendezvous.size = *parsed_size;
  if (Status status = check_rank("RANK", "WORLD_SIZE", rendezvous); !status.ok()) return fail(status);
  if (rendezvous.token.empty())
    if (const std::string* run = find(environment, "TORCHELASTIC_RUN_ID")) rendezvous.token = *run;
  if (rendezvous.size == 1) return rendezvous;

  const std::string* address = find(environment, "MASTER_ADDR");
  const std::string* port = find(environment, "MASTER_PORT");
  if (address == nullptr || address->empty())
    return fail(missing("MASTER_ADDR", "WORLD_SIZE", "MASTER_ADDR to the address of rank 0's node"));
  if (port == nullptr) return fail(missing("MASTER_PORT", "WORLD_SIZE", "MASTER_PORT to a free port"));
  const auto parsed_port = number<std::uint16_t>("MASTER_PORT", *port, 1, 65534);
  if (!parsed_port) return fail(parsed_port.error());
  rendezvous.host = *address;
  // torchrun's store already listens on MASTER_PORT.
  rendezvous.port = static_cast<std::uint16_t>(*parsed_port + 1);
  return rendezvous;
}

/// The variables in which a launcher passes rank and size.
struct LauncherVariables {
  std::string_view launcher, rank, size;
};
constexpr std::array kLaunchers = {
    LauncherVariables{"torchrun", "RANK", "WORLD_SIZE"},
    LauncherVariables{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    LauncherVariables{"mpiexec.hydra", "PMI_RANK", "PMI_SIZE"},
    LauncherVariables{"srun", "SLURM_PROCID", "SLURM_NTASKS"},
};

/// Rank and size from a launcher that passes no address of rank 0, which is HIPS_ROOT.
Result<TcpRendezvous> launcher_rendezvous(TcpRendezvous rendezvous, const LauncherVariables& names,
                                          const Environment& environment, std::string_view root) {
  constexpr Rank kMostRanks = std::numeric_limits<Rank>::max();
  const auto rank = number<Rank>(names.rank, *find(environment, names.rank), 0, kMostRanks);
  if (!rank) return fail(rank.error());
  const auto size = number<Rank>(names.size, *find(environment, names.size), 1, kMostRanks);
  if (!size) return fail(size.error());
  rendezvous.rank = *rank;
  rendezvous.size = *size;
  if (Status status = check_rank(names.rank, names.size, rendezvous); !status.ok()) return fail(status);
  if (root.empty() && rendezvous.size > 1)
    return fail(
        Code::kInvalidArgument,
        fmt::format(
            "{} started this process as rank {} of {}, but the address of rank 0 is unknown: set "
            "HIPS_ROOT=host:port to a free port of rank 0's node, or start an MPI program with hips run",
            names.launcher, rendezvous.rank, rendezvous.size));
  return rendezvous;
}

/// A task of srun: without HIPS_ROOT rank 0 listens on the first node of the step.
Result<TcpRendezvous> slurm_rendezvous(TcpRendezvous rendezvous, const SlurmStep& step) {
  constexpr Rank kMostRanks = std::numeric_limits<Rank>::max();
  const auto rank = number<Rank>("SLURM_PROCID", step.rank, 0, kMostRanks);
  if (!rank) return fail(rank.error());
  const auto size = number<Rank>("SLURM_STEP_NUM_TASKS", step.size, 1, kMostRanks);
  if (!size) return fail(size.error());
  rendezvous.rank = *rank;
  rendezvous.size = *size;
  if (Status status = check_rank("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", rendezvous); !status.ok())
    return fail(status);
  if (rendezvous.size == 1) return rendezvous;
  rendezvous.host = step.first_node;
  rendezvous.port = step.port;
  if (rendezvous.token.empty()) rendezvous.token = "Slurm's step " + step.name;
  return rendezvous;
}

/// The launcher that started this process; null if none of those that are known.
const LauncherVariables* launcher_of(const Environment& environment) {
  const auto found = std::ranges::find_if(kLaunchers, [&](const LauncherVariables& names) {
    return find(environment, names.rank) != nullptr && find(environment, names.size) != nullptr;
  });
  return found == kLaunchers.end() ? nullptr : &*found;
}

}  // namespace

Result<TcpRendezvous> rendezvous_from(const Config& config, const Environment& environment) {
  TcpRendezvous rendezvous;
  rendezvous.token = config.job_token;
  rendezvous.dead_after_ns = config.dead_after_ns;
  if (config.timeout_ns) {
    rendezvous.connect_timeout_ns = std::min(rendezvous.connect_timeout_ns, *config.timeout_ns);
    rendezvous.exchange_timeout_ns = *config.timeout_ns;
  }
  if (!config.rank && !config.size) {
    const LauncherVariables* const launcher = launcher_of(environment);
    // mpirun starts its daemons with srun, but srun --mpi=pmi2 sets the variables of mpiexec.hydra.
    const bool may_be_srun =
        launcher == nullptr || launcher->rank == "PMI_RANK" || launcher->rank == "SLURM_PROCID";
    if (config.root.empty() && may_be_srun)
      if (const auto step = slurm_step(environment)) return slurm_rendezvous(std::move(rendezvous), *step);
    // torchrun passes the address of rank 0, too.
    if (config.root.empty() && (launcher == nullptr || launcher == &kLaunchers.front()))
      return torch_rendezvous(rendezvous, environment);
    if (launcher != nullptr) {
      auto found = launcher_rendezvous(rendezvous, *launcher, environment, config.root);
      if (!found) return found;
      rendezvous = *std::move(found);
    }
  }
  if (rendezvous.rank < 0) {
    if (!config.rank)
      return fail(missing("HIPS_RANK", config.size ? "HIPS_SIZE" : "HIPS_ROOT",
                          "HIPS_RANK, HIPS_SIZE and HIPS_ROOT"));
    if (!config.size) return fail(missing("HIPS_SIZE", "HIPS_RANK", "HIPS_SIZE to the number of ranks"));
    rendezvous.rank = *config.rank;
    rendezvous.size = *config.size;
    if (Status status = check_rank("HIPS_RANK", "HIPS_SIZE", rendezvous); !status.ok()) return fail(status);
  }
  // A single rank needs no rendezvous.
  if (config.root.empty() && rendezvous.size == 1) return rendezvous;
  if (config.root.empty())
    return fail(
        missing("HIPS_ROOT", "HIPS_SIZE", "HIPS_ROOT=host:port to the address at which rank 0 listens"));

  const std::size_t colon = config.root.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return fail(Code::kInvalidArgument,
                fmt::format("HIPS_ROOT=\"{}\" is wrong: give host:port, such as node1:4711", config.root));
  const auto port = number<std::uint16_t>("HIPS_ROOT's port", config.root.substr(colon + 1), 1, 65535);
  if (!port) return fail(port.error());
  rendezvous.host = config.root.substr(0, colon);
  if (rendezvous.host.size() > 2 && rendezvous.host.front() == '[' && rendezvous.host.back() == ']')
    rendezvous.host = rendezvous.host.substr(1, rendezvous.host.size() - 2);
  rendezvous.port = *port;
  return rendezvous;
}

Result<Inbound> Bootstrap::exchange(const Outbound& mine) {
  auto blobs = allgather(encode_outbound(mine));
  if (!blobs) return fail(blobs.error());
  std::vector<Outbound> all;
  for (std::size_t r = 0; r < blobs->size(); ++r) {
    // Of another version, or broken: the caller sees it.
    auto one = decode_outbound((*blobs)[r]);
    all.push_back(one ? *std::move(one) : Outbound{std::move((*blobs)[r]), {}});
  }
  return inbound_of(rank(), all);
}

Result<Inbound> SetUpExchanges::exchange(const Outbound& mine, const Status& status, Next next) {
  // At the end: what begins with a version is still that for other versions. Success takes no bytes.
  ByteWriter of_status;
  if (!status.ok()) of_status.put_status(status);
  Outbound outgoing = mine;
  Blob& blob = outgoing.to_all;
  blob.insert(blob.end(), of_status.blob().begin(), of_status.blob().end());
  const auto bytes = static_cast<std::uint32_t>(of_status.blob().size());
  const auto tail = std::as_bytes(std::span(&bytes, 1));
  blob.insert(blob.end(), tail.begin(), tail.end());
  // Before the exchange: a rank that runs out of memory after the last one is not heard.
  std::vector<Status> by_rank(static_cast<std::size_t>(size()));
  // Of an exchange that failed it is not known whether it has taken place.
  others_wait_ = false;
  auto all = exchange_or_throw(outgoing, next);
  if (!all) return all;
  for (std::size_t r = 0; r < all->from_all.size(); ++r) {
    Blob& one = all->from_all[r];
    std::uint32_t length = 0;
    if (one.size() >= sizeof length)
      std::memcpy(&length, one.data() + one.size() - sizeof length, sizeof length);
    // Of another version, which the caller names; or broken, which it sees, too.
    if (one.size() < sizeof length || one.size() - sizeof length < length) continue;
    const std::size_t content = one.size() - sizeof length - length;
    if (length != 0) {
      ByteReader reader(std::span<const std::byte>(one).subspan(content, length));
      by_rank[r] = reader.get_status();
      if (!reader.ok()) by_rank[r] = malformed(static_cast<Rank>(r));
    }
    one.resize(content);
  }
  Status failure = first_failure(by_rank);
  if (!failure.ok()) return fail(std::move(failure));
  others_wait_ = true;
  return all;
}

Result<Inbound> SetUpExchanges::exchange_or_throw(const Outbound& mine, Next next) {
  const auto before = bootstrap_.num_exchanges();
  try {
    return bootstrap_.exchange(mine);
  } catch (...) {
    // In this exchange if it has not begun, else in the next one.
    others_wait_ = before && (bootstrap_.num_exchanges() == before || next == Next::kAnother);
    throw;
  }
}

Result<Inbound> SetUpExchanges::exchange(const Outbound& mine) {
  return exchange(mine, Status::success());
}

Result<Inbound> SetUpExchanges::exchange_outcomes(const Result<Outbound>& mine) {
  return mine ? exchange(*mine, Status::success()) : exchange(Outbound(), mine.error());
}

Result<std::vector<Blob>> SetUpExchanges::allgather(std::span<const std::byte> mine) {
  auto all = exchange({{mine.begin(), mine.end()}, {}});
  if (!all) return fail(all.error());
  return std::move(all->from_all);
}

Result<std::vector<Blob>> SetUpExchanges::allgather_outcomes(const Result<Blob>& mine) {
  auto all = exchange_outcomes(mine ? Result<Outbound>(Outbound{*mine, {}}) : fail(mine.error()));
  if (!all) return fail(all.error());
  return std::move(all->from_all);
}

Status SetUpExchanges::agree(const Status& mine) {
  const auto all = exchange(Outbound(), mine, Next::kNone);
  return all ? Status::success() : all.error();
}

Status SetUpExchanges::give_up(const Status& status) noexcept {
  try {
    if (!others_wait_) return status;
    const auto all = exchange(Outbound(), status);
    return all ? status : all.error();
  } catch (...) {
    return kept(status);
  }
}

Result<std::unique_ptr<Bootstrap>> make_callback_bootstrap(const hips_bootstrap_t& callbacks) {
  // Programs built before `progress` existed pass a shorter struct.
  constexpr std::size_t kLeastBytes = offsetof(hips_bootstrap_t, progress);
  if (callbacks.struct_size < kLeastBytes)
    return fail(Code::kInvalidArgument,
                fmt::format("bootstrap: struct_size is {}; set it to sizeof(hips_bootstrap_t), {}",
                            callbacks.struct_size, sizeof(hips_bootstrap_t)));
  if (callbacks.allgather == nullptr) return fail(Code::kInvalidArgument, "bootstrap: allgather is null");
  if (callbacks.size < 1 || callbacks.rank < 0 || callbacks.rank >= callbacks.size)
    return fail(Code::kInvalidArgument, fmt::format("bootstrap: rank {} is out of range [0, {}] for size {}",
                                                    callbacks.rank, callbacks.size - 1, callbacks.size));
  return std::make_unique<CallbackBootstrap>(callbacks);
}

}  // namespace hips::comm
