#pragma once

#include <memory>
#include <utility>

#include "transports/transport.hpp"

namespace hips::exec::testing {

/// Forwards everything to another transport. Tests override what they observe or change.
class PassingTransport : public transport::Transport {
 public:
  explicit PassingTransport(std::unique_ptr<transport::Transport> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] const transport::Limits& query() const override { return inner_->query(); }
  Result<transport::Address> open(transport::PeerId peer) override { return inner_->open(peer); }
  Status connect(transport::PeerId peer, std::span<const std::byte> address) override {
    return inner_->connect(peer, address);
  }
  void close(transport::PeerId peer) override { inner_->close(peer); }
  Result<transport::Region> register_memory(const transport::MemoryDesc& memory) override {
    return inner_->register_memory(memory);
  }
  void deregister(transport::MemoryId memory) override { inner_->deregister(memory); }
  void take_back(std::span<const std::byte> memory) noexcept override { inner_->take_back(memory); }
  Result<std::span<std::byte>> attach(transport::PeerId peer,
                                      const transport::RemoteRegion& region) override {
    return inner_->attach(peer, region);
  }
  std::size_t post(std::span<const transport::WorkRequest> requests) override {
    return inner_->post(requests);
  }
  std::size_t poll(std::span<transport::Event> events) override { return inner_->poll(events); }
  transport::Armed arm() override { return inner_->arm(); }
  void disarm() override { inner_->disarm(); }

 private:
  std::unique_ptr<transport::Transport> inner_;
};

}  // namespace hips::exec::testing
