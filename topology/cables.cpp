#include "topology/cables.hpp"

#include "topology/levels.hpp"

namespace hips::topology {

std::optional<NicEnd> other_end(const Topology& topology, std::int64_t server, Rail rail) {
  std::int64_t stride = 1;
  const std::int64_t whole = topology.whole_server(server);
  for (const Level& level : network_levels(topology)) {
    if (is_of_cables(level) && (level.rails[0] == rail || level.rails[1] == rail)) {
      const bool plus = level.rails[0] == rail;
      const std::int64_t digit = whole / stride % level.radix;
      if (level.kind == LevelKind::kLine && digit == (plus ? level.radix - 1 : 0)) return std::nullopt;
      const std::int64_t next = (digit + (plus ? 1 : level.radix - 1)) % level.radix;
      return NicEnd{topology.server_in_use(whole + (next - digit) * stride), level.rails[plus ? 1 : 0]};
    }
    stride *= level.radix;
  }
  return std::nullopt;
}

}  // namespace hips::topology
