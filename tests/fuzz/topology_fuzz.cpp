// Topology files: read or refused; what is read goes through its own text and comes back.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "topology/formats/topology_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = hips::topology::parse_topology_file("fuzz.yaml", text);
  if (!file || file->topology.num_servers() > 4096 || file->topology.num_links > 65536) return 0;
  const auto written = hips::topology::topology_file_text(*file, false);
  if (!written) return 0;
  auto again = hips::topology::parse_topology_file("fuzz.yaml", *written);
  if (!again) std::abort();
  // The digest is that of the text, which is another one.
  again->topology.spec = file->topology.spec;
  if (*again != *file) std::abort();
  return 0;
}
