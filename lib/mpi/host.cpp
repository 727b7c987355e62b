#include "lib/mpi/host.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace hips::mpi {
namespace {

/// "libmpi.so.40", "libmpich.so.12", "libmpi_mpifh.so.40", ..., and Open MPI's layer below
bool is_mpi_library(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  return name.starts_with("libmpi.so") || name.starts_with("libmpich") || name.starts_with("libmpi_") ||
         name.starts_with("libmpifort") || name.starts_with("libopen-pal");
}

/// Paths of all loaded objects; "" is the program.
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

/// A handle of an object that is there already. It stays open: MPI libraries are not unloaded.
void* handle_of(const std::string& path) {
  return dlopen(path.empty() ? nullptr : path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
}

template <typename T>
bool look_up(T& out, const char* name) {
  out = reinterpret_cast<T>(host_symbol(name));
  return out != nullptr;
}

bool look_up_all(Host& host) {
  bool complete = true;
#define HIPS_MPI_LOOK_UP(name) complete = look_up(host.name, "PMPI_" #name) && complete;
  HIPS_MPI_HOST_FUNCTIONS(HIPS_MPI_LOOK_UP)
#undef HIPS_MPI_LOOK_UP
  // Open MPI's handles are addresses of these objects; an MPI of another ABI does not have them.
  complete = look_up(host.world, "ompi_mpi_comm_world") && complete;
  complete = look_up(host.self, "ompi_mpi_comm_self") && complete;
  complete = look_up(host.no_comm, "ompi_mpi_comm_null") && complete;
  complete = look_up(host.no_type, "ompi_mpi_datatype_null") && complete;
  complete = look_up(host.no_request, "ompi_request_null") && complete;
  complete = look_up(host.byte_type, "ompi_mpi_byte") && complete;
  complete = look_up(host.errors_are_fatal, "ompi_mpi_errors_are_fatal") && complete;
  return complete;
}

/// How often objects were loaded in this process: says whether a list of addresses is still complete.
unsigned long long num_loads() {
  unsigned long long adds = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<unsigned long long*>(out) = info->dlpi_adds;
        return 1;  // the first object tells
      },
      &adds);
  return adds;
}

/// All copies of Fortran's special common blocks in this process.
class Sentinels {
 public:
  Sentinel find(const void* buffer) {
    const unsigned long long loads = num_loads();
    const std::lock_guard lock(mutex_);
    if (loads != loads_) {
      for (Block& block : blocks_) collect(block);
      loads_ = loads;
    }
    for (const Block& block : blocks_)
      if (std::find(block.addresses.begin(), block.addresses.end(), buffer) != block.addresses.end())
        return block.meaning;
    return Sentinel::kNone;
  }

 private:
  struct Block {
    const char* name;
    Sentinel meaning;
    std::vector<const void*> addresses;
  };

  static void collect(Block& block) {
    block.addresses.clear();
    const auto add = [&](const void* address) {
      auto& known = block.addresses;
      if (address && std::find(known.begin(), known.end(), address) == known.end()) known.push_back(address);
    };
    add(dlsym(RTLD_DEFAULT, block.name));
    for (const std::string& path : loaded_objects()) {
      void* object = handle_of(path);
      if (!object) continue;
      add(dlsym(object, block.name));
      dlclose(object);
    }
  }

  std::mutex mutex_;
  std::array<Block, 4> blocks_{{{"mpi_fortran_in_place_", Sentinel::kInPlace, {}},
                                {"mpi_fortran_bottom_", Sentinel::kBottom, {}},
                                {"mpi_fortran_status_ignore_", Sentinel::kStatusIgnore, {}},
                                {"mpi_fortran_statuses_ignore_", Sentinel::kStatusIgnore, {}}}};
  unsigned long long loads_ = 0;
};

}  // namespace

const Host* host() {
  static const Host* const found = [] {
    static Host table;
    return look_up_all(table) ? &table : nullptr;
  }();
  return found;
}

void* host_symbol(const char* name) {
  // Global scope first: a program that refers to MPI_COMM_WORLD's object may hold the one valid copy of it
  // (copy relocation), and then the host itself uses that one.
  if (void* address = dlsym(RTLD_DEFAULT, name)) return address;
  for (const std::string& path : loaded_objects()) {
    if (!is_mpi_library(path)) continue;
    if (void* library = handle_of(path)) {
      if (void* address = dlsym(library, name)) return address;
    }
  }
  return nullptr;
}

bool host_is_loaded() {
  return host_symbol("PMPI_Init") != nullptr;
}

Sentinel fortran_sentinel(const void* buffer) {
  static Sentinels sentinels;
  return sentinels.find(buffer);
}

}  // namespace hips::mpi
