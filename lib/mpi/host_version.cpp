#include "lib/mpi/host_version.hpp"

namespace hips::mpi {

std::string host_version_of(std::string_view library_version) {
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
