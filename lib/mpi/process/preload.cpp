#include "lib/mpi/process/preload.hpp"

#include <cstdlib>

#include "lib/mpi/native/abi.hpp"

namespace hips::mpi {
namespace {

/// Runs when the library is loaded. A program that is linked with MPI is the one that `hips run` was meant
/// for, so its children are not. A shell, numactl or Python only leads to one: they pass LD_PRELOAD on.
/// Python, which loads MPI later, leaves LD_PRELOAD at its first collective.
__attribute__((constructor)) void on_load() {
  if (native_is_loaded()) leave_preload();
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
