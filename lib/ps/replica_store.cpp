#include "lib/ps/replica_store.hpp"

#include <algorithm>
#include <cstring>

namespace hips::ps {

Result<ReplicaStore> ReplicaStore::create(const RowType& type, std::uint64_t max_rows) {
  auto store = RowStore::create(replica_bytes(type), max_rows, type.alignment());
  if (!store) return fail(std::move(store).error());
  return ReplicaStore(type, std::move(*store));
}

Result<ReplicaStore> ReplicaStore::attach(const RowType& type, const SharedMemoryName& name) {
  auto store = RowStore::attach(name);
  if (!store) return fail(std::move(store).error());
  return ReplicaStore(type, std::move(*store));
}

Found ReplicaStore::push(Key key, const std::byte* given) const {
  return store_.with(key, [&](std::byte* replica) {
    type_.apply(replica, given);
    type_.apply(replica + delta_offset_, given);
    *has_delta(replica) = std::byte{1};
  });
}

bool ReplicaStore::insert(Key key, const std::byte* value) {
  if (store_.num_rows() == store_.max_rows()) return false;
  std::fill(work_.begin(), work_.end(), std::byte{0});
  std::memcpy(work_.data(), value, row_bytes_);
  return store_.insert(key, work_.data()).ok();
}

Found ReplicaStore::refresh(Key key, const std::byte* value,
                            std::span<const std::vector<std::byte>> missing) {
  return store_.with(key, [&](std::byte* replica) {
    std::memcpy(replica, value, row_bytes_);
    for (const auto& delta : missing) {
      if (!delta.empty()) type_.apply(replica, delta.data());
    }
    if (*has_delta(replica) != std::byte{0}) type_.apply(replica, replica + delta_offset_);
  });
}

Found ReplicaStore::read(Key key, std::byte* out) const {
  return store_.copy(key, store_.place_of(key), out, row_bytes_);
}

Found ReplicaStore::take_delta(Key key, std::vector<std::byte>& delta) {
  delta.clear();
  return store_.with(key, [&](std::byte* replica) {
    if (*has_delta(replica) == std::byte{0}) return;
    std::byte* const from = replica + delta_offset_;
    delta.assign(from, from + row_bytes_);
    std::memset(from, 0, row_bytes_);
    *has_delta(replica) = std::byte{0};
  });
}

Found ReplicaStore::remove(Key key, std::vector<std::byte>& delta) {
  delta.clear();
  const Found found = store_.take(key, work_.data());
  if (found == Found::kHere && *has_delta(work_.data()) != std::byte{0})
    delta.assign(work_.data() + delta_offset_, work_.data() + delta_offset_ + row_bytes_);
  return found;
}

}  // namespace hips::ps
