#include "lib/comm/calls/coalesced.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "lib/base/exception_status.hpp"
#include "lib/comm/calls/call_args.hpp"

namespace hips::comm {

Status check_coalesced(std::span<const CoalescedBuffer> list, ReduceOp op, Rank rank, Rank size) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const CoalescedBuffer& buffer = list[i];
    Status status = check_arguments(
        Communicator::allreduce_args(buffer.in, buffer.out, buffer.count, buffer.type, op), rank, size);
    if (status.ok()) continue;
    status.message = fmt::format("buffer {} of {}: {}", i, list.size(), status.message);
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
    args.count = buckets::pack(bucket.buffers, bucket.memory.data());
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
  if (status.ok() && bucket.packed()) buckets::unpack(bucket.buffers, bucket.memory.data());
  return status;
}

std::span<const CoalescedBuffer> Coalescer::by_priority(std::span<const CoalescedBuffer> buffers) {
  if (std::ranges::is_sorted(buffers, {}, &CoalescedBuffer::priority)) return buffers;
  sorted_.assign(buffers.begin(), buffers.end());
  std::ranges::stable_sort(sorted_, {}, &CoalescedBuffer::priority);
  return sorted_;
}

Status Coalescer::allreduce(std::span<const CoalescedBuffer> list, ReduceOp op) {
  if (Status status = check_coalesced(list, op, communicator_.rank(), communicator_.size()); !status.ok())
    return status;
  Status first;
  const auto keep = [&](Status status) {
    if (first.ok()) first = std::move(status);
  };
  try {
    buckets::for_each(by_priority(list), small_, [&](std::span<const CoalescedBuffer> bucket) {
      if (first.ok()) keep(launch(bucket, op));
    });
  } catch (const std::bad_alloc&) {
    // The others wait for buckets that this rank will not send.
    (void)communicator_.fail_all(status_of_exception());
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
