#pragma once

#include <barrier>
#include <cstddef>
#include <utility>
#include <vector>

#include "lib/base/exchange.hpp"

// Exchanges of a set-up whose ranks are all in this process.
namespace hips::test {

/// An exchange of all ranks in one thread.
class Exchanged {
 public:
  explicit Exchanged(std::vector<Outbound> all) : from_peers_(all.size()) {
    for (std::size_t from = 0; from < all.size(); ++from) {
      incoming_.from_all.push_back(std::move(all[from].to_all));
      for (PeerBlob& one : all[from].to_peers)
        from_peers_[static_cast<std::size_t>(one.peer)].push_back(
            {static_cast<Rank>(from), std::move(one.blob)});
    }
  }
  /// What the rank gets; once for each, and valid until the next.
  const Inbound& of(std::size_t rank) {
    incoming_.from_peers = std::move(from_peers_[rank]);
    return incoming_;
  }

 private:
  Inbound incoming_;
  std::vector<std::vector<PeerBlob>> from_peers_;
};

/// Exchanges between threads, one for each rank.
class ThreadExchange {
 public:
  explicit ThreadExchange(Rank size) : barrier_(size), all_(static_cast<std::size_t>(size)) {}
  Inbound all(Rank rank, Outbound mine) {
    all_[static_cast<std::size_t>(rank)] = std::move(mine);
    barrier_.arrive_and_wait();
    Inbound incoming = inbound_of(rank, all_);
    barrier_.arrive_and_wait();
    return incoming;
  }
  void meet() { barrier_.arrive_and_wait(); }

 private:
  std::barrier<> barrier_;
  std::vector<Outbound> all_;
};

}  // namespace hips::test
