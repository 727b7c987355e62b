#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <boost/circular_buffer.hpp>

#include "lib/base/os/unique_fd.hpp"
#include "transports/tcp/acceptor.hpp"
#include "transports/tcp/closing_connection.hpp"
#include "transports/tcp/endpoint.hpp"
#include "transports/tcp/memory.hpp"
#include "transports/tcp/tcp.hpp"
#include "transports/transport.hpp"

namespace hips::tcp {

/// See create(). Parts: tcp_transport.cpp (creation, memory, sleeping), tcp_connect.cpp (endpoints),
/// tcp_poll.cpp (requests, frames and events).
class TcpTransport final : public transport::Transport {
 public:
  static Result<std::unique_ptr<transport::Transport>> create(const TcpOptions& options);
  ~TcpTransport() override;
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;

  [[nodiscard]] const transport::Limits& query() const override { return limits_; }
  Result<transport::Address> open(transport::PeerId peer) override;
  Status connect(transport::PeerId peer, std::span<const std::byte> address) override;
  void close(transport::PeerId peer) override;
  Result<transport::Region> register_memory(const transport::MemoryDesc& memory) override;
  void deregister(transport::MemoryId memory) override;
  void take_back(std::span<const std::byte> memory) noexcept override;
  Result<std::span<std::byte>> attach(transport::PeerId peer, const transport::RemoteRegion& region) override;
  std::size_t post(std::span<const transport::WorkRequest> requests) override;
  std::size_t poll(std::span<transport::Event> events) override;
  std::size_t poll_completions(std::span<transport::Event> events) override;
  transport::Armed arm() override;
  void disarm() override {}

 private:
  /// Kind of a descriptor in the epoll set. Its key also holds the peer or the pending connection's descriptor.
  enum class Watched : std::uint32_t { kListener, kPending, kEndpoint };

  TcpTransport(const TcpOptions& options, Acceptor acceptor, UniqueFd epoll);

  // Endpoints.
  [[nodiscard]] TcpEndpoint* find_endpoint(transport::PeerId peer) const;
  Status watch(int fd, Watched kind, std::uint32_t number, std::uint32_t events, std::uint32_t before = 0);
  void watch(TcpEndpoint& endpoint, std::uint32_t events);
  void accept_connections();
  void resume_accepting();
  void identify(int pending);
  void send_hello(TcpEndpoint& endpoint);
  bool receive_hello(TcpEndpoint& endpoint);
  void finish_connecting(TcpEndpoint& endpoint);
  /// kSilently: leaves the socket open, because the fault is a wrong request of this side.
  enum class Ending { kShutdown, kSilently };
  void break_endpoint(TcpEndpoint& endpoint, Status error, Ending ending = Ending::kShutdown);
  void connection_ended(TcpEndpoint& endpoint, int error);
  /// Breaks connections whose peer has acknowledged nothing for dead_after_ns although it was sent something: the kernel would send
  /// it again for a quarter of an hour. A peer whose process is late or stopped acknowledges.
  void look_for_silence();
  void report_unconnected(transport::PeerId peer);
  void discard_events(transport::PeerId peer);

  // Requests and frames.
  bool append(TcpEndpoint& endpoint, const transport::WorkRequest& request);
  void flush(TcpEndpoint& endpoint);
  void set_ready(TcpEndpoint& endpoint);
  void set_finished(TcpEndpoint& endpoint);
  bool poll_few_peers_directly();
  void poll_sockets();
  // The next ones add to `filled` the events that they have taken, also where they throw.
  void poll(std::span<transport::Event> events, std::size_t& filled);
  void serve(TcpEndpoint& endpoint, std::span<transport::Event> events, std::size_t& filled);
  void begin_frame(TcpEndpoint& endpoint, const FrameHeader& header);
  void take_completions(std::span<transport::Event> events, std::size_t& filled);
  void take_arrivals(std::span<transport::Event> events, std::size_t& filled);
  void take_broken(std::span<transport::Event> events, std::size_t& filled);
  void progress_closing();

  TcpOptions options_;
  transport::Limits limits_;
  LinkOptions link_options_;
  std::int32_t pid_;  ///< of the creator: a forked child must not touch the connections
  Acceptor acceptor_;
  UniqueFd epoll_;
  bool accepting_ = true;
  std::int64_t next_look_ns_ = 0;  ///< for silence, on the coarse clock
  RegionTable memory_;

  std::vector<std::unique_ptr<TcpEndpoint>> endpoints_;  ///< by PeerId
  // Each has room for all endpoints, and so needs no memory while they work.
  boost::circular_buffer<TcpEndpoint*>
      ready_;  ///< have data to read; served round-robin, so that no peer starves
  boost::circular_buffer<TcpEndpoint*> finished_;  ///< have completions to report
  std::vector<TcpEndpoint*> posted_;               ///< have requests of the current post()
  std::deque<transport::Event> broken_;            ///< kPeerDead events to report
  std::vector<ClosingConnection> closing_connections_;
  std::uint32_t direct_polls_ = 0;
};

}  // namespace hips::tcp
