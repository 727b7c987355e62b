#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/base/os/unique_fd.hpp"
#include "transports/transport.hpp"
#include "transports/verbs/cm.hpp"
#include "transports/verbs/completion_queues.hpp"
#include "transports/verbs/device.hpp"
#include "transports/verbs/endpoint.hpp"
#include "transports/verbs/memory.hpp"
#include "transports/verbs/verbs.hpp"

namespace hips::verbs {

/// See create(). Split by job: verbs_transport.cpp (making, memory, sleeping), verbs_connect.cpp (endpoints),
/// verbs_post.cpp and verbs_poll.cpp (requests and completions).
class VerbsTransport final : public transport::Transport {
 public:
  static Result<std::unique_ptr<transport::Transport>> create(const PortChoice& port, const Options& options);
  ~VerbsTransport() override;
  VerbsTransport(const VerbsTransport&) = delete;
  VerbsTransport& operator=(const VerbsTransport&) = delete;

  [[nodiscard]] const transport::Limits& query() const override { return limits_; }
  Result<transport::Address> open(transport::PeerId peer) override;
  Status connect(transport::PeerId peer, std::span<const std::byte> address) override;
  void close(transport::PeerId peer) override;
  Result<transport::Region> register_memory(const transport::MemoryDesc& memory) override;
  void deregister(transport::MemoryId memory) override;
  Result<std::span<std::byte>> attach(transport::PeerId peer, const transport::RemoteRegion& region) override;
  std::size_t post(std::span<const transport::WorkRequest> requests) override;
  std::size_t poll(std::span<transport::Event> events) override;
  transport::Armed arm() override;
  void disarm() override;
  [[nodiscard]] std::optional<std::uint32_t> inline_bytes(transport::PeerId peer) const;

 private:
  /// Work requests of one post() that wait for their doorbell.
  static constexpr std::size_t kMaxParts = 64;
  /// Of one request; larger ones than kMaxPartsOfOne * the device's limit are refused.
  static constexpr std::size_t kMaxPartsOfOne = 16;
  /// A look at the kernel's events is a system call; this many idle polls make it cheap.
  static constexpr std::uint32_t kIdlePollsPerLook = 1024;
  /// Of reap_closing(), until it asks for the time.
  static constexpr std::uint32_t kLooksPerClock = 64;
  static constexpr std::int64_t kLingerNs = 2'000'000'000;

  /// Everything that a forked child must leave alone. In the order in which it was made.
  struct Owned {
    std::optional<CmPort> cm;
    ContextHandle opened;  ///< empty where rdma_cm has opened the device
    ibv_context* context = nullptr;
    DomainHandle domain;
    MemoryTable memory;
    std::optional<CompletionQueues> queues;
    SharedReceivesHandle shared_receives;
    std::vector<std::unique_ptr<Endpoint>> endpoints;  ///< by PeerId
    std::vector<std::unique_ptr<Endpoint>> closing;
    UniqueFd epoll;
  };
  /// A queue pair by the slot of its completions.
  struct Slot {
    QueuePair* pair = nullptr;
    std::uint16_t generation = 0;
  };

  VerbsTransport(const PortChoice& port, const Options& options) : port_(port), options_(options) {}
  Status start();
  Status watch(int fd);

  // Endpoints.
  [[nodiscard]] Endpoint* endpoint(transport::PeerId peer) const {
    return peer >= 0 && static_cast<std::size_t>(peer) < owned_.endpoints.size()
               ? owned_.endpoints[static_cast<std::size_t>(peer)].get()
               : nullptr;
  }
  Result<std::unique_ptr<QueuePair>> make_pair(Endpoint& endpoint, rdma_cm_id* cm);
  void drop_pair(std::unique_ptr<QueuePair> pair);
  void drop_endpoint(Endpoint& endpoint);
  void drop_events(transport::PeerId peer);
  [[nodiscard]] bool mine_shares(const QueuePair& pair) const;
  Status read_address(std::span<const std::byte> bytes, WireAddress& address) const;
  Status join(Endpoint& endpoint);
  void break_endpoint(Endpoint& endpoint, Status error);
  void refuse(transport::PeerId peer);
  void say_goodbyes(Endpoint& endpoint);
  void reap_closing();
  void sweep();

  // rdma_cm.
  Status start_connections(Endpoint& endpoint);
  void look_at_connections();
  void accept(rdma_cm_id* id, const CmGreeting& greeting);
  void go_on(const CmPort::Event& event);
  void settle_connections(Endpoint& endpoint);
  Endpoint* endpoint_of(const rdma_cm_id* id, std::size_t& pair);

  // Requests.
  /// One request into chains; false: full.
  bool append(Endpoint& endpoint, const transport::WorkRequest& request);
  QueuePair* choose_pair(Endpoint& endpoint, std::size_t parts, bool notifies, std::size_t& index);
  void ring_doorbells();

  // Completions.
  void take(const ibv_wc& completion);
  void take_sent(QueuePair& pair, std::uint32_t number);
  void take_received(QueuePair& pair, const ibv_wc& completion, std::uint32_t buffer);
  void take_error(QueuePair& pair, const ibv_wc& completion);
  void release(Endpoint& endpoint);
  bool poll_queues();
  void settle_debts();
  void look_at_kernel();
  void push(transport::Event event);
  transport::Event& next_event();
  std::size_t take_events(std::span<transport::Event> events);

  PortChoice port_;
  Options options_;
  transport::Limits limits_;
  PortFacts facts_;
  Budget budget_;
  GidChoice gid_;
  std::int32_t pid_ = 0;  ///< that made it
  std::string host_;
  bool immediates_ = true;
  Owned owned_;

  std::vector<Slot> slots_;
  std::vector<std::uint16_t> free_slots_;
  std::unordered_map<std::uint32_t, QueuePair*> sharing_;  ///< by number: those with shared receives
  std::size_t num_pairs_ = 0;                              ///< made or reserved
  std::size_t num_sharing_ = 0;                            ///< of them, with shared receives
  std::size_t spare_receives_ = 0;                         ///< shared ones left by queue pairs that are gone
  std::size_t num_connecting_ = 0;                         ///< endpoints
  std::size_t num_indebted_ = 0;                           ///< endpoints that owe answers or goodbyes
  bool any_closed_ = false;                                ///< a closing endpoint may be done
  bool port_down_told_ = false;
  // One for each: where both counted on, either could pass over what the other waits for, again and again.
  std::uint32_t idle_polls_ = 0, closing_looks_ = 0;

  std::array<ibv_send_wr, kMaxParts> parts_;
  std::array<ibv_sge, 2 * kMaxParts> pieces_;
  std::size_t num_parts_ = 0;
  std::vector<QueuePair*> rung_, ringing_;  ///< with a chain

  std::vector<transport::Event> events_;  ///< a ring
  std::size_t events_head_ = 0, num_events_ = 0;
};

}  // namespace hips::verbs
