#include "transports/verbs/memory.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "transports/verbs/trouble.hpp"

namespace hips::verbs {

using transport::MemoryDesc;
using transport::MemoryId;
using transport::MemoryKind;
using transport::Region;

Result<Region> MemoryTable::add(ibv_pd& domain, const MemoryDesc& memory, const std::string& port) {
  if (memory.kind == MemoryKind::kPhantom)
    return fail(Code::kUnsupported,
                fmt::format("verbs: {} cannot register phantom memory; it has no bytes", port));
  if (memory.address == nullptr || memory.bytes == 0) {
    return fail(Code::kInvalidArgument, fmt::format("verbs: {} cannot register {} bytes at {}", port,
                                                    memory.bytes, static_cast<const void*>(memory.address)));
  }
  // iWARP requires remote write access for the target of an RDMA read.
  // Relaxed ordering is off: it would break the order of words that are polled in memory.
  MemoryHandle handle(ibv_reg_mr(&domain, memory.address, memory.bytes,
                                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
  if (handle == nullptr) return fail(registration_error(port, memory.bytes, errno));

  auto slot = std::find(entries_.begin(), entries_.end(), nullptr);
  if (slot == entries_.end()) slot = entries_.insert(entries_.end(), nullptr);
  *slot = std::move(handle);
  const auto id = static_cast<MemoryId>(slot - entries_.begin());
  const ibv_mr& mr = **slot;
  by_address_.emplace(reinterpret_cast<std::uintptr_t>(memory.address), id);
  bytes_ += memory.bytes;
  log::debug(log::Subsystem::kTransport, "{}: registered {} KiB, {} KiB in all", port, memory.bytes / 1024,
             bytes_ / 1024);
  return Region{.local = id,
                .remote = {.key = {reinterpret_cast<std::uintptr_t>(memory.address), mr.rkey, 0, 0},
                           .bytes = memory.bytes}};
}

void MemoryTable::remove(MemoryId memory) {
  if (memory < 0 || static_cast<std::size_t>(memory) >= entries_.size()) return;
  MemoryHandle& handle = entries_[static_cast<std::size_t>(memory)];
  if (handle == nullptr) return;
  const auto [first, last] = by_address_.equal_range(reinterpret_cast<std::uintptr_t>(handle->addr));
  by_address_.erase(std::find_if(first, last, [&](const auto& entry) { return entry.second == memory; }));
  bytes_ -= handle->length;
  handle.reset();
}

const ibv_mr* MemoryTable::find(const std::byte* address, std::size_t bytes, MemoryId memory) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const auto holds = [&](const ibv_mr* mr) {
    const auto start = reinterpret_cast<std::uintptr_t>(mr->addr);
    return begin >= start && bytes <= mr->length && begin - start <= mr->length - bytes;
  };
  if (memory >= 0) [[likely]] {
    if (static_cast<std::size_t>(memory) >= entries_.size()) return nullptr;
    const ibv_mr* mr = entries_[static_cast<std::size_t>(memory)].get();
    return mr != nullptr && holds(mr) ? mr : nullptr;
  }
  // Registrations may overlap: any that begins at or before the address may contain it. The nearest is the
  // likeliest.
  for (auto it = by_address_.upper_bound(begin); it != by_address_.begin();) {
    --it;
    const ibv_mr* mr = entries_[static_cast<std::size_t>(it->second)].get();
    if (holds(mr)) return mr;
  }
  return nullptr;
}

}  // namespace hips::verbs
