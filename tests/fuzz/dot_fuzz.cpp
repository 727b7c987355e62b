// Graphs in the DOT language.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "topology/cabling/dot.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)hips::topology::is_dot(text);
  (void)hips::topology::read_dot("net.dot", text);
  return 0;
}
