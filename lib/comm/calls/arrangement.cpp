#include "lib/comm/calls/arrangement.hpp"

#include <memory>

#include "lib/plan/wide.hpp"

namespace hips::comm {

Arrangement Arrangement::of(const BlockMap& blocks, std::span<const Rank> owners, const Sections& sections) {
  // The weight of a block is its length in a long vector: precise enough, and the same on all ranks.
  constexpr std::int64_t kLong = std::int64_t{1} << 40;
  const auto weight = [&](std::size_t block) {
    const auto at = static_cast<BlockIdx>(block);
    return blocks.boundary(at + 1, kLong) - blocks.boundary(at, kLong);
  };
  std::vector<std::int64_t> whole(sections.num_ranks()), before(sections.num_ranks());
  for (std::size_t block = 0; block < owners.size(); ++block)
    whole[static_cast<std::size_t>(owners[block])] += weight(block);

  Arrangement made;
  made.in_order = true;
  std::vector<std::int64_t> boundaries(owners.size() + 1);
  std::uint64_t in_plan = 0;
  for (std::size_t block = 0; block < owners.size(); ++block) {
    const auto rank = static_cast<std::size_t>(owners[block]);
    const auto share_of = [&](std::int64_t weights) {
      return static_cast<std::uint64_t>(static_cast<plan::Int128>(sections.count(rank)) * weights /
                                        whole[rank]);
    };
    const std::uint64_t begin = share_of(before[rank]);
    before[rank] += weight(block);
    const std::uint64_t elements = share_of(before[rank]) - begin;
    boundaries[block] = static_cast<std::int64_t>(in_plan);
    if (elements > 0) {
      made.in_order &= in_plan == sections.first(rank) + begin;
      if (!made.pieces.empty() && made.pieces.back().rank == owners[block] &&
          made.pieces.back().in_section + made.pieces.back().elements == begin) {
        made.pieces.back().elements += elements;
      } else {
        made.pieces.push_back({in_plan, begin, elements, owners[block]});
      }
    }
    in_plan += elements;
  }
  boundaries.back() = static_cast<std::int64_t>(in_plan);
  made.boundaries = std::make_shared<const std::vector<std::int64_t>>(std::move(boundaries));
  return made;
}

}  // namespace hips::comm
