// Edge lists of RDMA simulations with ns-3.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "topology/cabling/ns3_edges.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)hips::topology::is_ns3_edges(text);
  (void)hips::topology::read_ns3_edges("topology.txt", text);
  return 0;
}
