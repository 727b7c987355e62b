#pragma once

#include <cstdint>
#include <vector>

#include <hips/status.hpp>
#include <hips/types.hpp>

#include "lib/comm/control/control_impl.hpp"
#include "lib/comm/control/wire.hpp"

/// The frames that several parts of the protocol send (ControlFrame).
namespace hips::comm {

inline ByteWriter frame(ControlFrame type, std::uint64_t group) {
  ByteWriter writer;
  writer.put(type);
  writer.put(group);
  return writer;
}

inline ByteWriter rank_frame(ControlFrame type, std::uint64_t group, Rank rank) {
  ByteWriter writer = frame(type, group);
  writer.put(rank);
  return writer;
}

inline ByteWriter ranks_frame(ControlFrame type, std::uint64_t group, Rank rank,
                              const std::vector<Rank>& left) {
  ByteWriter writer = rank_frame(type, group, rank);
  writer.put(static_cast<std::uint32_t>(left.size()));
  for (const Rank r : left) writer.put(r);
  return writer;
}

inline ByteWriter status_frame(ControlFrame type, std::uint64_t group, std::uint64_t communicator,
                               const Status& status) {
  ByteWriter writer = frame(type, group);
  writer.put(communicator);
  writer.put_status(status);
  return writer;
}

}  // namespace hips::comm
