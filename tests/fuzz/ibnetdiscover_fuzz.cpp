// What ibnetdiscover writes, and net files of ibsim.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "topology/cabling/ibnetdiscover.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)hips::topology::is_ibnetdiscover(text);
  (void)hips::topology::read_ibnetdiscover("net.txt", text);
  return 0;
}
