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
/// Cost     find() by number: one load. By address: O(log n), for callers without the number.
class MemoryTable {
 public:
  /// Errors   kInvalidArgument: no memory. kUnsupported: phantom memory. kOutOfMemory: names the limit and how to
  /// raise it.
  Result<transport::Region> add(ibv_pd& domain, const transport::MemoryDesc& memory, const std::string& port);
  void remove(transport::MemoryId memory);

  /// The registration that contains [address, address + bytes); null if none does. With `memory` -1 it is
  /// looked up by address.
  [[nodiscard]] const ibv_mr* find(const std::byte* address, std::size_t bytes,
                                   transport::MemoryId memory) const;
  [[nodiscard]] std::size_t registered_bytes() const { return bytes_; }

 private:
  std::vector<MemoryHandle> entries_;
  std::multimap<std::uintptr_t, transport::MemoryId> by_address_;
  std::size_t bytes_ = 0;
};

}  // namespace hips::verbs
