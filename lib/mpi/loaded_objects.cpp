#include "lib/mpi/loaded_objects.hpp"

#include <dlfcn.h>
#include <link.h>

namespace hips::mpi {

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
