#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "lib/comm/communicator.hpp"
#include "lib/comm/control/wire.hpp"
#include "lib/comm/setup/agreement.hpp"
#include "lib/comm/setup/process_info.hpp"

namespace hips::comm {

/// The communicators of this process that their user has destroyed and that wait to be used again. Connections, registered
/// memory and plans cost some hundred small calls, and programs make and free communicators of the same ranks all the time.
///
/// What a spare communicator was is compared in the first exchange of Communicator::create(): it is used again only if each
/// member still has it and has made as many calls on it, so that the next call of all of them is the same one.
///
/// Threads  any.
class SpareCommunicators {
 public:
  /// The oldest of more is destroyed.
  static constexpr std::size_t kMost = 4;

  /// Spare communicators that one creation has taken, so that no other one announces them; what it does not use returns.
  class Taken {
   public:
    Taken() = default;
    /// Those that have failed end here.
    explicit Taken(std::vector<std::unique_ptr<Communicator>> all);
    Taken(Taken&&) noexcept = default;
    Taken& operator=(Taken&&) = delete;
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    ~Taken();

    [[nodiscard]] const std::vector<SpareNote>& notes() const { return notes_; }
    /// Of the oldest with that digest in which this process has that rank.
    [[nodiscard]] std::optional<SpareNote> note_of(std::uint64_t digest, Rank rank, Rank size) const;
    /// The one of notes() with this id, also if it has failed since, as other ranks may not know. Null if there is none.
    std::unique_ptr<Communicator> use(std::uint64_t id);

   private:
    std::vector<std::unique_ptr<Communicator>> all_;
    std::vector<SpareNote> notes_;  ///< of each
  };

  static SpareCommunicators& process();

  Taken take();
  /// The user has destroyed the communicator: keeps it if it can be used again. With the last other communicator of the process
  /// all spare ones end, too, and with them its engine, unless stay() was called.
  void retire(std::unique_ptr<Communicator> communicator);
  /// Spare ones need no other communicator beside them from now on. MPI programs free their only duplicate and make the next one.
  void stay();
  /// All end, and stay() with them.
  void end();

 private:
  /// Those for which there is no memory end.
  void put_back(std::vector<std::unique_ptr<Communicator>> communicators) noexcept;

  std::mutex mutex_;
  bool stay_ = false;
  std::vector<std::unique_ptr<Communicator>> all_;  ///< the oldest first
};

/// Tells sets of processes, in the order of their ranks and with their terms, apart; never 0.
std::uint64_t digest_of(std::span<const ProcessInfo> processes, const Terms& terms);

/// The id of a spare communicator with this digest that all ranks have, after as many calls. `by_rank`: what they announced.
std::optional<std::uint64_t> common_spare(std::span<const std::vector<SpareNote>> by_rank,
                                          std::uint64_t digest);

void put_spares(ByteWriter& writer, std::span<const SpareNote> spares);
std::vector<SpareNote> get_spares(ByteReader& reader);

}  // namespace hips::comm
