#include "transports/tcp/inbox.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace hips::tcp {

Inbox::Got Inbox::receive(int fd, int& error) {
  // What is left is less than a header.
  std::memmove(staged_.data(), staged_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  std::array<iovec, 2> pieces;
  std::size_t count = 0;
  if (!payload_.empty()) pieces[count++] = {payload_.data(), payload_.size()};
  pieces[count++] = {staged_.data() + end_, staged_.size() - end_};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  ssize_t got = 0;
  do {
    got = recvmsg(fd, &message, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Got::kNothing;
  if (got <= 0) {
    error = got == 0 ? 0 : errno;
    return Got::kEnd;
  }
  const auto bytes = static_cast<std::size_t>(got);
  const std::size_t asked = payload_.size() + staged_.size() - end_;
  const std::size_t placed = std::min(bytes, payload_.size());
  payload_ = payload_.subspan(placed);
  end_ += bytes - placed;
  return bytes < asked ? Got::kAll : Got::kSome;
}

std::optional<FrameHeader> Inbox::next() {
  if (!payload_.empty() || end_ - begin_ < sizeof(FrameHeader)) return std::nullopt;
  FrameHeader header;
  std::memcpy(&header, staged_.data() + begin_, sizeof header);
  begin_ += sizeof header;
  return header;
}

std::optional<Hello> Inbox::next_hello() {
  if (end_ - begin_ < sizeof(Hello)) return std::nullopt;
  Hello hello;
  std::memcpy(&hello, staged_.data() + begin_, sizeof hello);
  begin_ += sizeof hello;
  return hello;
}

void Inbox::expect(std::span<std::byte> payload) {
  const std::size_t here = std::min(payload.size(), end_ - begin_);
  if (here > 0) std::memcpy(payload.data(), staged_.data() + begin_, here);
  begin_ += here;
  payload_ = payload.subspan(here);
}

}  // namespace hips::tcp
