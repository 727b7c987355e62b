#include "lib/node/shared_operands.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace hips::node {

BufferLocation HeldOperands::hold(const std::byte* address, std::size_t bytes) {
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

Result<const std::byte*> PeerSegments::find(const BufferLocation& location, std::size_t bytes,
                                            std::uint64_t call) {
  if (bytes > location.segment.bytes || location.offset > location.segment.bytes - bytes)
    return fail(Code::kMismatch,
                fmt::format("shared memory: {} bytes at offset {} are outside a segment of {} bytes", bytes,
                            location.offset, location.segment.bytes),
                Scope::kCommunicator);
  auto found = std::ranges::find_if(
      segments_, [&](const Segment& one) { return one.memory.name().token == location.segment.token; });
  if (found == segments_.end()) {
    auto memory = SharedMemory::attach_readable(location.segment);
    // Segments of earlier calls may be freed by their owners, and still take addresses here.
    if (!memory && memory.error().code == Code::kOutOfMemory &&
        std::erase_if(segments_, [&](const Segment& one) { return one.last_call != call; }) > 0)
      memory = SharedMemory::attach_readable(location.segment);
    if (!memory) return fail(std::move(memory).error());
    if (segments_.size() < kMost) {
      found = segments_.emplace(segments_.end());
    } else {
      // A call has at most two buffers of a peer, so this evicts no segment of the current call.
      found = std::ranges::min_element(segments_, {}, &Segment::last_call);
    }
    found->memory = std::move(*memory);
  }
  found->last_call = call;
  return found->memory.data() + location.offset;
}

}  // namespace hips::node
