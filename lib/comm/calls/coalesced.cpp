#include "lib/comm/calls/coalesced.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "lib/comm/calls/call_args.hpp"

namespace hips::comm {
namespace {

std::size_t bytes_of(const CoalescedBuffer& buffer) {
  return static_cast<std::size_t>(buffer.count) * size_of(buffer.type);
}

}  // namespace

Status Coalescer::check(std::span<const CoalescedBuffer> buffers, ReduceOp op) const {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const CoalescedBuffer& buffer = buffers[i];
    Status status =
        check_arguments(Communicator::allreduce_args(buffer.in, buffer.out, buffer.count, buffer.type, op),
                        communicator_.rank(), communicator_.size());
    if (status.ok()) continue;
    status.message = fmt::format("buffer {} of {}: {}", i, buffers.size(), status.message);
    return status;
  }
  return Status::success();
}

Status Coalescer::launch(std::span<const CoalescedBuffer> buffers, ReduceOp op) {
  Bucket& bucket = buckets_[next_];
  next_ = (next_ + 1) % kNumBuckets;
  if (Status status = finish(bucket); !status.ok()) return status;
  bucket.buffers.assign(buffers.begin(), buffers.end());
  return start(bucket, op);
}

Status Coalescer::start(Bucket& bucket, ReduceOp op) {
  const CoalescedBuffer& front = bucket.buffers.front();
  CallArgs args = Communicator::allreduce_args(front.in, front.out, front.count, front.type, op);
  args.priority = front.priority;
  if (bucket.packed()) {
    bucket.memory.resize(kBucketBytes);
    std::byte* to = bucket.memory.data();
    args.count = 0;
    for (const CoalescedBuffer& buffer : bucket.buffers) {
      if (buffer.count == 0) continue;
      std::memcpy(to, buffer.in, bytes_of(buffer));
      to += bytes_of(buffer);
      args.count += buffer.count;
    }
    args.in = args.out = bucket.memory.data();
  }
  if (bucket.request == nullptr) {
    auto made = communicator_.prepare_request(args);
    if (!made) return made.error();
    bucket.request = std::move(*made);
  } else if (Status status = bucket.request->renew(args); !status.ok()) {
    return status;
  }
  Status status = bucket.request->start();
  bucket.outstanding = status.ok();
  return status;
}

Status Coalescer::finish(Bucket& bucket) {
  if (!std::exchange(bucket.outstanding, false)) return Status::success();
  Status status = bucket.request->wait();
  if (!status.ok() || !bucket.packed()) return status;
  const std::byte* from = bucket.memory.data();
  for (const CoalescedBuffer& buffer : bucket.buffers) {
    if (buffer.count == 0) continue;
    std::memcpy(buffer.out, from, bytes_of(buffer));
    from += bytes_of(buffer);
  }
  return status;
}

std::span<const CoalescedBuffer> Coalescer::by_priority(std::span<const CoalescedBuffer> buffers) {
  if (std::ranges::is_sorted(buffers, {}, &CoalescedBuffer::priority)) return buffers;
  sorted_.assign(buffers.begin(), buffers.end());
  std::ranges::stable_sort(sorted_, {}, &CoalescedBuffer::priority);
  return sorted_;
}

Status Coalescer::allreduce(std::span<const CoalescedBuffer> list, ReduceOp op) {
  if (Status status = check(list, op); !status.ok()) return status;
  const std::span<const CoalescedBuffer> buffers = by_priority(list);
  Status first;
  const auto keep = [&](Status status) {
    if (first.ok()) first = std::move(status);
  };
  std::size_t small_bytes = 0;
  int passed = 0;
  const auto launch_small = [&] {
    if (!small_.empty() && first.ok()) keep(launch(small_, op));
    small_.clear();
    small_bytes = 0;
    passed = 0;
  };
  try {
    for (const CoalescedBuffer& buffer : buffers) {
      const std::size_t bytes = bytes_of(buffer);
      if (bytes > kSmallBytes) {
        if (first.ok()) keep(launch(std::span(&buffer, 1), op));
        if (!small_.empty() && ++passed == kMostPassed) launch_small();
        continue;
      }
      if (!small_.empty() && (buffer.type != small_[0].type || small_bytes + bytes > kBucketBytes))
        launch_small();
      small_.push_back(buffer);
      small_bytes += bytes;
    }
    launch_small();
  } catch (const std::bad_alloc&) {
    // The caller owns the vectors again: no outstanding call may use them.
    small_.clear();
    for (Bucket& bucket : buckets_) (void)finish(bucket);
    throw;
  }
  // Oldest first. After an error too: a call owns its buffers until it is complete.
  for (std::size_t i = 0; i < kNumBuckets; ++i) keep(finish(buckets_[(next_ + i) % kNumBuckets]));
  // Requests are kept for the next call, but they must not hold a user op until then.
  if (is_user(op)) std::ranges::for_each(buckets_, [](Bucket& bucket) { bucket.request.reset(); });
  return first;
}

}  // namespace hips::comm
