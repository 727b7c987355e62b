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
#include "lib/base/exchange.hpp"
#include "lib/base/result.hpp"
#include "lib/exec/engine.hpp"
#include "lib/exec/engine_client.hpp"
#include "lib/exec/layout.hpp"

namespace hips::exec {

/// Arguments of an operation. With null `in` and `out` and phantom staging it moves sizes only.
struct OperationArgs {
  std::int32_t program = 0;  ///< index in Team::Config::plans, or from add_program()
  const std::byte* in = nullptr;
  std::byte* out = nullptr;  ///< may be equal to `in`
  std::uint64_t count = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::int32_t priority = 0;  ///< lower numbers are sent first
  /// The collective that the program is a pruned plan of. Like all fields except the buffers, it is equal on
  /// all ranks.
  Collective collective = Collective::kAllreduce;
  std::uint32_t detail = 0;  ///< anything else that must be equal on all ranks: a root, a digest of sections
  Boundaries boundaries{};   ///< of the sections; the team keeps it as long as their layout
  /// User-visible signature, when this operation is one phase of a larger call. Ranks compare it instead of
  /// the fields above.
  struct UserCall {
    std::uint64_t count = 0;
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    Collective collective = Collective::kAllreduce;
    std::uint32_t detail = 0;
    std::uint64_t number = 0;  ///< number of the user's call, for errors; 0: the operation's sequence
  };
  std::optional<UserCall> user_call{};
  [[nodiscard]] Collective user_collective() const { return user_call ? user_call->collective : collective; }
};

/// An outstanding collective: a state machine that the engine advances.
///
/// Owns     nothing; the operation uses the buffers until done().
/// Threads  done() and status() from any thread.
class Operation : public Waitable {
 public:
  [[nodiscard]] virtual std::uint64_t sequence() const = 0;
  /// Ranks whose messages are missing now, ascending; for logs and errors. Progress owner only.
  [[nodiscard]] virtual std::vector<Rank> waiting_for() const = 0;
};

/// The executor's part of one communicator in this process: channels, staging, credits and outstanding
/// operations.
///
/// Creation takes two exchanges, which the caller performs (by a bootstrap, or in a test that holds all ranks
/// in one thread): offer() -> allocate(offers) -> connect(addresses). Only the ranks that its programs exchange messages with
/// tell each other of channels and connections; all ranks exchange a few bytes.
class Team {
 public:
  /// The ports of one rank's process, and the transports that reach them, by rail.
  ///
  /// An endpoint connects one of our ports with one of the peer's ports. The plan decides which ports are
  /// connected. Each port of the peer is therefore a separate PeerId, and communicators that pair ports
  /// differently share no endpoint.
  struct Route {
    std::vector<transport::PeerId> by_peer_rail;  ///< [0] is used for kNoRail and for rails beyond the end
    std::vector<transport::Transport*> by_rail;   ///< by our rail; [0] as above

    /// The peer's port for `rail`, a rail of the peer. Requires at least one port.
    [[nodiscard]] transport::PeerId peer(Rail rail) const { return by_peer_rail[index(by_peer_rail, rail)]; }
    [[nodiscard]] transport::Transport* transport(Rail rail) const { return by_rail[index(by_rail, rail)]; }

    /// The position of `rail` in one of the lists.
    template <typename T>
    static std::size_t index(const std::vector<T>& list, Rail rail) {
      return rail >= 0 && static_cast<std::size_t>(rail) < list.size() ? static_cast<std::size_t>(rail) : 0;
    }
  };
  struct Config {
    /// A plan, as one rank sees it.
    struct RankPlan {
      std::shared_ptr<const PlanShape> shape;
      /// Makes this rank's program, each time the same. Called by create(), to find the channels, and by the first operation that
      /// uses it: most communicators use few of their plans. It throws std::bad_alloc where there is no memory.
      std::function<Program()> program;
    };
    std::uint64_t id = 0;  ///< id of the communicator: equal on all ranks, unique in the process
    Rank rank = -1;
    Rank size = 0;
    std::vector<RankPlan> plans;
    bool arrives_by_same_nic = false;  ///< every message does: by the NIC of the number that it left by
    /// Gives the route to a rank. Called by create() only, once for each rank that the programs exchange messages with.
    std::function<Result<Route>(Rank)> route_to;
    std::int32_t credits = 0;  ///< slots per channel; 0: chosen by transport
    std::size_t max_staging_bytes = 8u << 20;
    std::size_t max_segment_bytes = 0;  ///< 0: chosen by transport
    /// Simulated time: staging has a size but no memory, and operations move no data.
    bool phantom = false;
    bool traced = true;  ///< operations are in the engine's trace, if there is one
    /// Called by the progress owner on the first error that this rank finds (a mismatched signature, a dead
    /// peer). The operation remains outstanding until fail(). Without a callback the team fails itself.
    std::function<void(const Status&)> on_error;
  };

  static Result<std::unique_ptr<Team>> create(Engine& engine, Config config);
  virtual ~Team() = default;

  virtual Outbound offer() = 0;
  virtual Result<Outbound> allocate(const Inbound& offers) = 0;
  virtual Status connect(const Inbound& addresses) = 0;

  /// Adds a program that uses only the channels of Config::plans; returns its index. Local; call it
  /// between calls.
  virtual std::int32_t add_program(std::shared_ptr<const PlanShape> shape,
                                   std::shared_ptr<const Program> program) = 0;
  /// Starts an operation. All ranks start the same operations in the same order.
  virtual std::shared_ptr<Operation> start(const OperationArgs& args) = 0;
  /// Starts an operation from EngineClient::advance(), where this thread drives progress.
  virtual std::shared_ptr<Operation> start_in_progress(const OperationArgs& args) = 0;

  /// Ends every outstanding operation, and every later one immediately, with `status`. Any thread.
  virtual void fail(const Status& status) = 0;
  [[nodiscard]] virtual bool failed() const = 0;
  /// `rank` has shut down: it sends nothing more. Any thread.
  virtual void peer_left(Rank rank) = 0;

  [[nodiscard]] virtual std::size_t staging_bytes() const = 0;
  /// Bytes of send slots, for NICs that read registered memory only; 0 if there are none.
  [[nodiscard]] virtual std::size_t send_slot_bytes() const = 0;
  [[nodiscard]] virtual std::size_t segment_bytes() const = 0;
};

}  // namespace hips::exec
