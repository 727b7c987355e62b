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

/// See create(). Parts: verbs_transport.cpp (creation, memory, sleeping), verbs_connect.cpp (endpoints),
/// verbs_post.cpp and verbs_poll.cpp (requests and completions).
class VerbsTransport final : public transport::Transport {
 public:
  static Result<std::unique_ptr<transport::Transport>> create(const PortChoice& port,
                                                              const VerbsOptions& options);
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
  /// Capacity for work requests of one post() before the doorbells are rung.
  static constexpr std::size_t kMaxParts = 64;
  /// Work requests of one request. Requests above kMaxPartsOfOne * the device's limit are errors.
  static constexpr std::size_t kMaxPartsOfOne = 16;
  /// Polling asynchronous events is a system call, so it happens only once in this many idle polls.
  static constexpr std::uint32_t kIdlePollsPerAsyncPoll = 1024;
  /// Calls of reap_closing() between two that read the clock.
  static constexpr std::uint32_t kReapsPerClock = 64;
  static constexpr std::int64_t kCloseTimeoutNs = 2'000'000'000;

  /// Everything that a forked child must not destroy, in the order of creation.
  struct Owned {
    std::optional<CmPort> cm;
    ContextHandle opened;  ///< empty if rdma_cm has opened the device
    ibv_context* context = nullptr;
    DomainHandle domain;
    MemoryTable memory;
    std::optional<CompletionQueues> queues;
    SharedReceivesHandle shared_receives;
    std::vector<std::unique_ptr<VerbsEndpoint>> endpoints;  ///< by PeerId
    std::vector<std::unique_ptr<VerbsEndpoint>> closing;
    UniqueFd epoll;
  };
  /// The queue pair of a slot; see WorkId.
  struct Slot {
    QueuePair* pair = nullptr;
    std::uint16_t generation = 0;
  };

  VerbsTransport(const PortChoice& port, const VerbsOptions& options) : port_(port), options_(options) {}
  Status start();
  Status watch(int fd);

  // Endpoints.
  [[nodiscard]] VerbsEndpoint* find_endpoint(transport::PeerId peer) const {
    return peer >= 0 && static_cast<std::size_t>(peer) < owned_.endpoints.size()
               ? owned_.endpoints[static_cast<std::size_t>(peer)].get()
               : nullptr;
  }
  Result<std::unique_ptr<QueuePair>> make_pair(VerbsEndpoint& endpoint, rdma_cm_id* cm);
  void drop_pair(std::unique_ptr<QueuePair> pair);
  void drop_endpoint(VerbsEndpoint& endpoint);
  void drop_events(transport::PeerId peer);
  [[nodiscard]] bool has_shared_receives(const QueuePair& pair) const;
  Status read_address(std::span<const std::byte> bytes, VerbsAddress& address) const;
  Status join(VerbsEndpoint& endpoint);
  void break_endpoint(VerbsEndpoint& endpoint, Status error);
  void report_unconnected(transport::PeerId peer);
  void send_disconnects(VerbsEndpoint& endpoint);
  void reap_closing();
  void sweep();

  // rdma_cm.
  Status start_connections(VerbsEndpoint& endpoint);
  void poll_connections();
  void accept(rdma_cm_id* id, const CmGreeting& greeting);
  void advance_connection(const CmPort::Event& event);
  void finish_connecting(VerbsEndpoint& endpoint);
  VerbsEndpoint* endpoint_of(const rdma_cm_id* id, std::size_t& pair);

  // Requests.
  bool append(VerbsEndpoint& endpoint, const transport::WorkRequest& request);
  QueuePair* choose_pair(VerbsEndpoint& endpoint, std::size_t parts, bool notifies, std::size_t& index);
  void ring_doorbells();

  // Completions.
  void take(const ibv_wc& completion);
  void take_sent(QueuePair& pair, std::uint32_t number);
  void take_received(QueuePair& pair, const ibv_wc& completion, std::uint32_t buffer);
  void take_error(QueuePair& pair, const ibv_wc& completion);
  void release(VerbsEndpoint& endpoint);
  bool poll_queues();
  void send_due_control();
  void poll_async_events();
  void push(transport::Event event);
  transport::Event& next_event();
  std::size_t take_events(std::span<transport::Event> events);

  PortChoice port_;
  VerbsOptions options_;
  transport::Limits limits_;
  PortFacts facts_;
  Budget budget_;
  GidChoice gid_;
  std::int32_t pid_ = 0;  ///< of the creator
  std::string host_;
  bool immediates_ = true;
  Owned owned_;

  std::vector<Slot> slots_;
  std::vector<std::uint16_t> free_slots_;
  std::unordered_map<std::uint32_t, QueuePair*>
      sharing_;                      ///< by queue pair number: those with shared receives
  std::size_t num_pairs_ = 0;        ///< created or reserved
  std::size_t num_sharing_ = 0;      ///< of these, with shared receives
  std::size_t spare_receives_ = 0;   ///< sets of shared receives left by destroyed queue pairs
  std::size_t num_connecting_ = 0;   ///< endpoints in state kConnecting
  std::size_t num_control_due_ = 0;  ///< endpoints with control_due
  bool any_closed_ = false;          ///< a closing endpoint may be finished
  bool port_down_reported_ = false;
  // Two counters: with a shared one, each user could skip the values at which the other acts.
  std::uint32_t idle_polls_ = 0, num_reaps_ = 0;

  std::array<ibv_send_wr, kMaxParts> parts_;
  std::array<ibv_sge, 2 * kMaxParts> pieces_;
  std::size_t num_parts_ = 0;
  std::vector<QueuePair*> chained_, flushing_;  ///< queue pairs with a chain

  std::vector<transport::Event> events_;  ///< a ring buffer
  std::size_t events_head_ = 0, num_events_ = 0;
};

}  // namespace hips::verbs
