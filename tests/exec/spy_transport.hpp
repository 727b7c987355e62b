#pragma once

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tests/exec/passing_transport.hpp"

namespace hips::exec::testing {

/// Counters of a SpyTransport; they outlive it.
struct Seen {
  std::set<transport::MemoryId> user_memory;  ///< registrations of ordinary memory: the user's
  int registered = 0, deregistered = 0;       ///< registrations and deregistrations of user memory
  int segments = 0;                           ///< number of puts with a payload
  int granted = 0;                            ///< those into granted memory
  int in_place = 0;                           ///< those whose payload is sent from the user's memory
  int notes = 0;                              ///< notifications without data: credits
  int opened = 0;                             ///< endpoints that were opened
  bool refuses = false;                       ///< refuses registrations: memory cannot be locked
};

/// Counts requests and registrations.
class SpyTransport final : public PassingTransport {
 public:
  SpyTransport(std::unique_ptr<transport::Transport> inner, Seen& seen)
      : PassingTransport(std::move(inner)), seen_(seen) {}

  Result<transport::Address> open(transport::PeerId peer) override {
    ++seen_.opened;
    return PassingTransport::open(peer);
  }
  Result<transport::Region> register_memory(const transport::MemoryDesc& memory) override {
    const bool users = memory.kind == transport::MemoryKind::kHost;
    if (users && seen_.refuses) return fail(Code::kOutOfMemory, "spy: RLIMIT_MEMLOCK is too low");
    auto region = PassingTransport::register_memory(memory);
    if (users && region) {
      ++seen_.registered;
      seen_.user_memory.insert(region->local);
    }
    return region;
  }
  void deregister(transport::MemoryId memory) override {
    if (seen_.user_memory.erase(memory) > 0) ++seen_.deregistered;
    PassingTransport::deregister(memory);
  }
  std::size_t post(std::span<const transport::WorkRequest> requests) override {
    const std::size_t taken = PassingTransport::post(requests);
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

 private:
  Seen& seen_;
};

}  // namespace hips::exec::testing
