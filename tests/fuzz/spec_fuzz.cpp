// Specs of topologies, and hostlists: whatever text they are, they are read or refused, and what is read back
// is equal.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "topology/clusters/hostlist.hpp"
#include "topology/formats/parse.hpp"
#include "topology/formats/topology_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // A spec may name a file, and which one is not for a fuzzer to say.
  if (!hips::topology::file_spec(text)) {
    const auto topology = hips::topology::parse(text);
    if (topology) {
      const auto again = hips::topology::parse(topology->spec);
      if (!again || *again != *topology) std::abort();
    }
  }
  if (const auto list = hips::topology::Hostlist::parse(text)) {
    constexpr std::uint64_t kMost = 4096;
    const auto names = list->expand(kMost);
    if (names && names->size() != list->size()) std::abort();
  }
  return 0;
}
