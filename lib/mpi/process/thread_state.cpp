#include "lib/mpi/process/thread_state.hpp"

#include "lib/mpi/communicators/comm_record.hpp"
#include "lib/mpi/native/native_mpi.hpp"

namespace hips::mpi::detail {

CommRecord* resolve_record(MPI_Comm comm) {
  // Before the attribute is read: a record that ends meanwhile is then not found in the cache.
  const std::uint64_t num_removed = MpiProcess::num_removed();
  void* value = nullptr;
  int flag = 0;
  if (comm == MPI_Comm{} || comm == native_mpi()->no_comm ||
      native_mpi()->Comm_get_attr(comm, MpiProcess::instance().comm_keyval(), static_cast<void*>(&value),
                                  &flag) != MPI_SUCCESS ||
      !flag)
    return nullptr;
  auto* const record = static_cast<CommRecord*>(value);
  t_state.place_of(comm) = {comm, record, num_removed};
  return record;
}

const Reduction& resolve_reduction(MPI_Datatype type, MPI_Op op) {
  // Also of handles that are not predefined: they are not eligible, whichever object they stand for.
  const Reduction found = find_reduction(type, op);
  t_state.reduced_type = type;
  t_state.op = op;
  return t_state.reduction = found;
}

std::optional<BufferType> resolve_buffer_type(MPI_Datatype type) {
  bool is_named = false;
  const std::optional<BufferType> found = find_buffer_type(type, is_named);
  if (is_named && found) t_state.buffer_type = *found;
  return found;
}

}  // namespace hips::mpi::detail
