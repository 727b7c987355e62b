// What lldpctl writes, of two hosts.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "topology/cabling/lldp.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)hips::topology::is_lldp(text);
  const std::array<hips::topology::LldpText, 2> texts = {
      {{"n1.json", std::string(text)}, {"n2", std::string(text)}}};
  (void)hips::topology::read_lldp(texts);
  return 0;
}
