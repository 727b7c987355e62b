#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/result.hpp"

namespace hips::lab {

/// What the lab and the agents of its guests tell one another, over a virtio port or a TCP connection.
enum class FrameKind : std::uint8_t {
  kHello = 1,  ///< agent: I am up
  kStart,      ///< to the agent: start this program; the payload is a StartRequest as JSON
  kOutput,     ///< agent: bytes of a program's standard output
  kError,      ///< agent: bytes of its standard error
  kExit,       ///< agent: the program has ended; the payload is the number that waitpid() gave
};

/// Wire form, little endian: kind (1 byte), process (4), size of the payload (4), payload.
struct AgentFrame {
  FrameKind kind = FrameKind::kHello;
  std::uint32_t process = 0;  ///< chosen by who starts it, unique in its connection
  std::string payload;
};

inline constexpr std::size_t kMaxPayload = std::size_t{1} << 24;

/// Appends the wire form of a frame.
void append_frame(std::string& wire, FrameKind kind, std::uint32_t process, std::string_view payload);

/// Cuts a stream of bytes into frames.
class AgentFrameReader {
 public:
  void add(std::string_view bytes) { bytes_ += bytes; }

  /// The next whole frame; none where bytes are missing.
  ///
  /// Errors   kInvalidArgument: these are no frames.
  Result<std::optional<AgentFrame>> next();

 private:
  std::string bytes_;
};

}  // namespace hips::lab
