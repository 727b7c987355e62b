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

/// Allreduces of many vectors as one call: small ones travel in buckets, large ones from where they are.
/// Several are under way at once, about in the order of priority and, where that is equal, of the list, so
/// that the first results are there first: a small one waits for others while at most kMostPassed large ones
/// pass. A bucket has the priority of its first vector in the NIC queues, too.
///
/// Buckets are those of the list's counts and types, alike on all ranks; their memory stays for the next
/// call.
///
/// Owns     kNumBuckets times kBucketBytes, from the first small vectors on.
/// Threads  as the communicator's calls.
/// Source   gradient buckets of Horovod (tensor fusion) and PyTorch's DistributedDataParallel.
class Coalescer {
 public:
  explicit Coalescer(Communicator& communicator) : communicator_(communicator) {}

  /// Blocks until all results are there.
  ///
  /// Errors   kInvalidArgument: what is wrong with which buffer; nothing took place. Otherwise as one call's;
  ///          the contents of all outputs are then undefined.
  Status allreduce(std::span<const CoalescedBuffer> list, ReduceOp op);

  static constexpr std::size_t kBucketBytes = buckets::kBytes;
  static constexpr std::size_t kSmallBytes = buckets::kSmallBytes;

 private:
  static constexpr std::size_t kNumBuckets = 4;

  /// What is one call: a large buffer, or small ones of one type.
  struct Bucket {
    std::vector<CoalescedBuffer> buffers;
    std::unique_ptr<Request> request;
    std::vector<std::byte> memory;
    bool under_way = false;
    [[nodiscard]] bool packed() const { return buffers.size() > 1; }
  };

  /// Starts a call of these in the next bucket, once that is free.
  Status launch(std::span<const CoalescedBuffer> buffers, ReduceOp op);
  /// The list in the order in which it goes.
  std::span<const CoalescedBuffer> by_priority(std::span<const CoalescedBuffer> buffers);
  Status start(Bucket& bucket, ReduceOp op);
  Status finish(Bucket& bucket);

  Communicator& communicator_;
  std::vector<CoalescedBuffer> sorted_;
  std::vector<CoalescedBuffer> small_;  ///< those that wait for a bucket
  std::size_t next_ = 0;                ///< bucket to use
  std::array<Bucket, kNumBuckets> buckets_;
};

}  // namespace hips::comm
