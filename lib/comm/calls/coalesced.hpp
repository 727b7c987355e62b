#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <hips/status.hpp>
#include <hips/types.hpp>

#include "lib/comm/calls/buckets.hpp"
#include "lib/comm/calls/request.hpp"
#include "lib/comm/communicator.hpp"

namespace hips::comm {

/// What is wrong with which vector of a list, or success.
Status check_coalesced(std::span<const CoalescedBuffer> list, ReduceOp op, Rank rank, Rank size);

/// Allreduces many vectors in one call. Small vectors are copied into buckets (tensor fusion); large ones are
/// reduced in place of their own. Several allreduces are outstanding at once, roughly in the order of priority
/// and then of the list, so that the first results are complete first. A small vector waits for others to fill
/// its bucket while at most kMostPassed large ones overtake it. In the NIC queues a bucket has the priority of
/// its first vector.
///
/// The buckets follow from the counts and types of the list, which are the same on all ranks. Their memory is
/// kept for the next call.
///
/// Owns     kNumBuckets times kBucketBytes, allocated with the first small vectors.
/// Threads  as the communicator's calls.
/// Source   gradient buckets of Horovod (tensor fusion) and PyTorch's DistributedDataParallel.
class Coalescer {
 public:
  explicit Coalescer(Communicator& communicator) : communicator_(communicator) {}

  /// Blocks until all results are complete.
  ///
  /// Errors   kInvalidArgument: what is wrong with which buffer; nothing took place. Otherwise as one call's;
  ///          the contents of all outputs are then undefined.
  Status allreduce(std::span<const CoalescedBuffer> list, ReduceOp op);

  static constexpr std::size_t kBucketBytes = buckets::kBytes;
  static constexpr std::size_t kSmallBytes = buckets::kSmallBytes;

 private:
  static constexpr std::size_t kNumBuckets = 4;

  /// One allreduce: of a large buffer, or of small ones of one type.
  struct Bucket {
    std::vector<CoalescedBuffer> buffers;
    std::unique_ptr<Request> request;
    std::vector<std::byte> memory;
    bool outstanding = false;
    [[nodiscard]] bool packed() const { return buffers.size() > 1; }
  };

  /// Starts a call of these in the next bucket, once that is free.
  Status launch(std::span<const CoalescedBuffer> buffers, ReduceOp op);
  /// The buffers in the order of their start.
  std::span<const CoalescedBuffer> by_priority(std::span<const CoalescedBuffer> buffers);
  Status start(Bucket& bucket, ReduceOp op);
  Status finish(Bucket& bucket);

  Communicator& communicator_;
  std::vector<CoalescedBuffer> sorted_;
  std::vector<CoalescedBuffer> small_;  ///< small buffers that wait for their bucket to fill
  std::size_t next_ = 0;                ///< the next bucket to use
  std::array<Bucket, kNumBuckets> buckets_;
};

}  // namespace hips::comm
