#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <hips/hips.h>
#include <hips/types.hpp>

/// Reductions by functions of the program. They are named by values of ReduceOp beyond the library's own, so
/// that all that passes operations on - calls, plans, messages - passes these on as they are; only who folds
/// looks them up.
///
/// | bits of the value | hold                                                                          |
/// |-------------------|-------------------------------------------------------------------------------|
/// | 0 to 7            | 0xfe: commutes, 0xff: does not; what ranks compare, as nothing else is equal  |
/// | 8 to 19           | its place in the table                                                        |
/// | 20 to 30          | how often the place has been used, so that most values of freed ones are none |
namespace hips::reduce {

struct UserOp {
  hips_user_function_t function = nullptr;
  void* context = nullptr;
  void (*release)(void* context) = nullptr;  ///< may be null
};

inline constexpr std::size_t kMostUserOps = 4095;

/// Enters a function, for the whole process; nothing where there are kMostUserOps.
///
/// Threads  any, as the next two.
std::optional<ReduceOp> create_user_op(const UserOp& op, bool commutative);
/// From now on no call can begin with it. It goes, and its context is released, with the last UserOpHold.
/// False where there is none, or it was freed before.
bool free_user_op(ReduceOp op);
/// Is it there, and not freed?
bool is_user_op(ReduceOp op);

/// Keeps a function for a call that may still be folding when the program frees it.
///
/// Owns     a share of the function. None where the operation is one of the library's, or has gone.
class UserOpHold {
 public:
  UserOpHold() = default;
  explicit UserOpHold(ReduceOp op) : op_(is_user(op) ? hold(op) : ReduceOp::kSum) {}
  UserOpHold(UserOpHold&& other) noexcept : op_(other.op_) { other.op_ = ReduceOp::kSum; }
  UserOpHold& operator=(UserOpHold&& other) noexcept {
    const ReduceOp own = op_;
    op_ = other.op_;
    other.op_ = own;
    return *this;
  }
  UserOpHold(const UserOpHold&) = delete;
  UserOpHold& operator=(const UserOpHold&) = delete;
  ~UserOpHold() {
    if (is_user(op_)) let_go(op_);
  }
  /// What it keeps; one of the library's where it keeps nothing.
  [[nodiscard]] ReduceOp op() const { return op_; }

 private:
  static ReduceOp hold(ReduceOp op);
  static void let_go(ReduceOp op);

  ReduceOp op_ = ReduceOp::kSum;
};

/// fold() by a function that somebody holds.
///
/// Order    from the last operand to the first, which for an associative function is the same as the other
///          way round: the function overwrites its right operand, so no copy is needed on the way.
void fold_user(DataType type, ReduceOp op, std::byte* dst, std::span<const std::byte* const> srcs,
               std::size_t elements);

}  // namespace hips::reduce
