#include <hips/topology.hpp>

#include <algorithm>

#include "topology/walk.hpp"

namespace hips {

namespace {

std::int64_t stride_of(const Topology& topology, std::int32_t level) {
  std::int64_t stride = 1;
  for (std::int32_t l = 0; l < level; ++l) stride *= topology.levels[static_cast<std::size_t>(l)].radix;
  return stride;
}

}  // namespace

Rank Topology::num_ranks() const {
  if (!part.empty()) return static_cast<Rank>(static_cast<std::int64_t>(part.size()) * ranks_per_server);
  return static_cast<Rank>(stride_of(*this, static_cast<std::int32_t>(levels.size())));
}

std::int64_t Topology::num_whole_servers() const {
  return stride_of(*this, static_cast<std::int32_t>(levels.size())) / ranks_per_server;
}

std::int64_t Topology::server_in_use(std::int64_t whole) const {
  if (part.empty()) return whole;
  const auto found = std::lower_bound(part.begin(), part.end(), whole);
  return found == part.end() || *found != whole ? -1 : found - part.begin();
}

std::vector<std::int64_t> Topology::digits(Rank rank) const {
  std::vector<std::int64_t> out;
  out.reserve(levels.size());
  std::int64_t rest = topology::whole_rank(*this, rank);
  for (const Level& level : levels) {
    out.push_back(rest % level.radix);
    rest /= level.radix;
  }
  return out;
}

Rank Topology::rank_of(std::span<const std::int64_t> digits) const {
  std::int64_t rank = 0;
  for (std::size_t l = levels.size(); l-- > 0;) rank = rank * levels[l].radix + digits[l];
  return topology::rank_in_use(*this, rank);
}

std::int64_t Topology::digit(Rank rank, std::int32_t level) const {
  return topology::whole_rank(*this, rank) / stride_of(*this, level) %
         levels[static_cast<std::size_t>(level)].radix;
}

Rank Topology::with_digit(Rank rank, std::int32_t level, std::int64_t digit) const {
  const std::int64_t stride = stride_of(*this, level);
  const std::int64_t whole = topology::whole_rank(*this, rank);
  const std::int64_t old = whole / stride % levels[static_cast<std::size_t>(level)].radix;
  return topology::rank_in_use(*this, whole + (digit - old) * stride);
}

std::vector<Hop> Topology::neighbours(Rank rank) const {
  std::vector<Hop> hops;
  topology::visit_neighbours(*this, rank, [&](const Hop& hop) { hops.push_back(hop); });
  return hops;
}

std::vector<Hop> Topology::route(Rank a, Rank b) const {
  std::vector<Hop> hops;
  topology::walk(*this, a, b, kNoRail, [&](const Hop& hop) { hops.push_back(hop); });
  return hops;
}

}  // namespace hips
