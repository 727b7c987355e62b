#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include <hips/hips.h>
#include <hips/last_error.hpp>
#include <hips/status.hpp>
#include <hips/types.hpp>

namespace hips {

/// What can be sent, and reduced by a UserOp: plain data of at most kMaxElementBytes, numbers and structures.
template <typename T>
concept PlainData = std::is_trivially_copyable_v<T> && !std::is_const_v<T> && sizeof(T) <= kMaxElementBytes &&
                    alignof(T) <= alignof(std::max_align_t);

/// Must operands be reduced in the order of ranks?
enum class UserOrder : std::uint8_t {
  kCommutes,  ///< a op b is b op a: any plan, any order
  kOrdered,   ///< rank 0's op rank 1's op ... op rank n-1's; see hips_op_create() for what that costs
};

/// A user-defined reduction: T(const T& a, const T& b), associative, `a` from lower ranks.
///
///     hips::UserOp<Matrix> product(std::multiplies<Matrix>(), hips::UserOrder::kOrdered);
///     comm.allreduce(matrices, product);
///
/// Shapes   any PlainData T, including types that HiPS reduces itself, such as float.
/// Owns     a copy of the function, until the op and the last call or request with it are gone.
/// Threads  the function runs on any thread that makes progress on the call, on several at once for several
///          communicators. It must not call HiPS; an exception that leaves it ends the program.
/// Errors   throws Error. kOutOfMemory: there are too many ops.
template <PlainData T>
class UserOp {
 public:
  template <typename Function>
  requires std::regular_invocable<const Function&, const T&, const T&> &&
      std::convertible_to<std::invoke_result_t<const Function&, const T&, const T&>, T>
  explicit UserOp(Function function, UserOrder order = UserOrder::kCommutes) {
    auto context = std::make_unique<Function>(std::move(function));
    const hips_status_t status = hips_op_create(reduce<Function>, order == UserOrder::kCommutes ? 1 : 0,
                                                context.get(), release<Function>, &op_);
    throw_if_failed(status);
    (void)context.release();
  }
  UserOp(UserOp&& other) noexcept : op_(std::exchange(other.op_, HIPS_OP_NULL)) {}
  /// Frees the old op at once.
  UserOp& operator=(UserOp&& other) noexcept {
    UserOp taken(std::move(other));
    std::swap(op_, taken.op_);
    return *this;
  }
  UserOp(const UserOp&) = delete;
  UserOp& operator=(const UserOp&) = delete;
  /// Outstanding calls and persistent requests keep the function.
  ~UserOp() {
    if (op_ != HIPS_OP_NULL) (void)hips_op_free(&op_);
  }

  /// For calls of the C API; still owned by this object.
  [[nodiscard]] hips_op_t handle() const { return op_; }

 private:
  template <typename Function>
  static void reduce(const void* in, void* inout, std::uint64_t count, hips_type_t /*type*/,
                     void* context) noexcept {
    const auto& function = *static_cast<const Function*>(context);
    const std::span<const T> lower(static_cast<const T*>(in), count);
    T* const higher = static_cast<T*>(inout);
    std::transform(lower.begin(), lower.end(), higher, higher,
                   [&](const T& a, const T& b) -> T { return function(a, b); });
  }
  template <typename Function>
  static void release(void* context) {
    delete static_cast<Function*>(context);
  }

  hips_op_t op_ = HIPS_OP_NULL;
};

}  // namespace hips
