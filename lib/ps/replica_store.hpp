#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/ps/mail.hpp"
#include "lib/ps/row_store.hpp"
#include "lib/ps/row_type.hpp"

namespace hips::ps {

/// Replicas of rows that other nodes own, in memory that all ranks of the node map.
///
///     replica:  value, as this node sees it | delta: what its ranks have pushed since the last flush | whether there is a delta
///
/// Only rows that pushes add to: deltas of several nodes can be added in any order.
///
/// Threads  read(), push(): any, of any process. The rest: one at a time, of the process that created it.
class ReplicaStore {
 public:
  /// Whether rows of a type can have replicas.
  static bool is_possible(const RowType& type) { return type.update == ReduceOp::kSum; }
  /// Errors   those of RowStore.
  static Result<ReplicaStore> create(const RowType& type, std::uint64_t max_rows);
  static Result<ReplicaStore> attach(const RowType& type, const SharedMemoryName& name);
  void set_given_up(std::function<bool()> given_up) { store_.set_given_up(std::move(given_up)); }
  [[nodiscard]] const SharedMemoryName& name() const { return store_.name(); }

  Found read(Key key, std::byte* out) const;
  Found push(Key key, const std::byte* given) const;

  /// Adds a replica without a delta. False: there is no room.
  bool insert(Key key, const std::byte* value);
  /// The owner's row is `value`, to which it has not yet added `missing`.
  Found refresh(Key key, const std::byte* value, std::span<const std::vector<std::byte>> missing);
  /// Moves the delta to `delta`, which stays empty where nothing was pushed.
  Found take_delta(Key key, std::vector<std::byte>& delta);
  /// The same, and removes the replica.
  Found remove(Key key, std::vector<std::byte>& delta);
  /// Calls use(key, value, delta) with each replica, once nobody uses the store any more. Without a delta: null.
  template <typename Use>
  void for_each(Use&& use) const {
    store_.for_each([&](Key key, const std::byte* replica) {
      const bool has_one = replica[2 * delta_offset_] != std::byte{0};
      use(key, replica, has_one ? replica + delta_offset_ : nullptr);
    });
  }
  [[nodiscard]] std::uint64_t num_rows() const { return store_.num_rows(); }
  [[nodiscard]] const RowType& type() const { return type_; }

 private:
  ReplicaStore(const RowType& type, RowStore store)
      : type_(type), row_bytes_(type.bytes()), delta_offset_(padded(type)), store_(std::move(store)) {
    work_.resize(replica_bytes(type));
  }
  static std::size_t padded(const RowType& type) {
    return (type.bytes() + type.alignment() - 1) / type.alignment() * type.alignment();
  }
  static std::size_t replica_bytes(const RowType& type) { return 2 * padded(type) + sizeof(std::uint64_t); }
  std::byte* has_delta(std::byte* replica) const { return replica + 2 * delta_offset_; }

  RowType type_;
  std::size_t row_bytes_, delta_offset_;
  RowStore store_;
  std::vector<std::byte> work_;
};

}  // namespace hips::ps
