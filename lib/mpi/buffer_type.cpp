#include "lib/mpi/buffer_type.hpp"

#include <climits>

#include "lib/mpi/host.hpp"
#include "lib/mpi/preload_tls.hpp"

namespace hips::mpi {
namespace {

std::optional<BufferType> look_up(MPI_Datatype type, bool& is_named) {
  const Host& mpi = *host();
  int integers = 0, addresses = 0, types = 0, combiner = 0, size = 0;
  MPI_Aint lower = 0, extent = 0;
  if (mpi.Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS ||
      mpi.Type_size(type, &size) != MPI_SUCCESS ||
      mpi.Type_get_extent(type, &lower, &extent) != MPI_SUCCESS || size < 0)
    return std::nullopt;
  is_named = combiner == MPI_COMBINER_NAMED;
  // A derived type without gaps may still have its elements in another order.
  return BufferType{type, size, extent, is_named && lower == 0 && extent == size};
}

}  // namespace

std::optional<BufferType> BufferType::of(MPI_Datatype type) {
  if (type == nullptr || type == host()->no_type) return std::nullopt;
  // Handles of predefined types are never reused; of others the answer may change with the handle's owner.
  static thread_local std::optional<BufferType> t_last HIPS_TLS_OF_PRELOADED;
  if (t_last && t_last->type == type) return t_last;
  bool is_named = false;
  const auto found = look_up(type, is_named);
  if (is_named) t_last = found;
  return found;
}

int KeptType::keep(BufferType& type) {
  MPI_Datatype made = nullptr;
  if (const int code = host()->Type_dup(type.type, &made); code != MPI_SUCCESS) return code;
  duplicate_.reset(made);
  type.type = made;
  return MPI_SUCCESS;
}

void KeptType::Free::operator()(MPI_Datatype type) const {
  host()->Type_free(&type);
}

std::byte* Packed::make(std::size_t bytes) {
  if (bytes_ < bytes || !memory_) memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes + 1);
  bytes_ = bytes;
  return memory_.get();
}

int Packed::pack(const void* from, int count, const BufferType& type, std::size_t offset, MPI_Comm comm) {
  // Positions of the host are ints: one element at a time where all of them do not fit.
  const Host& mpi = *host();
  const std::int64_t most = type.size == 0 ? count : INT_MAX / type.size;
  const auto* at = static_cast<const std::byte*>(from);
  std::byte* to = memory_.get() + offset;
  for (std::int64_t left = count; left > 0;) {
    const auto now = static_cast<int>(left < most ? left : most);
    int position = 0;
    const int code = mpi.Pack(at, now, type.type, to, static_cast<int>(now * type.size), &position, comm);
    if (code != MPI_SUCCESS) return code;
    at += now * type.extent;
    to += now * type.size;
    left -= now;
  }
  return MPI_SUCCESS;
}

int Packed::unpack(void* to, int count, const BufferType& type, std::size_t offset, MPI_Comm comm) const {
  const Host& mpi = *host();
  const std::int64_t most = type.size == 0 ? count : INT_MAX / type.size;
  auto* at = static_cast<std::byte*>(to);
  const std::byte* from = memory_.get() + offset;
  for (std::int64_t left = count; left > 0;) {
    const auto now = static_cast<int>(left < most ? left : most);
    int position = 0;
    const int code = mpi.Unpack(from, static_cast<int>(now * type.size), &position, at, now, type.type, comm);
    if (code != MPI_SUCCESS) return code;
    at += now * type.extent;
    from += now * type.size;
    left -= now;
  }
  return MPI_SUCCESS;
}

}  // namespace hips::mpi
