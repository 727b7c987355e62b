#include "lib/ps/model/part_sender.hpp"

#include <algorithm>
#include <utility>

namespace hips::ps {
namespace {

// Short parts pass a chain of nodes sooner; long ones cost less.
constexpr std::size_t kPartsOfVector = 64, kLeastPart = 4096, kPartGranularity = 64;

std::size_t part_of(std::size_t bytes, std::size_t most_bytes) {
  const std::size_t wanted = std::max(bytes / kPartsOfVector, kLeastPart) + sizeof(ModelHead);
  // A whole number of them fills a frame.
  const std::size_t num = std::max<std::size_t>(1, most_bytes / wanted);
  return (most_bytes / num - sizeof(ModelHead)) / kPartGranularity * kPartGranularity;
}

}  // namespace

void PartSender::send(Rank to, const ModelHead& head, std::shared_ptr<const PartialVector> vector,
                      Sent sent) {
  const std::size_t part_bytes = part_of(vector->bytes.size(), mail_.most_bytes());
  Sending& sending = vectors_.emplace_back();
  sending.to = to;
  sending.head = head;
  sending.vector = std::move(vector);
  sending.sent = std::move(sent);
  sending.part_bytes = part_bytes;
}

void PartSender::set_waits(Sending& sending, bool waits) {
  if (sending.waits == waits || sending.to == self_) return;
  sending.waits = waits;
  num_waiting_ = waits ? num_waiting_ + 1 : num_waiting_ - 1;
  if (waits && num_waiting_ == 1) since_ns_ = clock_.now_ns();
  if (!waits && num_waiting_ == 0) measured_.ns += clock_.now_ns() - since_ns_;
}

bool PartSender::advance(Sending& sending) {
  bool moved = false;
  const std::size_t size = sending.vector->bytes.size();
  while (sending.offset < size) {
    // A part that is not whole waits for the rest.
    const std::size_t bytes = std::min(sending.part_bytes, size - sending.offset);
    if (sending.vector->ready - sending.offset < bytes) break;
    if (!mail_.has_room(sending.to)) {
      set_waits(sending, true);
      return moved;
    }
    ModelHead head = sending.head;
    head.offset = sending.offset;
    head.bytes = static_cast<std::uint32_t>(bytes);
    write(mail_, sending.to, head, sending.vector->bytes.data() + sending.offset);
    sending.offset += bytes;
    if (num_waiting_ > 0 && sending.to != self_) measured_.bytes += bytes;
    moved = true;
  }
  set_waits(sending, false);
  return moved;
}

bool PartSender::advance() {
  bool moved = false;
  // Callbacks may add vectors.
  for (std::size_t i = 0; i < vectors_.size();) {
    moved |= advance(vectors_[i]);
    if (vectors_[i].offset < vectors_[i].vector->bytes.size()) {
      ++i;
      continue;
    }
    const Sent sent = std::move(vectors_[i].sent);
    vectors_.erase(vectors_.begin() + static_cast<std::ptrdiff_t>(i));
    if (sent) sent();
  }
  return moved;
}

std::optional<PartSender::Measured> PartSender::take_measured(std::size_t least_bytes) {
  if (measured_.bytes < least_bytes) return {};
  if (num_waiting_ > 0) {
    const std::int64_t now_ns = clock_.now_ns();
    measured_.ns += now_ns - std::exchange(since_ns_, now_ns);
  }
  return std::exchange(measured_, {});
}

}  // namespace hips::ps
