#include "lib/mpi/host.hpp"

namespace hips::mpi {
namespace {

template <typename T>
bool look_up(T& out, const char* name) {
  out = reinterpret_cast<T>(host_symbol(name));
  return out != nullptr;
}

bool look_up_all(Host& host) {
  bool complete = true;
#define HIPS_MPI_LOOK_UP(name) complete = look_up(host.name, "PMPI_" #name) && complete;
  HIPS_MPI_HOST_FUNCTIONS(HIPS_MPI_LOOK_UP)
  HIPS_MPI_HOST_FORTRAN_FUNCTIONS(HIPS_MPI_LOOK_UP)
#undef HIPS_MPI_LOOK_UP
  // An MPI of another ABI has other handles.
  return look_up_handles(host) && complete;
}

}  // namespace

const Host* host() {
  static const Host* const found = [] {
    static Host table;
    return look_up_all(table) ? &table : nullptr;
  }();
  return found;
}

}  // namespace hips::mpi
