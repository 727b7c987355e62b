#include "transports/tcp/outbox.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <new>

namespace hips::tcp {

using Kind = FrameHeader::Kind;

namespace {

/// About twenty small requests of a header and two pieces each; far below the kernel's IOV_MAX.
constexpr std::size_t kPiecesPerCall = 64;
/// Up to this size, copying into one piece is faster than handing the kernel a list of pieces.
constexpr std::size_t kCopiedBytes = 1024;

constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;

ssize_t send_message(int fd, std::span<iovec> pieces, int flags) {
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  return sendmsg(fd, &message, flags);
}

ssize_t send_pieces(int fd, std::span<iovec> pieces, std::size_t bytes) {
  if (bytes <= kCopiedBytes) {
    std::array<std::byte, kCopiedBytes> whole;
    std::size_t end = 0;
    for (const iovec& piece : pieces) {
      std::memcpy(whole.data() + end, piece.iov_base, piece.iov_len);
      end += piece.iov_len;
    }
    return send(fd, whole.data(), end, kFlags);
  }
  return send_message(fd, pieces, kFlags);
}

}  // namespace

void Outbox::push(const Outgoing& outgoing) {
  if (outgoing.header.kind == Kind::kGet) ++gets_posted_;
  request(tail_++) = outgoing;
}

const Outgoing* Outbox::done() {
  for (; head_ < sent_; pop()) {
    const Outgoing& oldest = request(head_);
    if (oldest.header.kind == Kind::kGet && gets_reported_ == gets_answered_) return nullptr;
    if (!zero_copy_.released(oldest.ticket)) return nullptr;
    if (oldest.signalled) return &oldest;
  }
  return nullptr;
}

void Outbox::pop() {
  if (request(head_).header.kind == Kind::kGet) ++gets_reported_;
  ++head_;
}

const Outgoing* Outbox::oldest_get() const {
  std::uint64_t skip = gets_answered_ - gets_reported_;
  for (std::uint64_t number = head_; number < sent_; ++number) {
    const Outgoing& one = requests_[number % requests_.size()];
    if (one.header.kind == Kind::kGet && skip-- == 0) return &one;
  }
  return nullptr;
}

bool Outbox::push_answer(const Outgoing& answer) {
  if (answers_tail_ - answers_sent_ == answers_.size()) return false;
  answers_[answers_tail_++ % answers_.size()] = answer;
  return true;
}

bool Outbox::answers_from(transport::MemoryId memory) const {
  for (std::uint64_t number = answers_sent_; number < answers_tail_; ++number)
    if (answers_[number % answers_.size()].header.memory == memory) return true;
  return false;
}

bool Outbox::take_back(std::span<const std::byte> memory) noexcept {
  const std::less<> before;
  for (std::uint64_t number = head_; number < tail_; ++number) {
    Outgoing& one = request(number);
    for (iovec& piece : std::span(one.pieces).first(one.num_pieces)) {
      const auto* const begin = static_cast<const std::byte*>(piece.iov_base);
      if (!before(begin, memory.data() + memory.size()) || !before(memory.data(), begin + piece.iov_len))
        continue;
      if (number < sent_ || one.ticket != 0) {
        if (!zero_copy_.released(one.ticket)) return false;
        if (number < sent_) continue;
      }
      try {
        copies_.push_back(std::make_unique_for_overwrite<std::byte[]>(piece.iov_len));
      } catch (const std::bad_alloc&) {
        return false;
      }
      std::memcpy(copies_.back().get(), begin, piece.iov_len);
      piece.iov_base = copies_.back().get();
    }
  }
  return true;
}

Outgoing* Outbox::frame(std::size_t k) {
  // A frame that is partly sent comes first.
  if (partial_ > 0 && partial_is_request_) {
    if (k == 0) return &request(sent_);
    --k;
  }
  const std::uint64_t answers = answers_tail_ - answers_sent_;
  if (k < answers) return &answers_[(answers_sent_ + k) % answers_.size()];
  const std::uint64_t first = sent_ + (partial_ > 0 && partial_is_request_ ? 1 : 0);
  const std::uint64_t number = first + (k - answers);
  return number < tail_ ? &request(number) : nullptr;
}

std::size_t Outbox::gather(std::span<iovec> pieces, std::size_t& bytes) {
  std::size_t count = 0;
  std::size_t skip = partial_;
  bytes = 0;
  const auto add = [&](void* address, std::size_t size) {
    const std::size_t skipped = std::min(skip, size);
    skip -= skipped;
    if (size == skipped) return;
    pieces[count++] = {static_cast<std::byte*>(address) + skipped, size - skipped};
    bytes += size - skipped;
  };
  for (std::size_t k = 0; count + 3 <= pieces.size(); ++k) {
    Outgoing* one = frame(k);
    if (one == nullptr) break;
    add(&one->header, sizeof one->header);
    for (std::size_t i = 0; i < one->num_pieces; ++i) add(one->pieces[i].iov_base, one->pieces[i].iov_len);
  }
  return count;
}

void Outbox::advance(std::size_t bytes, std::uint64_t ticket) {
  while (bytes > 0) {
    Outgoing* first = frame(0);
    if (ticket != 0) first->ticket = ticket;
    const bool is_request = partial_ > 0 ? partial_is_request_ : answers_sent_ == answers_tail_;
    const std::size_t left = first->bytes - partial_;
    if (bytes < left) {
      partial_ += bytes;
      partial_is_request_ = is_request;
      return;
    }
    bytes -= left;
    partial_ = 0;
    ++(is_request ? sent_ : answers_sent_);
  }
}

Outbox::SendResult Outbox::flush(int fd, int& error) {
  while (!all_sent()) {
    std::array<iovec, kPiecesPerCall> pieces;
    std::size_t bytes = 0;
    const std::size_t count = gather(pieces, bytes);
    const bool zero_copy = zero_copy_.wants(bytes) && only_requests();
    std::uint64_t ticket = 0;
    ssize_t sent = zero_copy ? send_message(fd, {pieces.data(), count}, kFlags | MSG_ZEROCOPY) : -1;
    if (zero_copy && sent > 0) ticket = zero_copy_.sent();
    // ENOBUFS: the kernel cannot pin more memory for this process, so the bytes are copied.
    if (!zero_copy || (sent < 0 && errno == ENOBUFS)) sent = send_pieces(fd, {pieces.data(), count}, bytes);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return SendResult::kFull;
      error = errno;
      return SendResult::kBroken;
    }
    advance(static_cast<std::size_t>(sent), ticket);
    // A short send means a full socket; another attempt would only return EAGAIN.
    if (static_cast<std::size_t>(sent) < bytes) return SendResult::kFull;
  }
  if (!copies_.empty() && !awaits_release()) copies_.clear();
  return SendResult::kAll;
}

}  // namespace hips::tcp
