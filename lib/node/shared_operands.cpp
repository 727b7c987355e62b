#include "lib/node/shared_operands.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace hips::node {

Place HeldOperands::hold(const std::byte* address, std::size_t bytes) {
  UserRange* const range = registry_.hold(address, bytes);
  if (range == nullptr) return {};
  if (range->segment.size() == 0) {
    MemoryRegistry::drop(range);
    return {};
  }
  ranges_[num_++] = range;
  return {range->segment.name(), static_cast<std::uint64_t>(address - range->address)};
}

void HeldOperands::drop() {
  while (num_ > 0) MemoryRegistry::drop(ranges_[--num_]);
}

Result<const std::byte*> PeerSegments::find(const Place& place, std::uint64_t call) {
  if (place.offset >= place.segment.bytes)
    return fail(Code::kMismatch,
                fmt::format("shared memory: byte {} of a segment of {}", place.offset, place.segment.bytes),
                Scope::kCommunicator);
  auto found = std::ranges::find_if(
      segments_, [&](const Segment& one) { return one.memory.name().token == place.segment.token; });
  if (found == segments_.end()) {
    auto memory = SharedMemory::attach_readable(place.segment);
    if (!memory) return fail(std::move(memory).error());
    if (segments_.size() < kMost) {
      found = segments_.emplace(segments_.end());
    } else {
      // A call has two buffers, so that none of this call goes.
      found = std::ranges::min_element(segments_, {}, &Segment::last_call);
    }
    found->memory = std::move(*memory);
  }
  found->last_call = call;
  return found->memory.data() + place.offset;
}

}  // namespace hips::node
