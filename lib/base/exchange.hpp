#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <hips/topology.hpp>

namespace hips {

using Blob = std::vector<std::byte>;

struct PeerBlob {
  Rank peer = -1;
  Blob blob{};
};

/// What a rank passes to an exchange among all: bytes for all ranks, and bytes for single ones. The latter are for what only
/// neighbours need, so that what a rank receives does not grow with what all others say to each other.
struct Outbound {
  Blob to_all{};
  std::vector<PeerBlob> to_peers{};  ///< by receiver
};

/// What a rank gets from an exchange.
struct Inbound {
  std::vector<Blob> from_all{};        ///< by rank, with its own
  std::vector<PeerBlob> from_peers{};  ///< by sender, ascending
};

/// What `rank` gets when all ranks pass `all`. Time: linear in all that they pass to single ranks.
inline Inbound inbound_of(Rank rank, std::span<const Outbound> all) {
  Inbound incoming;
  for (std::size_t from = 0; from < all.size(); ++from) {
    incoming.from_all.push_back(all[from].to_all);
    for (const PeerBlob& one : all[from].to_peers)
      if (one.peer == rank) incoming.from_peers.push_back({static_cast<Rank>(from), one.blob});
  }
  return incoming;
}

}  // namespace hips
