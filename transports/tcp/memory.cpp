#include "transports/tcp/memory.hpp"

#include <fmt/format.h>

namespace hips::tcp {

using transport::MemoryDesc;
using transport::MemoryId;
using transport::MemoryKind;
using transport::Region;

// Starts at a random number, so that a key of another process does not match one of ours by chance.
RegionTable::RegionTable() : first_stamp_(static_cast<std::uint32_t>(EndpointToken::random().low)) {}

Result<Region> RegionTable::add(const MemoryDesc& memory) {
  if (memory.kind == MemoryKind::kPhantom)
    return fail(Code::kUnsupported, "tcp: phantom memory has no bytes to send", Scope::kOperation);
  if (memory.address == nullptr)
    return fail(Code::kInvalidArgument, fmt::format("tcp: {} bytes without an address", memory.bytes));
  auto stamp = first_stamp_ + static_cast<std::uint32_t>(num_given_++);
  if (stamp == 0) stamp = first_stamp_ + static_cast<std::uint32_t>(num_given_++);
  MemoryId id = static_cast<MemoryId>(entries_.size());
  if (free_.empty()) {
    // So that remove() needs no memory.
    if (free_.capacity() <= entries_.size()) free_.reserve(2 * entries_.size() + 16);
    entries_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  entries_[static_cast<std::size_t>(id)] = {memory.address, memory.bytes, stamp};
  return Region{.local = id,
                .remote = {.key = {static_cast<std::uint64_t>(id), stamp}, .bytes = memory.bytes}};
}

void RegionTable::remove(MemoryId memory) {
  if (memory < 0 || static_cast<std::size_t>(memory) >= entries_.size()) return;
  Entry& entry = entries_[static_cast<std::size_t>(memory)];
  if (entry.stamp == 0) return;
  entry = {};
  free_.push_back(memory);
}

Result<std::span<std::byte>> RegionTable::find(const FrameHeader& frame) const {
  const auto index = static_cast<std::size_t>(frame.memory);
  if (frame.memory < 0 || index >= entries_.size() || frame.stamp == 0 ||
      entries_[index].stamp != frame.stamp) {
    return fail(Code::kInternal, fmt::format("{} bytes of memory {} (stamp {}), which is not registered",
                                             frame.bytes, frame.memory, frame.stamp));
  }
  const Entry& entry = entries_[index];
  if (frame.offset > entry.bytes || frame.bytes > entry.bytes - frame.offset) {
    return fail(Code::kInternal, fmt::format("{} bytes at offset {} of a region of {} bytes", frame.bytes,
                                             frame.offset, entry.bytes));
  }
  return std::span(entry.address + frame.offset, frame.bytes);
}

bool RegionTable::is_gone(const FrameHeader& frame) const {
  const auto index = static_cast<std::size_t>(frame.memory);
  return frame.memory >= 0 && index < entries_.size() && frame.stamp != 0 &&
         entries_[index].stamp != frame.stamp && frame.stamp - first_stamp_ < num_given_;
}

}  // namespace hips::tcp
