#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hips/plan.hpp>
#include <hips/types.hpp>

#include "lib/base/collective.hpp"
#include "lib/base/result.hpp"
#include "lib/exec/companion.hpp"
#include "lib/exec/engine.hpp"
#include "lib/exec/layout.hpp"

namespace hips::exec {

using Blob = std::vector<std::byte>;

/// What an operation works on. A null `in` and `out` with phantom staging only moves sizes.
struct OperationArgs {
  std::int32_t program = 0;  ///< index in Team::Config::programs, or from add_program()
  const std::byte* in = nullptr;
  std::byte* out = nullptr;  ///< may be equal to `in`
  std::uint64_t count = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::int32_t priority = 0;  ///< lower goes first in the NIC queues
  /// What the program is an excerpt of. The same on all ranks, as all that stands above but the buffers.
  Collective collective = Collective::kAllreduce;
  std::uint32_t detail = 0;  ///< what else has to be the same: a root, a digest of sections
  Boundaries boundaries{};   ///< of the sections; kept by the team while their layout is
  /// What ranks compare, where that is not the above: the program called something else, which is made of
  /// this operation.
  struct Told {
    std::uint64_t count = 0;
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    Collective collective = Collective::kAllreduce;
    std::uint32_t detail = 0;
    std::uint64_t number = 0;  ///< of the program's call, for errors; 0: the operation's sequence
  };
  std::optional<Told> told{};
  [[nodiscard]] Collective told_collective() const { return told ? told->collective : collective; }
};

/// A running collective: a state machine that the engine moves.
///
/// Owns     nothing; the buffers belong to the operation until done().
/// Threads  done() and status() from any thread.
class Operation : public Awaited {
 public:
  [[nodiscard]] virtual std::uint64_t sequence() const = 0;
  /// Ranks whose messages are lacking right now, ascending; for logs and for errors. Progress owner only.
  [[nodiscard]] virtual std::vector<Rank> waiting_for() const = 0;
};

/// The executor's part of one communicator in this process: channels, staging, credits, operations in flight.
///
/// Creation takes two exchanges, which the caller carries (a bootstrap, or a test that holds all ranks in one
/// thread): offer() -> allocate(all offers) -> connect(all addresses).
class Team {
 public:
  /// Which process a rank is, port by port, and which transport reaches it over a given rail.
  ///
  /// An endpoint joins one port of ours with one of the peer's. Which of them meet is the plan's to say, so
  /// each port of the peer is a peer of its own: communicators that pair ports differently share none.
  struct Route {
    std::vector<transport::PeerId> by_peer_rail;  ///< [0] serves rails beyond the end and kNoRail
    std::vector<transport::Transport*> by_rail;   ///< the same, by our rail

    /// The peer that is reached where it receives by `rail`; needs one.
    [[nodiscard]] transport::PeerId peer(Rail rail) const { return at(by_peer_rail, rail); }
    [[nodiscard]] transport::Transport* transport(Rail rail) const { return at(by_rail, rail); }

   private:
    template <typename T>
    static T at(const std::vector<T>& list, Rail rail) {
      return list[rail >= 0 && static_cast<std::size_t>(rail) < list.size() ? static_cast<std::size_t>(rail)
                                                                            : 0];
    }
  };
  struct Config {
    std::uint64_t id = 0;  ///< of the communicator; the same on all ranks, unique in the process
    Rank rank = -1;
    Rank size = 0;
    std::vector<std::shared_ptr<const PlanShape>> shapes;  ///< one per program
    std::vector<std::shared_ptr<const Program>> programs;  ///< this rank's
    std::vector<Route> routes;                             ///< by rank; unused ones may be empty
    std::int32_t credits = 0;  ///< slots per channel; 0: what suits the transports
    std::size_t max_staging_bytes = 8u << 20;
    std::size_t max_segment_bytes = 0;  ///< 0: what suits the transports
    /// Staging has a size but no bytes, and operations move none: the executor in simulated time.
    bool phantom = false;
    /// Called by the progress owner on the first local finding (a mismatched signature, a dead peer). The
    /// operation stays undone until fail(); with no callback the team fails itself.
    std::function<void(const Status&)> on_error;
  };

  static Result<std::unique_ptr<Team>> create(Engine& engine, Config config);
  virtual ~Team() = default;

  virtual Blob offer() = 0;
  virtual Result<Blob> allocate(std::span<const Blob> offers) = 0;
  virtual Status connect(std::span<const Blob> addresses) = 0;

  /// Makes room for another program whose messages go the ways of those of Config::programs; its index.
  /// Local, between calls.
  virtual std::int32_t add_program(std::shared_ptr<const PlanShape> shape,
                                   std::shared_ptr<const Program> program) = 0;
  /// Starts an operation. All ranks start the same ones in the same order.
  virtual std::shared_ptr<Operation> start(const OperationArgs& args) = 0;
  /// The same inside Companion::advance(), whose thread drives progress.
  virtual std::shared_ptr<Operation> start_in_progress(const OperationArgs& args) = 0;

  /// Ends every operation in flight, and every later one at once, with `status`. Any thread.
  virtual void fail(const Status& status) = 0;
  [[nodiscard]] virtual bool failed() const = 0;
  /// `rank` said goodbye: nothing more comes from it. Any thread.
  virtual void peer_left(Rank rank) = 0;

  [[nodiscard]] virtual std::size_t staging_bytes() const = 0;
  /// Registered memory that segments are sent from, where a NIC reads no other; 0 elsewhere.
  [[nodiscard]] virtual std::size_t departure_bytes() const = 0;
  [[nodiscard]] virtual std::size_t segment_bytes() const = 0;
};

}  // namespace hips::exec
