#include "lib/mpi/native/native_symbol.hpp"

#include <dlfcn.h>
#include <link.h>

#include <string_view>

namespace hips::mpi {
namespace {

/// "libmpi.so.40", "libmpich.so.12", "libmpi_mpifh.so.40", ..., and Open MPI's layer below
bool is_mpi_library(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  return name.starts_with("libmpi.so") || name.starts_with("libmpich") || name.starts_with("libmpi_") ||
         name.starts_with("libmpifort") || name.starts_with("libopen-pal");
}

}  // namespace

void* native_symbol(const char* name) {
  // Global scope first: a program that refers to MPI_COMM_WORLD's object may hold the one valid copy of it
  // (copy relocation), and then native MPI itself uses that one.
  if (void* address = dlsym(RTLD_DEFAULT, name)) return address;
  for (const std::string& path : loaded_objects()) {
    if (!is_mpi_library(path)) continue;
    // Stays open: MPI libraries are not unloaded.
    if (void* library = handle_of_loaded(path)) {
      if (void* address = dlsym(library, name)) return address;
    }
  }
  return nullptr;
}

bool native_is_loaded() {
  return native_symbol("PMPI_Init") != nullptr;
}

std::vector<std::string> loaded_objects() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        static_cast<std::vector<std::string>*>(out)->emplace_back(info->dlpi_name ? info->dlpi_name : "");
        return 0;
      },
      &paths);
  return paths;
}

void* handle_of_loaded(const std::string& path) {
  return dlopen(path.empty() ? nullptr : path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
}

}  // namespace hips::mpi
