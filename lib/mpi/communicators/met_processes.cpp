#include "lib/mpi/communicators/met_processes.hpp"

#include <algorithm>
#include <utility>

namespace hips::mpi {

std::vector<Rank> MetProcesses::key(std::span<const Rank> world_ranks) {
  std::vector<Rank> ascending(world_ranks.begin(), world_ranks.end());
  std::ranges::sort(ascending);
  return ascending;
}

void MetProcesses::add(std::vector<Rank> world_ranks, std::unique_ptr<comm::Communicator> communicator) {
  const std::lock_guard lock(mutex_);
  meetings_.push_back({std::move(world_ranks), std::move(communicator)});
  num_meetings_.fetch_add(1, std::memory_order_release);
}

std::vector<Rank> MetProcesses::places_in(const Meeting& meeting, std::span<const Rank> world_ranks) {
  std::vector<Rank> places;
  for (const Rank rank : world_ranks) {
    const auto found = std::ranges::find(meeting.world_ranks, rank);
    if (found == meeting.world_ranks.end()) return {};
    places.push_back(static_cast<Rank>(found - meeting.world_ranks.begin()));
  }
  return places;
}

bool MetProcesses::have_met(std::span<const Rank> world_ranks) {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(
      meetings_, [&](const Meeting& meeting) { return !places_in(meeting, world_ranks).empty(); });
}

std::optional<Result<std::unique_ptr<comm::Communicator>>> MetProcesses::derive(
    std::span<const Rank> world_ranks, const comm::CommunicatorOptions& options) {
  const std::lock_guard lock(mutex_);
  for (Meeting& meeting : meetings_) {
    const std::vector<Rank> members = places_in(meeting, world_ranks);
    if (members.empty()) continue;
    // Sets differ in `part`, communicators of a set in their number.
    std::uint64_t part = 0;
    const std::vector<Rank> set = key(world_ranks);
    for (const Rank rank : set) part = (part + static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15ULL;
    // The meeting has failed if any of its processes has died. Those that are left can still meet.
    return meeting.communicator->derive(members, ++sets_[set].num_derived, part, options,
                                        comm::Communicator::IfFailed::kDerive);
  }
  return std::nullopt;
}

MetProcesses::Tuning& MetProcesses::tuning(std::span<const Rank> world_ranks) {
  const std::lock_guard lock(mutex_);
  return sets_[key(world_ranks)].tuning;
}

void MetProcesses::clear() {
  std::vector<Meeting> meetings;
  {
    const std::lock_guard lock(mutex_);
    meetings.swap(meetings_);
  }
}

}  // namespace hips::mpi
