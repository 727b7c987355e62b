#include "lib/reduce/user_op.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

namespace hips::reduce {
namespace {

constexpr std::uint32_t kCommutes = 0xfe, kOrdered = 0xff;
constexpr int kSlotShift = 8, kUseShift = 20;
constexpr std::uint32_t kSlotMask = 0xfff, kUseMask = 0x7ff;
// The last slot stays empty, because its value could be HIPS_OP_NULL.
static_assert(kMostUserOps <= kSlotMask);

struct Slot {
  UserFunction op;
  std::uint32_t value = 0;  ///< value of the operation in this slot, as long as it is held; 0: free
  std::uint32_t uses = 0;
  std::uint32_t holds = 0;  ///< holds, including that of the program
  bool freed = false;
};

/// A fixed table, so that the holder of an operation reads its function without a lock.
struct OpTable {
  std::mutex mutex;  ///< guards everything except `op` of held slots
  std::array<Slot, kMostUserOps> slots;
  std::size_t next = 0;  ///< next slot to try; slots are used in turn, so that values repeat late

  Slot* find(ReduceOp op) {
    const auto value = static_cast<std::uint32_t>(op);
    const std::size_t index = value >> kSlotShift & kSlotMask;
    if (!is_user(op) || index >= slots.size() || slots[index].value != value) return nullptr;
    return &slots[index];
  }
};

OpTable& table() {
  // Never destroyed: static communicators may still reduce while the process ends.
  static OpTable& only = *new OpTable;
  return only;
}

/// Removes one hold. Returns the function to release after the mutex is unlocked.
UserFunction drop(Slot& slot) {
  if (--slot.holds > 0) return {};
  slot.value = 0;
  return slot.op;
}

void release(const UserFunction& op) {
  if (op.release != nullptr) op.release(op.context);
}

}  // namespace

std::optional<ReduceOp> create_user_op(const UserFunction& op, bool commutative) {
  OpTable& all = table();
  const std::lock_guard lock(all.mutex);
  for (std::size_t tries = 0; tries < all.slots.size(); ++tries) {
    const std::size_t index = all.next;
    all.next = (all.next + 1) % all.slots.size();
    Slot& slot = all.slots[index];
    if (slot.value != 0) continue;
    slot.value = (commutative ? kCommutes : kOrdered) | static_cast<std::uint32_t>(index) << kSlotShift |
                 (slot.uses & kUseMask) << kUseShift;
    ++slot.uses;
    slot.op = op;
    slot.holds = 1;
    slot.freed = false;
    return static_cast<ReduceOp>(slot.value);
  }
  return std::nullopt;
}

bool free_user_op(ReduceOp op) {
  UserFunction gone;
  {
    OpTable& all = table();
    const std::lock_guard lock(all.mutex);
    Slot* const slot = all.find(op);
    if (slot == nullptr || slot->freed) return false;
    slot->freed = true;
    gone = drop(*slot);
  }
  release(gone);
  return true;
}

bool is_user_op(ReduceOp op) {
  OpTable& all = table();
  const std::lock_guard lock(all.mutex);
  const Slot* const slot = all.find(op);
  return slot != nullptr && !slot->freed;
}

ReduceOp UserOpHold::hold(ReduceOp op) {
  OpTable& all = table();
  const std::lock_guard lock(all.mutex);
  Slot* const slot = all.find(op);
  if (slot == nullptr) return ReduceOp::kSum;
  ++slot->holds;
  return op;
}

void UserOpHold::let_go(ReduceOp op) {
  UserFunction gone;
  {
    OpTable& all = table();
    const std::lock_guard lock(all.mutex);
    if (Slot* const slot = all.find(op); slot != nullptr) gone = drop(*slot);
  }
  release(gone);
}

void fold_user(DataType type, ReduceOp op, std::byte* dst, std::span<const std::byte* const> srcs,
               std::size_t elements) {
  const UserFunction& user = table().slots[static_cast<std::uint32_t>(op) >> kSlotShift & kSlotMask].op;
  const std::size_t element_bytes = size_of(type);
  const auto fold_into = [&](std::byte* to, std::size_t first, std::size_t count) {
    const std::size_t begin = first * element_bytes;
    if (srcs.back() + begin != to) std::memcpy(to, srcs.back() + begin, count * element_bytes);
    for (std::size_t s = srcs.size() - 1; s-- > 0;)
      user.function(srcs[s] + begin, to, count, static_cast<hips_type_t>(type), user.context);
  };
  if (std::find(srcs.begin(), srcs.end() - 1, dst) == srcs.end() - 1) return fold_into(dst, 0, elements);
  // The destination is an operand that is read later, so results go through a small buffer, piece by piece.
  alignas(64) std::array<std::byte, 16 * kMaxElementBytes> piece;
  const std::size_t most = piece.size() / element_bytes;
  for (std::size_t first = 0; first < elements; first += most) {
    const std::size_t count = std::min(most, elements - first);
    fold_into(piece.data(), first, count);
    std::memcpy(dst + first * element_bytes, piece.data(), count * element_bytes);
  }
}

}  // namespace hips::reduce
