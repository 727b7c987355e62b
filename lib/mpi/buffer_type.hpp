#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace hips::mpi {

/// What moving data of a type takes, where nothing is folded.
struct BufferType {
  MPI_Datatype type{};
  std::int64_t size = 0;    ///< bytes of data in one
  std::int64_t extent = 0;  ///< bytes from one to the next
  bool plain = false;       ///< its bytes are its data: a predefined type without gaps, or a huge one of such

  /// None: no type that the host knows, or one that is neither plain nor small enough for it to pack.
  static std::optional<BufferType> of(MPI_Datatype type);
};

/// A type of the program's that a call needs after the function which started it: MPI lets the program free
/// the type before the call has ended.
///
/// Owns     a type of the same data, until it goes.
/// Threads  as a value.
class KeptType {
 public:
  KeptType() = default;
  KeptType(KeptType&& other) noexcept : kept_(std::exchange(other.kept_, std::nullopt)) {}
  KeptType& operator=(KeptType&&) = delete;
  ~KeptType() { release(); }
  /// Has `type` name what is kept; the host's error code.
  int keep(BufferType& type);

 private:
  void release();

  std::optional<MPI_Datatype> kept_;
};

/// Data of types with gaps, as bytes one behind the other.
///
/// Threads  as a value.
class Packed {
 public:
  /// Room for that many bytes. May throw std::bad_alloc.
  std::byte* make(std::size_t bytes);

  /// `count` elements from `from` into the room at `offset`; the host's error code.
  int pack(const void* from, std::int64_t count, const BufferType& type, std::size_t offset, MPI_Comm comm);
  int unpack(void* to, std::int64_t count, const BufferType& type, std::size_t offset, MPI_Comm comm) const;

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace hips::mpi
