#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include <hips/status.hpp>
#include <hips/types.hpp>

#include "lib/base/os/process_file.hpp"
#include "lib/base/os/shared_memory.hpp"
#include "lib/base/os/unique_fd.hpp"
#include "lib/base/os/wake_pipe.hpp"
#include "lib/base/result.hpp"
#include "lib/node/shared_block.hpp"

namespace hips::node {

/// What another process of the node needs to use a process's segment. Plain bytes, which may be sent.
struct NodeName {
  SharedMemoryName memory;
  ProcessFile wake_pipe;  ///< empty if the process has none
};

/// The beginning of a process's segment. The pool follows.
struct SegmentHeader {
  static constexpr std::uint64_t kMagic = 0x3665646f6e706968;  // "hipnode6"
  static constexpr std::size_t kChains = 1024;

  std::uint64_t magic = kMagic;
  /// Odd while the owner changes the directory.
  std::atomic<std::uint64_t> changes{0};
  alignas(kApart) std::atomic<std::uint32_t> asleep{0};  ///< 1: the owner sleeps on its wake pipe
  /// The directory: chains of blocks, by a hash of the communicator's id.
  std::array<std::atomic<PoolRef>, kChains> chains{};
};

/// The segment of another process of this node, or of this one, as this process has mapped it.
///
/// Threads  any.
class NodePeer {
 public:
  [[nodiscard]] SegmentHeader& header() const { return *header_; }
  /// The block of the communicator with this id; null if the process has not opened it.
  [[nodiscard]] SharedBlock* find(std::uint64_t id) const;
  [[nodiscard]] std::byte* at(PoolRef piece) const { return memory_.data() + piece; }
  /// Wakes the process if it sleeps on its wake pipe.
  void wake();

 private:
  friend class NodeSegment;

  SharedMemory memory_;
  SegmentHeader* header_ = nullptr;
  UniqueFd wake_pipe_;
  std::atomic<bool> has_pipe_{false};
};

/// The shared memory of one process, which all its communicators on a node use. Each process of the node maps it once.
///
/// It holds a block for each communicator, which the others find by the communicator's id, and a pool from which blocks
/// and staging are taken. A communicator needs no exchange, descriptor or mapping of its own. A block is used again when
/// every member has closed its own: closing is local, and nobody waits for it. Those of which a member has died stay, as do
/// those of set-ups that failed, and of communicators of more than RankBits::kMost ranks.
///
/// Owns     a memfd, and a pipe if a communicator waits with poll(). They end with their last user, even after a crash.
/// Cost     1 GiB of address space in each process of the node, less where that is limited (ulimit -v); pages on their first use, which
///          stay until the segment's last user has gone. A block takes 2 KiB.
/// Threads  any.
class NodeSegment {
 public:
  /// Errors   those of SharedMemory::create().
  static Result<std::shared_ptr<NodeSegment>> create();
  ~NodeSegment();
  NodeSegment(const NodeSegment&) = delete;
  NodeSegment& operator=(const NodeSegment&) = delete;

  [[nodiscard]] NodeName name() const;
  /// Makes the pipe with which other processes end this process's sleep in poll(), unless there is one.
  Status make_wake_pipe();
  [[nodiscard]] const WakePipe& wake_pipe() const { return wake_pipe_; }
  [[nodiscard]] NodePeer& self() const { return *self_; }

  /// The segment with this name. It stays mapped for as long as anybody holds it.
  ///
  /// Errors   those of SharedMemory::attach() and WakePipe::open_end(); kMismatch: another version of the library.
  Result<std::shared_ptr<NodePeer>> peer(const NodeName& name);

  /// Opens the block of a communicator of `size` ranks, whose layout of staging takes `layout_bytes`.
  Result<SharedBlock*> open(std::uint64_t id, Rank size, std::size_t layout_bytes);
  /// Closes it. `peers` are the members by rank; fewer if this rank never met them.
  void close(SharedBlock& block, Rank rank, std::span<const std::shared_ptr<NodePeer>> peers) noexcept;

  /// Takes a piece of the pool, aligned to pages. It goes back with the block that it is stored in.
  ///
  /// Errors   kOutOfMemory, kSystem: there is none.
  Result<Piece> take_staging(std::size_t bytes);

  /// Number of blocks that are open, or closed but still needed by other ranks.
  [[nodiscard]] std::size_t num_blocks() const;

 private:
  /// Pieces of one size that are free; each holds the reference of the next.
  struct FreeList {
    std::size_t bytes = 0;
    PoolRef first = 0;
  };

  NodeSegment() = default;
  Result<PoolRef> take(std::size_t bytes, std::size_t alignment);
  void give_back(const Piece& piece) noexcept;
  [[nodiscard]] SharedBlock& block(PoolRef ref) const;
  void append_closed(SharedBlock& block) noexcept;
  void reclaim() noexcept;
  void link(SharedBlock& block) noexcept;
  void unlink(SharedBlock& block) noexcept;

  std::shared_ptr<NodePeer> self_;
  WakePipe wake_pipe_;
  std::unordered_map<std::uint64_t, std::weak_ptr<NodePeer>> peers_;  ///< by token
  mutable std::mutex mutex_;                                          ///< guards these and what precedes
  std::size_t used_ = 0;                                              ///< of the segment
  std::vector<FreeList> free_;
  PoolRef first_closed_ = 0, last_closed_ = 0;  ///< blocks that this process has closed and others have not
  PoolRef first_free_ = 0;                      ///< blocks that are free
  std::size_t num_blocks_ = 0;
};

}  // namespace hips::node
