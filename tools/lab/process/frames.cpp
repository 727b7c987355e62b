#include "tools/lab/process/frames.hpp"

#include <fmt/format.h>

namespace hips::lab {
namespace {

constexpr std::size_t kHeader = 9;

void append_number(std::string& wire, std::size_t value) {
  for (int shift = 0; shift < 32; shift += 8) wire += static_cast<char>(value >> shift & 0xff);
}

std::uint32_t number_at(std::string_view wire, std::size_t offset) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value |= std::uint32_t{static_cast<unsigned char>(wire[offset + i])} << (8 * i);
  }
  return value;
}

}  // namespace

void append_frame(std::string& wire, FrameKind kind, std::uint32_t process, std::string_view payload) {
  wire += static_cast<char>(kind);
  append_number(wire, process);
  append_number(wire, payload.size());
  wire += payload;
}

Result<std::optional<AgentFrame>> AgentFrameReader::next() {
  if (bytes_.size() < kHeader) return std::nullopt;
  const auto kind = static_cast<unsigned char>(bytes_[0]);
  const std::size_t size = number_at(bytes_, 5);
  if (kind < static_cast<unsigned char>(FrameKind::kHello) ||
      kind > static_cast<unsigned char>(FrameKind::kExit) || size > kMaxPayload) {
    return fail(Code::kInvalidArgument,
                fmt::format("lab: no frame begins with kind {} and size {}", kind, size));
  }
  if (bytes_.size() < kHeader + size) return std::nullopt;
  AgentFrame frame{static_cast<FrameKind>(kind), number_at(bytes_, 1), bytes_.substr(kHeader, size)};
  bytes_.erase(0, kHeader + size);
  return frame;
}

}  // namespace hips::lab
