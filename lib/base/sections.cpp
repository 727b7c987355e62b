#include "lib/base/sections.hpp"

#include <algorithm>

namespace hips {

Sections::Sections(std::size_t num_ranks, std::uint64_t count) : first_(num_ranks + 1) {
  for (std::size_t rank = 0; rank <= num_ranks; ++rank) first_[rank] = rank * count;
  sum_up();
}

Sections::Sections(std::span<const std::uint64_t> counts, std::span<const std::uint64_t> displacements)
    : first_(counts.size() + 1) {
  for (std::size_t rank = 0; rank < counts.size(); ++rank) first_[rank + 1] = first_[rank] + counts[rank];
  if (!displacements.empty() && !std::equal(displacements.begin(), displacements.end(), first_.begin()))
    displacements_.assign(displacements.begin(), displacements.end());
  sum_up();
}

void Sections::sum_up() {
  std::uint64_t hash = 0x9e3779b97f4a7c15;  // splitmix64's constants
  for (std::size_t rank = 0; rank + 1 < first_.size(); ++rank) {
    longest_ = std::max(longest_, count(rank));
    hash ^= count(rank) + 0x9e3779b97f4a7c15;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111eb;
    hash ^= hash >> 31;
  }
  digest_ = static_cast<std::uint32_t>(hash ^ hash >> 32);
}

bool Sections::is_of(std::span<const std::uint64_t> counts,
                     std::span<const std::uint64_t> displacements) const {
  if (counts.size() != num_ranks()) return false;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    if (counts[rank] != count(rank) || (!displacements.empty() && displacements[rank] != displacement(rank)))
      return false;
  }
  return !displacements.empty() || packed();
}

std::uint64_t Sections::extent() const {
  if (displacements_.empty()) return total();
  std::uint64_t end = 0;
  for (std::size_t rank = 0; rank < displacements_.size(); ++rank) {
    if (count(rank) > 0) end = std::max(end, displacements_[rank] + count(rank));
  }
  return end;
}

std::shared_ptr<const Sections> SectionsCache::of(std::size_t num_ranks, std::uint64_t count) {
  if (!last_ || !last_->packed() || last_->longest() != count || last_->num_ranks() != num_ranks ||
      last_->total() != num_ranks * count)
    last_ = std::make_shared<const Sections>(num_ranks, count);
  return last_;
}

std::shared_ptr<const Sections> SectionsCache::of(std::span<const std::uint64_t> counts,
                                                  std::span<const std::uint64_t> displacements) {
  if (!last_ || !last_->is_of(counts, displacements))
    last_ = std::make_shared<const Sections>(counts, displacements);
  return last_;
}

}  // namespace hips
