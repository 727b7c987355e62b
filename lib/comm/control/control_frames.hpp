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

inline void put_ranks(ByteWriter& writer, const std::vector<Rank>& ranks) {
  writer.put(static_cast<std::uint32_t>(ranks.size()));
  for (const Rank rank : ranks) writer.put(rank);
}

inline std::vector<Rank> get_ranks(ByteReader& reader) {
  const auto count = reader.get<std::uint32_t>();
  std::vector<Rank> ranks;
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) ranks.push_back(reader.get<Rank>());
  return ranks;
}

inline ByteWriter ranks_frame(ControlFrame type, std::uint64_t group, Rank rank,
                              const std::vector<Rank>& left) {
  ByteWriter writer = rank_frame(type, group, rank);
  put_ranks(writer, left);
  return writer;
}

inline ByteWriter query_frame(std::uint64_t group, std::uint64_t id, std::uint64_t from, Rank asker,
                              Rank target, std::uint64_t call_index) {
  ByteWriter writer = frame(ControlFrame::kQuery, group);
  writer.put(id);
  writer.put(from);
  writer.put(asker);
  writer.put(target);
  writer.put(call_index);
  return writer;
}

inline ByteWriter reply_frame(std::uint64_t group, std::uint64_t id, Rank asker, Rank target,
                              const CallAnswer& answer) {
  ByteWriter writer = frame(ControlFrame::kReply, group);
  writer.put(id);
  writer.put(asker);
  writer.put(target);
  put_call(writer, answer.asked);
  put_call(writer, answer.last);
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
