#include "transports/tcp/inbox.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace hips::tcp {

Inbox::ReceiveResult Inbox::receive(int fd, int& error) {
  if (dropped_ > 0) [[unlikely]]
    return drop(fd, error);
  // What is left is less than a header.
  std::memmove(staged_.data(), staged_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  ssize_t got = 0;
  do {
    if (payload_.empty()) {
      // Most calls find nothing: without a list of pieces the kernel says so a third sooner.
      got = recv(fd, staged_.data() + end_, staged_.size() - end_, MSG_DONTWAIT);
    } else {
      std::array<iovec, 2> pieces{
          {{payload_.data(), payload_.size()}, {staged_.data() + end_, staged_.size() - end_}}};
      msghdr message{};
      message.msg_iov = pieces.data();
      message.msg_iovlen = pieces.size();
      got = recvmsg(fd, &message, MSG_DONTWAIT);
    }
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return ReceiveResult::kNothing;
  if (got <= 0) {
    error = got == 0 ? 0 : errno;
    return ReceiveResult::kEnd;
  }
  const auto bytes = static_cast<std::size_t>(got);
  const std::size_t asked = payload_.size() + staged_.size() - end_;
  const std::size_t placed = std::min(bytes, payload_.size());
  payload_ = payload_.subspan(placed);
  end_ += bytes - placed;
  return bytes < asked ? ReceiveResult::kAll : ReceiveResult::kSome;
}

// The kernel takes it from the stream and copies it nowhere.
Inbox::ReceiveResult Inbox::drop(int fd, int& error) {
  const std::size_t asked = std::min<std::uint64_t>(dropped_, std::size_t{1} << 30U);
  ssize_t got = 0;
  do {
    got = recv(fd, nullptr, asked, MSG_DONTWAIT | MSG_TRUNC);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return ReceiveResult::kNothing;
  if (got <= 0) {
    error = got == 0 ? 0 : errno;
    return ReceiveResult::kEnd;
  }
  dropped_ -= static_cast<std::uint64_t>(got);
  return static_cast<std::size_t>(got) < asked ? ReceiveResult::kAll : ReceiveResult::kSome;
}

std::optional<FrameHeader> Inbox::next() {
  if (in_payload() || end_ - begin_ < sizeof(FrameHeader)) return std::nullopt;
  FrameHeader header;
  std::memcpy(&header, staged_.data() + begin_, sizeof header);
  begin_ += sizeof header;
  return header;
}

std::optional<TcpHello> Inbox::next_hello() {
  if (end_ - begin_ < sizeof(TcpHello)) return std::nullopt;
  TcpHello hello;
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

void Inbox::expect_dropped(std::uint64_t bytes) {
  const std::size_t here = std::min<std::uint64_t>(bytes, end_ - begin_);
  begin_ += here;
  dropped_ = bytes - here;
}

void Inbox::drop_payload() {
  dropped_ += payload_.size();
  payload_ = {};
}

}  // namespace hips::tcp
