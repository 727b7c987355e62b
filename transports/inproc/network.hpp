#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>

#include <hips/status.hpp>

#include "lib/base/result.hpp"
#include "lib/base/wait/clock.hpp"
#include "transports/transport.hpp"

namespace hips::inproc {

class Fabric;

/// Faults to inject and their probabilities in [0, 1], drawn anew for each request. All stay within the contract
/// of transport.hpp: a correct user sees delays and reordering, never a wrong result.
struct Faults {
  /// A delay postpones the data, arrival and completion of a request.
  double delay = 0;
  /// A delay holds an arrival back while later ones of the same pair overtake it. With 0, the arrivals of a pair
  /// keep the order of posting.
  double reorder = 0;
  /// The local completion is late, and each piece of the source is read at a random moment between post() and
  /// completion. A source that is overwritten too early therefore arrives changed.
  double late_completion = 0;
  /// post() stops before a request as if the queue were full. With 1 it accepts none.
  double queue_full = 0;
  /// A delay is uniform in [1, max_delay_steps] steps and [0, max_delay_ns] of the clock; both must pass.
  std::uint32_t max_delay_steps = 8;
  std::int64_t max_delay_ns = 0;
};

/// A network of ranks that live in one thread: for tests, and for anything else that must run step by step.
///
/// All random choices come from one sequence, so the same seed and calls give the same run, bit for bit;
/// trace_hash() proves it. Without faults each request is done, and has arrived, before
/// post() returns. Time passes in steps: each poll() of any transport is one (Options::step_on_poll), and
/// step() is one.
///
///     rank 0: post  ->  [ data ] [ arrival ] [ completion ]   each waits for its step and its time
///     rank 1: poll  <-  events that are due
///
/// Memory may be phantom: requests between phantom regions, or with null addresses, move sizes only.
///
/// Owns     its state, shared with the transports; they may be destroyed in any order.
/// Threads  one thread for the network and all its transports.
/// Source   the seam is Seastar's loopback socket; the faults are FoundationDB's way of testing.
/// Example  std::mt19937_64 random(seed);
///          auto network = inproc::Network::create({.random = &random, .faults = {.reorder = 0.5}});
///          auto rank0 = (*network)->make_transport(0), rank1 = (*network)->make_transport(1);
class Network {
 public:
  struct Options {
    std::mt19937_64* random = nullptr;  ///< outlives the network; null: allowed where all chances are 0
    Clock* clock = nullptr;             ///< outlives the network; null: only steps count
    Faults faults{};
    std::size_t max_posted = 256;  ///< unfinished requests of one transport; post() accepts no more
    bool attaches_memory = true;   ///< false: as over a wire, attach() is kUnsupported
    /// Requests may send from registered memory only, as over a NIC; others break the endpoint.
    bool needs_local_registration = false;
    /// Data for a deregistered region is dropped; false: it breaks the endpoint.
    bool registers_freely = false;
    bool step_on_poll = true;  ///< false: only step() moves time
    double latency_ns = 1000;  ///< reported by query(); the network itself adds no delay
    double bandwidth_bytes_per_s = 12.5e9;
  };

  /// Errors   kInvalidArgument: a chance outside [0, 1], a chance above 0 without `random`, a delay in time
  ///          without `clock`, max_posted of 0.
  static Result<std::unique_ptr<Network>> create(const Options& options);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// A NIC of a rank. A rank may have any number, one call each; `rail` only names it.
  std::unique_ptr<transport::Transport> make_transport(Rank rank, Rail rail = 0);

  /// Lets one step pass and does what is due.
  void step();

  /// Changes the faults for later requests; outstanding ones keep their delays.
  Status set_faults(const Faults& faults);

  /// Ends the rank as kill -9 does: its outstanding requests are lost, its peers get kPeerDead, its memory is no
  /// longer accessed, and its transports accept requests and discard them.
  void kill(Rank rank);

  /// Takes a NIC down: kPortDown on it, kPeerDead at each peer connected to it; outstanding requests are lost.
  void take_down(Rank rank, Rail rail);

  /// Hash of everything that happened, in order: data, arrivals, completions and dead peers, with their steps.
  [[nodiscard]] std::uint64_t trace_hash() const;

  /// Actions that wait for their step or time.
  [[nodiscard]] std::size_t num_outstanding() const;

 private:
  explicit Network(std::shared_ptr<Fabric> fabric);
  std::shared_ptr<Fabric> fabric_;
};

}  // namespace hips::inproc
