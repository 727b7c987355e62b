#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace hips::mpi {

/// Request handles that native MPI never produces: one range of numbers, so that a subtraction and a
/// comparison tell our handles from its own.
///
/// Where a handle is a pointer (Open MPI) the range is memory of our own. Where it is an int (MPICH and its
/// ABI) its two highest bits say how MPICH stores the object, and 0 there means that there is none: only null
/// handles look like that, and ours.
///
/// Units    `first`, `stride` in the handle's own numbers.
/// Threads  a value.
template <typename Handle>
class RequestHandles {
  static_assert(std::is_pointer_v<Handle> || sizeof(Handle) == 4);
  using Bits = std::conditional_t<std::is_pointer_v<Handle>, std::uintptr_t, std::uint32_t>;

 public:
  /// MPI_REQUEST_NULL of MPICH is 0x2c000000; objects that exist begin at 0x40000000.
  static constexpr std::uint32_t kFirstInt = 0x2d000000;

  constexpr RequestHandles(Bits first, Bits stride, Bits num)
      : first_(first), stride_(stride), bits_(num * stride) {}

  [[nodiscard]] bool contains(Handle handle) const { return bits_of(handle) - first_ < bits_; }
  /// For a handle that the range contains.
  [[nodiscard]] int index_of(Handle handle) const {
    return static_cast<int>((bits_of(handle) - first_) / stride_);
  }
  [[nodiscard]] Handle at(int index) const {
    const Bits bits = first_ + static_cast<Bits>(index) * stride_;
    Handle handle;
    std::memcpy(&handle, &bits, sizeof handle);
    return handle;
  }

 private:
  static Bits bits_of(Handle handle) {
    Bits bits;
    std::memcpy(&bits, &handle, sizeof bits);
    return bits;
  }

  Bits first_, stride_, bits_;
};

/// Our requests as an INTEGER of Fortran, where a handle of C does not fit into one: negative numbers, which
/// indices into native MPI's table of Fortran handles never are.
struct FortranHandles {
  static constexpr std::uint32_t kTag = 0x80000000;
  static constexpr bool contains(std::int32_t handle) { return handle < 0; }
  static constexpr int index_of(std::int32_t handle) {
    return static_cast<int>(static_cast<std::uint32_t>(handle) & ~kTag);
  }
  static constexpr std::int32_t at(int index) {
    return static_cast<std::int32_t>(kTag | static_cast<std::uint32_t>(index));
  }
};

}  // namespace hips::mpi
