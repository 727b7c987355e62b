#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <hips/types.hpp>

#include "lib/comm/communicator.hpp"
#include "lib/mpi/tuning/guard.hpp"
#include "lib/mpi/tuning/guard_table.hpp"

namespace hips::mpi {

/// The processes of MPI_COMM_WORLD that have met in communicators of HiPS. Further communicators of the same processes, or
/// of some of them, are derived from the first, without an exchange.
///
/// A communicator is derived from the oldest meeting of all its members. Each member took part in every such meeting, and
/// sets up communicators of one set of processes in the same order as the others, as MPI requires of collectives. So all
/// choose alike. In a program whose threads call MPI at the same time that order does not exist; its communicators are not
/// derived.
///
/// Threads  any.
class MetProcesses {
 public:
  /// What communicators of one set of processes know from each other: the decisions of their guards, in the order of their
  /// blocking calls, which is the same on all processes, and the trials that led to none yet.
  struct Tuning {
    bool is_known = false;     ///< agreed on by all
    std::uint64_t digest = 0;  ///< of the last set-up: Communicator::digest()
    TuningScope scope;
    std::map<CallClass, TuningDecision> decisions;
    std::map<CallClass, Guard::Trials> unfinished;  ///< of the communicator that ended last
  };

  /// The processes have met in a communicator that derives others. Their ranks in MPI_COMM_WORLD, by rank.
  void add(std::vector<Rank> world_ranks, std::unique_ptr<comm::Communicator> communicator);

  /// Changes when processes meet.
  [[nodiscard]] std::uint32_t num_meetings() const { return num_meetings_.load(std::memory_order_acquire); }
  /// Whether all of these have met.
  [[nodiscard]] bool have_met(std::span<const Rank> world_ranks);
  /// Derives a communicator of the processes with these ranks in MPI_COMM_WORLD. Empty: they have not met.
  std::optional<Result<std::unique_ptr<comm::Communicator>>> derive(std::span<const Rank> world_ranks,
                                                                    const comm::CommunicatorOptions& options);

  /// The tuning of this set of processes. The address stays valid. It is for one thread at a time, as are set-ups.
  Tuning& tuning(std::span<const Rank> world_ranks);

  /// MPI_Finalize: leaves all meetings.
  void clear();

 private:
  struct Meeting {
    std::vector<Rank> world_ranks;
    std::unique_ptr<comm::Communicator> communicator;
  };
  struct Set {
    std::uint64_t num_derived = 0;
    Tuning tuning;
  };
  [[nodiscard]] static std::vector<Rank> key(std::span<const Rank> world_ranks);

  /// Their places in it; empty if they are not all there.
  [[nodiscard]] static std::vector<Rank> places_in(const Meeting& meeting, std::span<const Rank> world_ranks);

  std::atomic<std::uint32_t> num_meetings_{0};
  std::mutex mutex_;
  std::vector<Meeting> meetings_;          ///< the oldest first
  std::map<std::vector<Rank>, Set> sets_;  ///< by ascending ranks
};

}  // namespace hips::mpi
