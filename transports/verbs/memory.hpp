#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "lib/base/result.hpp"
#include "transports/transport.hpp"
#include "transports/verbs/handles.hpp"

namespace hips::verbs {

/// The registered memory of one transport.
///
/// Cost     a key by number: one load. By address: O(log n), for callers that do not know the number.
class MemoryTable {
 public:
  /// Errors   kInvalidArgument: no memory, or phantom memory. kOutOfMemory: with the limit and how to raise
  /// it.
  Result<transport::Region> add(ibv_pd& domain, const transport::MemoryDesc& memory, const std::string& port);
  void remove(transport::MemoryId memory);

  /// The key of [address, address + bytes), which must lie in one registration; null where it does not.
  /// `memory` -1: looked up by address.
  [[nodiscard]] const ibv_mr* find(const std::byte* address, std::size_t bytes,
                                   transport::MemoryId memory) const;
  [[nodiscard]] std::size_t registered_bytes() const { return bytes_; }

 private:
  std::vector<MemoryHandle> entries_;
  std::multimap<std::uintptr_t, transport::MemoryId> by_address_;
  std::size_t bytes_ = 0;
};

}  // namespace hips::verbs
