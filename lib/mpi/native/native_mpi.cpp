#include "lib/mpi/native/native_mpi.hpp"

namespace hips::mpi {
namespace {

template <typename T>
bool look_up(T& out, const char* name) {
  out = reinterpret_cast<T>(native_symbol(name));
  return out != nullptr;
}

bool look_up_all(NativeMpi& native) {
  bool complete = true;
#define HIPS_MPI_LOOK_UP(name) complete = look_up(native.name, "PMPI_" #name) && complete;
  HIPS_MPI_NATIVE_FUNCTIONS(HIPS_MPI_LOOK_UP)
  HIPS_MPI_NATIVE_FORTRAN_FUNCTIONS(HIPS_MPI_LOOK_UP)
#undef HIPS_MPI_LOOK_UP
  // An MPI of another ABI has other handles.
  return look_up_handles(native) && complete;
}

}  // namespace

const NativeMpi* native_mpi() {
  static const NativeMpi* const found = [] {
    static NativeMpi table;
    return look_up_all(table) ? &table : nullptr;
  }();
  return found;
}

NativeRequests detail::look_up_native_requests() {
  NativeRequests functions;
#define HIPS_REQUEST_FUNCTION(Name, ...) \
  functions.Name = reinterpret_cast<decltype(functions.Name)>(native_address("PMPI_" #Name));
#ifdef HIPS_MPI_ABI_OPENMPI
#define HIPS_REQUEST_CONVERSION(Name) \
  functions.Name = reinterpret_cast<decltype(functions.Name)>(native_address("PMPI_" #Name));
#endif
#include "lib/mpi/signatures.def"
  return functions;
}

void* detail::look_up(std::atomic<void*>& address, void* (*find)(const char*), const char* name,
                      const char* other_name) {
  void* found = find(name);
  if (found == nullptr && other_name != nullptr) found = find(other_name);
  address.store(found, std::memory_order_relaxed);
  return found;
}

std::string native_version_of(std::string_view library_version) {
  constexpr std::string_view kGaps = " \t";
  std::string_view rest = library_version.substr(0, library_version.find_first_of(",\n"));
  std::string version;
  while (true) {
    const std::size_t begin = rest.find_first_not_of(kGaps);
    if (begin == rest.npos) return version;
    rest.remove_prefix(begin);
    const std::string_view word = rest.substr(0, rest.find_first_of(kGaps));
    rest.remove_prefix(word.size());
    if (word == "Version:") continue;
    if (!version.empty()) version += ' ';
    version += word;
  }
}

}  // namespace hips::mpi
