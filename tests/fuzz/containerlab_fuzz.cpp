// Topologies of containerlab.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "topology/cabling/containerlab.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)hips::topology::is_containerlab(text);
  (void)hips::topology::read_containerlab("a.clab.yml", text);
  return 0;
}
