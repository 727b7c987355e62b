#include "lib/mpi/fortran/sentinel.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string>
#include <vector>

#include "lib/mpi/native/abi.hpp"

namespace hips::mpi {
namespace {

/// False where it is certain: common blocks are parts of the program or of a library, as the heap and stacks are not. Takes no
/// lock, unlike dl_iterate_phdr().
bool may_be_common([[maybe_unused]] const void* buffer) {
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 35)
  dl_find_object found{};
  return _dl_find_object(const_cast<void*>(buffer), &found) == 0;
#endif
#endif
  return true;
}

/// How often objects were loaded in this process: a list of addresses is complete while it has not changed.
unsigned long long num_loads() {
  unsigned long long adds = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<unsigned long long*>(out) = info->dlpi_adds;
        return 1;  // the first object suffices
      },
      &adds);
  return adds;
}

/// All copies of Fortran's special common blocks in this process.
class Sentinels {
 public:
  Sentinel find(const void* buffer) {
    if (!may_be_common(buffer)) return Sentinel::kNone;
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
      void* object = handle_of_loaded(path);
      if (!object) continue;
      add(dlsym(object, block.name));
      dlclose(object);
    }
  }

  std::mutex mutex_;
#ifdef HIPS_MPI_ABI_OPENMPI
  std::array<Block, 4> blocks_{{{"mpi_fortran_in_place_", Sentinel::kInPlace, {}},
                                {"mpi_fortran_bottom_", Sentinel::kBottom, {}},
                                {"mpi_fortran_status_ignore_", Sentinel::kStatusIgnore, {}},
                                {"mpi_fortran_statuses_ignore_", Sentinel::kStatusIgnore, {}}}};
#else
  // Those of mpi_f08, where our wrappers need no others.
  std::array<Block, 2> blocks_{{{"MPIR_F08_MPI_STATUS_IGNORE_OBJ", Sentinel::kStatusIgnore, {}},
                                {"MPIR_F08_MPI_STATUSES_IGNORE_OBJ", Sentinel::kStatusIgnore, {}}}};
#endif
  unsigned long long loads_ = 0;
};

}  // namespace

Sentinel fortran_sentinel(const void* buffer) {
  static Sentinels sentinels;
  return sentinels.find(buffer);
}

}  // namespace hips::mpi
