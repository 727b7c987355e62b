#pragma once

#include <array>

#include "lib/base/memory_registry.hpp"
#include "lib/comm/calls/call_args.hpp"

namespace hips::comm {

/// Registered memory that a call reads or writes: hips_mem_free() and its like refuse it meanwhile.
///
/// Cost     one load while nothing is registered.
class HeldBuffers {
 public:
  HeldBuffers() = default;
  HeldBuffers(const HeldBuffers&) = delete;
  HeldBuffers& operator=(const HeldBuffers&) = delete;
  ~HeldBuffers() { drop(); }

  /// `args` are valid.
  void hold(const CallArgs& args, Rank rank) {
    MemoryRegistry& registry = MemoryRegistry::process();
    if (registry.num_ranges() == 0) return;
    const CallMemory memory = memory_of(args, rank);
    ranges_ = {held(registry, memory.in), held(registry, memory.out)};
  }
  void drop() {
    for (UserRange*& range : ranges_) {
      if (range != nullptr) MemoryRegistry::drop(range);
      range = nullptr;
    }
  }

 private:
  static UserRange* held(MemoryRegistry& registry, std::span<const std::byte> memory) {
    return memory.empty() ? nullptr : registry.hold(memory.data(), memory.size());
  }

  std::array<UserRange*, 2> ranges_{};
};

}  // namespace hips::comm
