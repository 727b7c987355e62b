// Platforms of SimGrid.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "topology/cabling/simgrid/simgrid.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)hips::topology::is_simgrid(text);
  (void)hips::topology::read_simgrid("platform.xml", text);
  return 0;
}
