#pragma once

#include <mpi.h>

#include <cstdint>

namespace hips::mpi {

/// A number of elements, as the program said it: an int, or what a function of MPI 4 for large counts takes
/// (MPI_Bcast_c). Where the host carries the call, it gets the same form.
///
/// Threads  a value.
class Count {
 public:
  Count(int count) : value_(count) {}  // NOLINT: is one
  static Count large(MPI_Count count) {
    Count one(0);
    one.value_ = count;
    one.is_large_ = true;
    return one;
  }

  [[nodiscard]] std::int64_t value() const { return value_; }
  [[nodiscard]] bool is_large() const { return is_large_; }
  /// Of one that is not large.
  [[nodiscard]] int small() const { return static_cast<int>(value_); }

 private:
  std::int64_t value_;
  bool is_large_ = false;
};

/// An array of numbers in either form, one for each rank: counts, or displacements.
///
/// Owns     nothing.
/// Threads  a value.
template <typename Large>
class Numbers {
 public:
  Numbers(const int* numbers) : small_(numbers) {}  // NOLINT: are some
  static Numbers large(const Large* numbers) {
    Numbers some(nullptr);
    some.large_ = numbers;
    some.is_large_ = true;
    return some;
  }

  [[nodiscard]] std::int64_t operator[](int rank) const { return is_large_ ? large_[rank] : small_[rank]; }
  /// Did the program pass any?
  [[nodiscard]] bool exist() const { return small_ != nullptr || large_ != nullptr; }
  [[nodiscard]] bool is_large() const { return is_large_; }
  [[nodiscard]] const int* small() const { return small_; }
  [[nodiscard]] const Large* large() const { return large_; }

 private:
  const int* small_ = nullptr;
  const Large* large_ = nullptr;
  bool is_large_ = false;
};

using Counts = Numbers<MPI_Count>;
using Places = Numbers<MPI_Aint>;

/// May there be so many elements of `size` bytes? More than 2^47 bytes no memory has, and sums and products
/// of what is below are far from what 64 bits hold.
inline bool may_be(std::int64_t count, std::int64_t size) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 47;
  std::int64_t bytes = 0;  // every call comes by, and a division takes as long as all else here
  return count >= 0 && !__builtin_mul_overflow(count, size <= 1 ? 1 : size, &bytes) && bytes <= kMostBytes;
}

}  // namespace hips::mpi
