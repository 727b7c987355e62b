#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lib/base/os/unique_fd.hpp"
#include "transports/tcp/doorman.hpp"
#include "transports/tcp/endpoint.hpp"
#include "transports/tcp/farewell.hpp"
#include "transports/tcp/memory.hpp"
#include "transports/tcp/tcp.hpp"
#include "transports/transport.hpp"

namespace hips::tcp {

/// See create(). Split by job: tcp_transport.cpp (making, memory, sleeping), tcp_connect.cpp (endpoints),
/// tcp_poll.cpp (requests, frames and events).
class TcpTransport final : public transport::Transport {
 public:
  static Result<std::unique_ptr<transport::Transport>> create(const Options& options);
  ~TcpTransport() override;
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;

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
  void disarm() override {}

 private:
  /// What the epoll set calls a descriptor: the kind, and a peer or a stranger's descriptor.
  enum class Watched : std::uint32_t { kListener, kStranger, kEndpoint };

  TcpTransport(const Options& options, Doorman doorman, UniqueFd epoll);

  // Endpoints.
  [[nodiscard]] Endpoint* endpoint(transport::PeerId peer) const;
  Status watch(int fd, Watched kind, std::uint32_t number, std::uint32_t events, std::uint32_t before = 0);
  void watch(Endpoint& mine, std::uint32_t events);
  void take_strangers();
  void listen_again();
  void hear_stranger(int stranger);
  void say_hello(Endpoint& mine);
  bool hear_hello(Endpoint& mine);
  void settle(Endpoint& mine);
  enum class Ending { kHangUp, kSilently };
  void break_endpoint(Endpoint& mine, Status error, Ending ending = Ending::kHangUp);
  void connection_ended(Endpoint& mine, int error);
  void refuse(transport::PeerId peer);
  void forget_events(transport::PeerId peer);

  // Requests and frames.
  bool append(Endpoint& mine, const transport::WorkRequest& request);
  void flush(Endpoint& mine);
  void set_ready(Endpoint& mine);
  void set_finished(Endpoint& mine);
  bool ask_few_peers();
  void look_at_sockets();
  std::size_t serve(Endpoint& mine, std::span<transport::Event> events);
  void begin_frame(Endpoint& mine, const FrameHeader& header);
  std::size_t take_completions(std::span<transport::Event> events);
  std::size_t take_arrivals(std::span<transport::Event> events);
  std::size_t take_broken(std::span<transport::Event> events);
  void step_farewells();

  Options options_;
  transport::Limits limits_;
  LinkOptions link_options_;
  std::int32_t pid_;  ///< that made it: a forked child must not touch what peers see
  Doorman doorman_;
  UniqueFd epoll_;
  bool listening_ = true;
  RegionTable memory_;

  std::vector<std::unique_ptr<Endpoint>> endpoints_;  ///< by PeerId
  std::deque<Endpoint*> ready_;  ///< served in turn, so that a busy peer starves no other
  std::deque<Endpoint*> finished_;
  std::vector<Endpoint*> posted_;  ///< by the post() under way
  std::deque<transport::Event> broken_;
  std::vector<Farewell> farewells_;
  std::uint32_t direct_polls_ = 0;
};

}  // namespace hips::tcp
