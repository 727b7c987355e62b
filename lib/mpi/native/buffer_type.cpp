#include "lib/mpi/native/buffer_type.hpp"

#include <climits>

#include "lib/mpi/native/abi.hpp"
#include "lib/mpi/native/native_mpi.hpp"

namespace hips::mpi {
namespace {

/// Whether it consists of consecutive elements of one predefined type without gaps.
bool is_dense(MPI_Datatype type) {
  const NativeMpi& mpi = *native_mpi();
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  if (mpi.Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS) return false;
  if (combiner == MPI_COMBINER_NAMED) {
    MPI_Count size = 0;
    MPI_Aint lower = 0, extent = 0;
    return mpi.Type_size_x(type, &size) == MPI_SUCCESS &&
           mpi.Type_get_extent(type, &lower, &extent) == MPI_SUCCESS && lower == 0 && extent == size;
  }
  if (combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP) return false;
  int count = 0;
  MPI_Aint no_address = 0;
  MPI_Datatype of{};
  if (mpi.Type_get_contents(type, integers, addresses, types, &count, &no_address, &of) != MPI_SUCCESS)
    return false;
  const bool dense = is_dense(of);
  // For derived types, and only for those, native MPI returned a handle that we own.
  if (mpi.Type_get_envelope(of, &integers, &addresses, &types, &combiner) == MPI_SUCCESS &&
      combiner != MPI_COMBINER_NAMED)
    mpi.Type_free(&of);
  return dense;
}

}  // namespace

int check_packed_type(const BufferType& type, MPI_Comm comm) {
  if (type.plain) return MPI_SUCCESS;
  std::byte nothing{};
  int position = 0;
  return native_mpi()->Pack(&nothing, 0, type.type, &nothing, 1, &position, comm);
}

std::optional<BufferType> find_buffer_type(MPI_Datatype type, bool& is_named) {
  const NativeMpi& mpi = *native_mpi();
  if (type == MPI_Datatype{} || type == mpi.no_type) return std::nullopt;
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  MPI_Count size = 0;
  MPI_Aint lower = 0, extent = 0;
  if (mpi.Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS ||
      mpi.Type_size_x(type, &size) != MPI_SUCCESS ||
      mpi.Type_get_extent(type, &lower, &extent) != MPI_SUCCESS || size < 0)
    return std::nullopt;
  is_named = combiner == MPI_COMBINER_NAMED;
  // MPI_Pack packs at most INT_MAX bytes at once, but a peer may describe the same data by smaller types and
  // then waits for this rank in HiPS. Types of this size are usually contiguous, because counts are ints.
  if (size > INT_MAX) {
    if (!is_dense(type)) return std::nullopt;
    return BufferType{type, size, extent, true};
  }
  // A derived type without gaps may still have its elements in another order.
  return BufferType{type, size, extent, is_named && lower == 0 && extent == size};
}

namespace {

/// Elements as MPI_Pack accepts them. Elements at MPI_BOTTOM become one element of a type that has the same
/// addresses relative to an address that is not null.
class Elements {
 public:
  Elements(const void* at, int count, MPI_Datatype type) : at_(at), count_(count), type_(type) {}
  ~Elements() {
    if (is_made_) native_mpi()->Type_free(&type_);
  }
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;

  /// Called before the others; native MPI's error code.
  int prepare() {
    if (kPackTakesBottom || at_ != MPI_BOTTOM) return MPI_SUCCESS;
    static char origin;
    const MPI_Aint back = -reinterpret_cast<MPI_Aint>(&origin);
    MPI_Datatype made{};
    const int code = native_mpi()->Type_create_hindexed_block(1, count_, &back, type_, &made);
    if (code != MPI_SUCCESS) return code;
    at_ = &origin;
    count_ = 1;
    type_ = made;
    is_made_ = true;
    return native_mpi()->Type_commit(&type_);
  }
  [[nodiscard]] const void* at() const { return at_; }
  [[nodiscard]] void* to() const { return const_cast<void*>(at_); }
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] MPI_Datatype type() const { return type_; }

 private:
  const void* at_;
  int count_;
  MPI_Datatype type_;
  bool is_made_ = false;
};

}  // namespace

int KeptType::keep(BufferType& type) {
  MPI_Datatype made{};
  // Not MPI_Type_dup, which calls the program's functions that copy the type's attributes.
  if (const int code = native_mpi()->Type_contiguous(1, type.type, &made); code != MPI_SUCCESS) return code;
  release();
  kept_ = made;
  if (const int code = native_mpi()->Type_commit(&*kept_); code != MPI_SUCCESS) return code;
  made = *kept_;
  type.type = made;
  return MPI_SUCCESS;
}

void KeptType::release() {
  if (kept_) native_mpi()->Type_free(&*kept_);
  kept_.reset();
}

std::byte* PackedBuffer::make(std::size_t bytes) {
  if (bytes_ < bytes || !memory_) memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes + 1);
  bytes_ = bytes;
  return memory_.get();
}

int PackedBuffer::pack(const void* from, std::int64_t count, const BufferType& type, std::size_t offset,
                       MPI_Comm comm) {
  // MPI_Pack counts bytes in an int: elements are packed in groups that fit.
  const NativeMpi& mpi = *native_mpi();
  const std::int64_t most = type.size == 0 ? INT_MAX : INT_MAX / type.size;
  const auto* at = static_cast<const std::byte*>(from);
  std::byte* to = memory_.get() + offset;
  for (std::int64_t left = count; left > 0;) {
    const auto now = static_cast<int>(left < most ? left : most);
    int position = 0;
    Elements some(at, now, type.type);
    int code = some.prepare();
    if (code == MPI_SUCCESS)
      code = mpi.Pack(some.at(), some.count(), some.type(), to, static_cast<int>(now * type.size), &position,
                      comm);
    if (code != MPI_SUCCESS) return code;
    at += now * type.extent;
    to += now * type.size;
    left -= now;
  }
  return MPI_SUCCESS;
}

int PackedBuffer::unpack(void* to, std::int64_t count, const BufferType& type, std::size_t offset,
                         MPI_Comm comm) const {
  const NativeMpi& mpi = *native_mpi();
  const std::int64_t most = type.size == 0 ? INT_MAX : INT_MAX / type.size;
  auto* at = static_cast<std::byte*>(to);
  const std::byte* from = memory_.get() + offset;
  for (std::int64_t left = count; left > 0;) {
    const auto now = static_cast<int>(left < most ? left : most);
    int position = 0;
    Elements some(at, now, type.type);
    int code = some.prepare();
    if (code == MPI_SUCCESS)
      code = mpi.Unpack(from, static_cast<int>(now * type.size), &position, some.to(), some.count(),
                        some.type(), comm);
    if (code != MPI_SUCCESS) return code;
    at += now * type.extent;
    from += now * type.size;
    left -= now;
  }
  return MPI_SUCCESS;
}

}  // namespace hips::mpi
