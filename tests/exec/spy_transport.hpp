#pragma once

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "transports/transport.hpp"

namespace hips::exec::testing {

/// What a SpyTransport has seen; outlives it.
struct Seen {
  std::set<transport::MemoryId> user_memory;  ///< registered ordinary memory: the user's
  int registered = 0, deregistered = 0;       ///< of it
  int segments = 0;                           ///< puts with a payload
  int granted = 0;                            ///< those into memory that the receiver has granted
  int in_place = 0;                           ///< those whose payload leaves from the user's memory
  int notes = 0;                              ///< notifications without a byte: credits
  int opened = 0;                             ///< endpoints
  bool refuses = false;                       ///< answers that memory must not be locked
};

/// Passes everything on and counts.
class SpyTransport final : public transport::Transport {
 public:
  SpyTransport(std::unique_ptr<transport::Transport> inner, Seen& seen)
      : inner_(std::move(inner)), seen_(seen) {}

  [[nodiscard]] const transport::Limits& query() const override { return inner_->query(); }
  Result<transport::Address> open(transport::PeerId peer) override {
    ++seen_.opened;
    return inner_->open(peer);
  }
  Status connect(transport::PeerId peer, std::span<const std::byte> address) override {
    return inner_->connect(peer, address);
  }
  void close(transport::PeerId peer) override { inner_->close(peer); }
  Result<transport::Region> register_memory(const transport::MemoryDesc& memory) override {
    const bool users = memory.kind == transport::MemoryKind::kHost;
    if (users && seen_.refuses) return fail(Code::kOutOfMemory, "spy: RLIMIT_MEMLOCK is too low");
    auto region = inner_->register_memory(memory);
    if (users && region) {
      ++seen_.registered;
      seen_.user_memory.insert(region->local);
    }
    return region;
  }
  void deregister(transport::MemoryId memory) override {
    if (seen_.user_memory.erase(memory) > 0) ++seen_.deregistered;
    inner_->deregister(memory);
  }
  Result<std::span<std::byte>> attach(transport::PeerId peer,
                                      const transport::RemoteRegion& region) override {
    return inner_->attach(peer, region);
  }
  std::size_t post(std::span<const transport::WorkRequest> requests) override {
    const std::size_t taken = inner_->post(requests);
    for (const auto& request : requests.first(taken)) {
      std::size_t bytes = 0;
      for (const auto& piece : request.pieces) bytes += piece.bytes;
      const bool put = request.verb == transport::Verb::kPut;
      if (bytes == 0) ++seen_.notes;
      if (!put && bytes <= 64) continue;  // credits, grants, headers alone
      ++seen_.segments;
      if (put) ++seen_.granted;
      const auto& payload = request.pieces[static_cast<std::size_t>(request.num_pieces - 1)];
      if (seen_.user_memory.contains(payload.memory)) ++seen_.in_place;
    }
    return taken;
  }
  std::size_t poll(std::span<transport::Event> events) override { return inner_->poll(events); }
  transport::Armed arm() override { return inner_->arm(); }
  void disarm() override { inner_->disarm(); }

 private:
  std::unique_ptr<transport::Transport> inner_;
  Seen& seen_;
};

}  // namespace hips::exec::testing
