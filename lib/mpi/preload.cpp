#include "lib/mpi/preload.hpp"

#include <cstdlib>

#include "lib/mpi/abi.hpp"

namespace hips::mpi {
namespace {

/// Runs as the library is loaded. A program that is linked against MPI is the one that `hips run` meant, so
/// its children are none of our business. A shell, numactl or Python is on the way to one: they hand
/// LD_PRELOAD on, and Python, which loads MPI later, takes us out at its first MPI_Allreduce.
__attribute__((constructor)) void on_load() {
  if (host_is_loaded()) leave_preload();
}

}  // namespace

std::string without_interposer(std::string_view preload) {
  std::string rest;
  while (!preload.empty()) {
    const std::size_t end = preload.find_first_of(": ");
    const std::string_view entry = preload.substr(0, end);
    preload.remove_prefix(end == std::string_view::npos ? preload.size() : end + 1);
    const std::size_t slash = entry.rfind('/');
    if (entry.empty() || entry.substr(slash == std::string_view::npos ? 0 : slash + 1) == kInterposerName)
      continue;
    if (!rest.empty()) rest += ':';
    rest += entry;
  }
  return rest;
}

void leave_preload() {
  const char* preload = std::getenv("LD_PRELOAD");
  if (!preload) return;
  const std::string rest = without_interposer(preload);
  if (rest.empty())
    unsetenv("LD_PRELOAD");
  else
    setenv("LD_PRELOAD", rest.c_str(), 1);
}

}  // namespace hips::mpi
