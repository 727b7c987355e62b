#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace hips::mpi {

/// How elements of a type lie in memory, for calls that move data without reducing it.
struct BufferType {
  MPI_Datatype type{};
  std::int64_t size = 0;    ///< bytes of data in one element
  std::int64_t extent = 0;  ///< bytes from one element to the next
  bool plain = false;       ///< need not be packed: a predefined type without gaps, or a huge type of such
};

/// Asks native MPI. `is_named`: the type is predefined. Empty: native MPI does not know the type, or the type
/// is neither plain nor small enough for MPI_Pack. See buffer_type_of().
std::optional<BufferType> find_buffer_type(MPI_Datatype type, bool& is_named);

/// The error code of native MPI where it refuses a type that has to be packed, as one that was not committed; its error handler
/// on `comm` has seen it.
int check_packed_type(const BufferType& type, MPI_Comm comm);

/// Keeps a type of the program for a call that outlives the function which started it: MPI lets the program
/// free the type before the call has ended.
///
/// Owns     a type of the same data.
/// Threads  as a value.
class KeptType {
 public:
  KeptType() = default;
  KeptType(KeptType&& other) noexcept : kept_(std::exchange(other.kept_, std::nullopt)) {}
  KeptType& operator=(KeptType&&) = delete;
  ~KeptType() { release(); }
  /// Makes `type` name the kept type; native MPI's error code.
  int keep(BufferType& type);

 private:
  void release();

  std::optional<MPI_Datatype> kept_;
};

/// Data of types with gaps, packed into consecutive bytes.
///
/// Threads  as a value.
class PackedBuffer {
 public:
  /// Room for that many bytes. May throw std::bad_alloc.
  std::byte* make(std::size_t bytes);

  /// Packs `count` elements from `from` into the room at `offset`; native MPI's error code.
  int pack(const void* from, std::int64_t count, const BufferType& type, std::size_t offset, MPI_Comm comm);
  int unpack(void* to, std::int64_t count, const BufferType& type, std::size_t offset, MPI_Comm comm) const;

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace hips::mpi
