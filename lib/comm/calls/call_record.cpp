#include "lib/comm/calls/call_record.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lib/base/type_text.hpp"

namespace hips::comm {
namespace {

/// " (4 x float64, sum)"
std::string shape_text(const CallEntry& entry) {
  if (entry.collective == Collective::kBarrier) return {};
  std::string text = fmt::format("{} x {}", entry.count, type_text(entry.type));
  if (reduces(entry.collective)) text += fmt::format(", {}", hips::to_string(entry.op));
  text += detail_text(entry.collective, entry.detail);
  return fmt::format(" ({})", text);
}

}  // namespace

std::string to_string(const CallEntry& entry) {
  switch (entry.kind) {
    case CallEntry::Kind::kNone:
      return "no call yet";
    case CallEntry::Kind::kHips:
      return fmt::format("{} #{}{}", hips::to_string(entry.collective), entry.index, shape_text(entry));
    case CallEntry::Kind::kDelegated:
      return fmt::format("call #{} ({}, delegated to native MPI)", entry.index, entry.what);
    case CallEntry::Kind::kDestroyed:
      return fmt::format("destroyed after call #{}", entry.index);
  }
  return "no call yet";
}

bool same_call(const CallEntry& a, const CallEntry& b) {
  return a.kind == b.kind && a.index == b.index && a.count == b.count && a.type == b.type && a.op == b.op &&
         a.collective == b.collective && a.detail == b.detail;
}

void put_call(ByteWriter& writer, const CallEntry& entry) {
  writer.put(entry.index);
  writer.put(entry.kind);
  writer.put(static_cast<std::uint8_t>(entry.finished));
  writer.put(entry.collective);
  writer.put(entry.detail);
  writer.put(entry.count);
  writer.put(entry.type);
  writer.put(entry.op);
  writer.put_text(entry.what);
}

CallEntry get_call(ByteReader& reader) {
  CallEntry entry;
  entry.index = reader.get<std::uint64_t>();
  entry.kind = reader.get_up_to(CallEntry::Kind::kDestroyed);
  entry.finished = reader.get<std::uint8_t>() != 0;
  entry.collective = reader.get_up_to(Collective::kAlltoall);
  entry.detail = reader.get<std::uint32_t>();
  entry.count = reader.get<std::uint64_t>();
  entry.type = reader.get<DataType>();
  entry.op = reader.get<ReduceOp>();
  entry.what = reader.get_text();
  return entry;
}

void CallRecord::write(CallEntry::Kind kind, const CallArgs& args, const char* what) {
  const std::uint64_t index = last_index_.load(std::memory_order_relaxed) + 1;
  Slot& slot = slots_[index % kHistory];
  const std::uint64_t version = slot.version.load(std::memory_order_relaxed);
  slot.version.store(version + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot.index.store(index, std::memory_order_relaxed);
  slot.count.store(args.count, std::memory_order_relaxed);
  // Of a user function only the low byte is the same on all ranks.
  slot.meta.store(static_cast<std::uint32_t>(kind) | static_cast<std::uint32_t>(args.collective) << 8 |
                      std::uint32_t{static_cast<std::uint8_t>(args.op)} << 16 |
                      static_cast<std::uint64_t>(args.type) << 32,
                  std::memory_order_relaxed);
  slot.detail.store(args.detail(), std::memory_order_relaxed);
  slot.what.store(what, std::memory_order_relaxed);
  slot.version.store(version + 2, std::memory_order_release);
  last_index_.store(index, std::memory_order_release);
}

std::uint64_t CallRecord::begin(const CallArgs& args) {
  write(CallEntry::Kind::kHips, args, nullptr);
  return last_index_.load(std::memory_order_relaxed);
}

void CallRecord::end(std::uint64_t index) {
  std::uint64_t finished = finished_index_.load(std::memory_order_relaxed);
  if (index != finished + 1) {
    add_ended_early(index);
    return;
  }
  ++finished;
  if (!ended_early_.empty() && ended_early_.front().first == finished + 1) {
    finished = ended_early_.front().last;
    ended_early_.erase(ended_early_.begin());
  }
  finished_index_.store(finished, std::memory_order_release);
}

void CallRecord::add_ended_early(std::uint64_t index) {
  const auto after = std::ranges::upper_bound(ended_early_, index, {}, &Run::first);
  const bool joins_next = after != ended_early_.end() && after->first == index + 1;
  const auto before = after != ended_early_.begin() ? after - 1 : ended_early_.end();
  if (before == ended_early_.end() || before->last + 1 != index) {
    if (joins_next)
      after->first = index;
    else
      ended_early_.insert(after, {index, index});
    return;
  }
  before->last = joins_next ? after->last : index;
  if (joins_next) ended_early_.erase(after);
}

void CallRecord::add_delegated(const char* what) {
  write(CallEntry::Kind::kDelegated, {}, what);
  end(last_index_.load(std::memory_order_relaxed));
}

void CallRecord::take_back_delegated() {
  const std::uint64_t index = last_index_.load(std::memory_order_relaxed);
  Slot& slot = slots_[index % kHistory];
  const std::uint64_t version = slot.version.load(std::memory_order_relaxed);
  slot.version.store(version + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot.index.store(0, std::memory_order_relaxed);
  slot.version.store(version + 2, std::memory_order_release);
  last_index_.store(index - 1, std::memory_order_release);
  if (ended_early_.empty() || ended_early_.back().last != index)
    finished_index_.store(index - 1, std::memory_order_release);
  else if (--ended_early_.back().last < ended_early_.back().first)
    ended_early_.pop_back();
}

CallEntry CallRecord::last() const {
  return at(last_index_.load(std::memory_order_acquire));
}

CallEntry CallRecord::current() const {
  const std::uint64_t finished = finished_index_.load(std::memory_order_acquire);
  if (finished < last_index_.load(std::memory_order_acquire)) {
    // kNone: later calls have overwritten it.
    if (const CallEntry first = at(finished + 1); first.kind != CallEntry::Kind::kNone) return first;
  }
  return last();
}

CallEntry CallRecord::at(std::uint64_t index) const {
  if (index == 0) return {};
  const Slot& slot = slots_[index % kHistory];
  while (true) {
    const std::uint64_t before = slot.version.load(std::memory_order_acquire);
    CallEntry entry;
    entry.index = slot.index.load(std::memory_order_relaxed);
    entry.count = slot.count.load(std::memory_order_relaxed);
    const std::uint64_t meta = slot.meta.load(std::memory_order_relaxed);
    entry.detail = slot.detail.load(std::memory_order_relaxed);
    const char* const what = slot.what.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 == 1 || slot.version.load(std::memory_order_relaxed) != before) continue;
    if (entry.index != index) return {};
    entry.kind = static_cast<CallEntry::Kind>(meta & 0xff);
    entry.collective = static_cast<Collective>(meta >> 8 & 0xff);
    entry.op = static_cast<ReduceOp>(meta >> 16 & 0xff);
    entry.type = static_cast<DataType>(meta >> 32);
    entry.finished = finished_index_.load(std::memory_order_acquire) >= index;
    if (what != nullptr) entry.what = what;
    return entry;
  }
}

}  // namespace hips::comm
