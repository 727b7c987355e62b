#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/base/os/unique_fd.hpp"
#include "transports/inproc/network.hpp"
#include "transports/inproc/schedule.hpp"

namespace hips::inproc {

/// A NIC in the fabric. Numbers are given in the order of creation and never reused.
using PortIdx = std::int32_t;

/// The state of all NICs and of all outstanding requests. Network and its transports share it.
class Fabric {
 public:
  explicit Fabric(const Network::Options& options);

  PortIdx add_port(Rank rank, Rail rail);
  void remove_port(PortIdx port);  ///< its transport was destroyed

  [[nodiscard]] const transport::Limits& limits(PortIdx port) const { return at(port).limits; }
  Result<transport::Address> open(PortIdx port, transport::PeerId peer);
  Status connect(PortIdx port, transport::PeerId peer, std::span<const std::byte> address);
  void close(PortIdx port, transport::PeerId peer);
  Result<transport::Region> register_memory(PortIdx port, const transport::MemoryDesc& memory);
  void deregister(PortIdx port, transport::MemoryId memory);
  Result<std::span<std::byte>> attach(PortIdx port, transport::PeerId peer,
                                      const transport::RemoteRegion& region);
  std::size_t post(PortIdx port, std::span<const transport::WorkRequest> requests);
  std::size_t poll(PortIdx port, std::span<transport::Event> events);
  transport::Armed arm(PortIdx port);
  void disarm(PortIdx port);

  void step();
  Status set_faults(const Faults& faults);
  void kill(Rank rank);
  void take_down(Rank rank, Rail rail);
  [[nodiscard]] std::uint64_t trace_hash() const { return hash_; }
  [[nodiscard]] std::size_t num_outstanding() const { return schedule_.size(); }

  /// Errors   kInvalidArgument: names the field and the value seen.
  static Status validate(const Network::Options& options, const Faults& faults);

 private:
  struct Endpoint {
    enum class State : std::uint8_t { kClosed, kOpen, kConnected, kBroken };
    State state = State::kClosed;
    std::uint32_t generation = 0;  ///< counts open() calls; each outstanding request belongs to one
    PortIdx remote_port = -1;
    transport::PeerId remote_peer = -1;  ///< the id that the peer uses for this endpoint
    std::uint32_t remote_generation = 0;
    Due last_put;      ///< data of all earlier kPut has landed
    Due last_ordered;  ///< arrivals that keep their order have been raised
    Due last_arrival;  ///< all arrivals have been raised
    Due last_move;     ///< data of everything posted has moved
  };

  struct Memory {
    transport::MemoryDesc desc;
    bool registered = false;
    std::uint32_t generation = 0;
  };

  struct Port {
    Rank rank = -1;
    Rail rail = 0;
    bool running = true;  ///< false: destroyed, killed or down
    bool down = false;
    transport::Limits limits;
    std::vector<Endpoint> endpoints;  ///< by PeerId
    std::vector<Memory> memories;     ///< by MemoryId
    std::deque<transport::Event> events;
    std::size_t num_posted = 0;
    std::uint32_t life = 0;  ///< increases when all outstanding requests are lost
    bool armed = false;
    UniqueFd wake_fd;
  };

  /// An outstanding request.
  struct Transfer {
    std::uint64_t number = 0;  ///< in the order of posting
    PortIdx from = -1, to = -1;
    std::uint32_t from_life = 0, to_life = 0;
    std::uint32_t generation = 0, remote_generation = 0;  ///< of the two endpoints
    transport::PeerId remote_peer = -1;
    transport::WorkRequest request;
    transport::RemoteRegion remote;  ///< a copy, because the caller's may be destroyed before
    bool has_remote = false;
    bool failed = false;
  };

  struct Action {
    enum class Kind : std::uint8_t { kMove, kArrive, kFinish, kPeerDead };
    Kind kind = Kind::kMove;
    std::int32_t piece = 0;              ///< kMove
    std::shared_ptr<Transfer> transfer;  ///< all but kPeerDead
    PortIdx port = -1;                   ///< kPeerDead: the NIC that reports it
    transport::PeerId peer = -1;
    std::uint32_t generation = 0;
    Status error;
  };

  [[nodiscard]] Port& at(PortIdx port) { return *ports_[static_cast<std::size_t>(port)]; }
  [[nodiscard]] const Port& at(PortIdx port) const { return *ports_[static_cast<std::size_t>(port)]; }
  Endpoint* find_endpoint(Port& port, transport::PeerId peer);

  [[nodiscard]] bool chance(double probability);
  [[nodiscard]] Due now() const;
  [[nodiscard]] Due delayed(Due due);

  [[nodiscard]] static bool sends_registered(const Port& port, const transport::WorkRequest& request);
  void post_one(PortIdx from, const transport::WorkRequest& request);
  void run_due();
  void move(const Action& action);
  void arrive(const Action& action);
  void finish(const Action& action);
  void fail_transfer(Transfer& transfer, std::string message);
  /// Breaks the endpoint of `port` to `peer` and raises kPeerDead, once.
  void break_endpoint(PortIdx port, transport::PeerId peer, Status error);
  /// Raises kPeerDead at every peer connected to `gone`, after everything that it sent them.
  void tell_peers(PortIdx gone, const Status& error);
  void tell_peer(const Endpoint& endpoint, const Status& error);
  void push_event(Port& port, transport::Event event);
  /// True if the region was registered once and is deregistered.
  [[nodiscard]] bool is_gone(PortIdx port, const transport::RemoteRegion& region) const;
  [[nodiscard]] bool endpoint_alive(const Transfer& transfer, bool source) const;
  void record(Action::Kind kind, PortIdx from, PortIdx to, std::uint64_t detail);

  Network::Options options_;
  std::vector<std::unique_ptr<Port>> ports_;
  Schedule<Action> schedule_;
  std::uint64_t step_ = 0;
  std::uint64_t next_transfer_ = 0;
  std::uint64_t hash_ = 0xcbf29ce484222325;  // FNV-1a
};

}  // namespace hips::inproc
