#include "lib/mpi/native/element_layout.hpp"

#include <hips/types.hpp>

#include "lib/mpi/native/native_mpi.hpp"

namespace hips::mpi {

std::optional<ElementLayout> element_layout_of(MPI_Datatype type) {
  const NativeMpi& mpi = *native_mpi();
  if (type == MPI_Datatype{} || type == mpi.no_type) return std::nullopt;
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  MPI_Count size = 0;
  MPI_Aint lower = 0, extent = 0, begin = 0, length = 0;
  if (mpi.Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS ||
      mpi.Type_size_x(type, &size) != MPI_SUCCESS ||
      mpi.Type_get_extent(type, &lower, &extent) != MPI_SUCCESS ||
      mpi.Type_get_true_extent(type, &begin, &length) != MPI_SUCCESS)
    return std::nullopt;
  const auto most = static_cast<MPI_Aint>(kMaxElementBytes);
  if (size <= 0 || extent <= 0 || extent > most || begin < 0 || length > extent || begin > extent - length)
    return std::nullopt;
  const bool is_named = combiner == MPI_COMBINER_NAMED;
  return ElementLayout{.extent = static_cast<std::size_t>(extent),
                       .end = static_cast<std::size_t>(is_named ? extent : begin + length),
                       .is_named = is_named,
                       .has_gaps = !is_named && size != extent};
}

}  // namespace hips::mpi
