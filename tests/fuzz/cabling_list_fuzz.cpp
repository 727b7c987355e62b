// Cabling lists of known headers and of others.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "topology/cabling/cabling_list.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)hips::topology::is_cabling_list(text);
  (void)hips::topology::read_cabling_list("cables.csv", text);
  (void)hips::topology::read_cabling_list(
      "cables.csv", text,
      hips::topology::ListColumns{.a_node = "a", .a_port = "p", .b_node = "b", .b_port = "q", .rate = "r"});
  return 0;
}
