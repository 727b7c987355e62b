#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <hips/hips.h>
#include <hips/types.hpp>

/// Reductions by user-defined functions. Each has a value of ReduceOp above those of the library, so calls,
/// plans and messages pass it on like any other; only the code that reduces looks the function up.
///
/// | bits of the value | hold                                                                          |
/// |-------------------|-------------------------------------------------------------------------------|
/// | 0 to 7            | 0xfe: commutes, 0xff: does not; ranks compare only these bits                 |
/// | 8 to 19           | slot in the table                                                             |
/// | 20 to 30          | uses of the slot, so that most values of freed functions are invalid          |
namespace hips::reduce {

struct UserFunction {
  hips_user_function_t function = nullptr;
  void* context = nullptr;
  void (*release)(void* context) = nullptr;  ///< may be null
};

inline constexpr std::size_t kMostUserOps = 4095;

/// Adds a function, for the whole process. Empty if there are kMostUserOps already.
///
/// Threads  any, like the next two functions.
std::optional<ReduceOp> create_user_op(const UserFunction& op, bool commutative);
/// Frees a function: no new call can use it. The function ends, and its context is released, with the last
/// UserOpHold. False if the function is unknown or already freed.
bool free_user_op(ReduceOp op);
/// Whether the function exists and has not been freed.
bool is_user_op(ReduceOp op);

/// Keeps a function alive for a call that may still be reducing when the program frees it.
///
/// Owns     a share of the function; nothing if the operation is one of the library's, or the function has ended.
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
  /// The operation that it keeps alive; one of the library's if it keeps nothing.
  [[nodiscard]] ReduceOp op() const { return op_; }

 private:
  static ReduceOp hold(ReduceOp op);
  static void let_go(ReduceOp op);

  ReduceOp op_ = ReduceOp::kSum;
};

/// fold() with a user-defined function. The caller keeps the function alive.
///
/// Order    from the last operand to the first. For an associative function the result is the same as in the other
///          direction. The function overwrites its right operand, so this order needs no copies.
void fold_user(DataType type, ReduceOp op, std::byte* dst, std::span<const std::byte* const> srcs,
               std::size_t elements);

}  // namespace hips::reduce
