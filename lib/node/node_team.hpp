#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hips/plan.hpp>
#include <hips/status.hpp>
#include <hips/types.hpp>

#include "lib/base/result.hpp"
#include "lib/base/trace.hpp"
#include "lib/base/wait/clock.hpp"
#include "lib/base/wait/wait_options.hpp"
#include "lib/base/wait/wait_policy.hpp"
#include "lib/node/call.hpp"
#include "lib/node/node_layout.hpp"
#include "lib/node/node_segment.hpp"
#include "lib/node/shared_block.hpp"
#include "lib/node/shared_operands.hpp"

namespace hips::node {

/// The ranks of one node, which execute collectives through shared memory. Every rank reads all others
/// directly.
///
/// Small calls: every rank writes its operands where the others can read them, and reduces or copies what it
/// needs. Larger calls are processed in slices through staging that fits the caches, in two or three stages:
///
///   allreduce        copy the slice in; reduce a part of all ranks into staging; copy all parts out
///   reduce           the same, but only the root copies out
///   both, 2 ranks    copy the slice in; reduce the whole slice
///   reduce_scatter   copy a piece of each section in; reduce the own piece of all ranks
///   allgather        copy a piece of the own section in; copy the pieces of all ranks out
///   gather           the same, but only the root copies out
///   scatter          the root copies a piece of each section in; each rank copies its own out
///   alltoall         copy a piece of each section in; copy the own piece of all ranks out
///   bcast            the root copies the slice in; the others copy it out
///
/// A buffer in memory of hips_mem_alloc() is not copied in: the other ranks read it in place. In an allreduce
/// they also read parts of the result there. Each rank writes the locations of its buffers into its call
/// line, and stays in the call until no rank reads them any more. A rank never writes into memory of another
/// rank.
///
/// Every call waits for all ranks, also where MPI allows a rank to leave early. Therefore two call lines are
/// enough (shared_block.hpp).
///
/// Shapes   every rank calls with the same collective, count, type, op, root and sections; any number of elements.
///          StagingLayout::holds() must be true for the call.
/// Result   reduced in rank order, so the bits are equal on all ranks and for every size.
/// Cost     small: one cache line read from each other rank, plus the lines that the operands fill. Large: two reads
///          and two writes of each byte; one read and one write less if inputs are shared.
/// Owns     a block of this process's segment, which the others find by `id`, and pieces of the segment's pool for staging,
///          taken by the first call that needs them.
/// Threads  one call at a time; fail() from any thread. A call in which no rank sleeps makes no allocation, takes no
///          lock and makes no system call. The exception are buffers that other ranks read: a call by slices locks the
///          list of registered memory if there is any, and maps a peer's buffer at its first use.
/// Source   the n-way direct scheme of Open MPI's coll/xhc and MPICH's release-gather, without their trees.
class NodeTeam {
 public:
  struct Config {
    std::shared_ptr<NodeSegment> segment{};  ///< of this process
    std::uint64_t id = 0;  ///< of the communicator; equal on all ranks, and unique in the segment
    Rank rank = -1;
    Rank size = 0;
    std::size_t max_staging_bytes = 8U << 20U;
    std::uint32_t num_slices = StagingLayout::kFewSlices;  ///< staging slices, if they fit
    /// How its waits learn, shared with other waiters of the process. Null: every wait sleeps at once.
    std::shared_ptr<WaitPolicy> waits{};
    Clock* clock = nullptr;      ///< null: SystemClock
    TraceSink* trace = nullptr;  ///< null: no trace
    std::vector<Rank> names{};   ///< ranks of the communicator, for errors and answers; empty: as in the team
    /// The segment has a wake pipe (NodeSegment::make_wake_pipe()), and the ranks wait with arm() and poll(), together with other descriptors, and never with wait(). Equal on
    /// all ranks.
    bool uses_wake_pipes = false;
    bool oversubscribed = false;  ///< there are more ranks than cores. Equal on all ranks
    bool direct = true;           ///< other ranks read memory of hips_mem_alloc() in place
    /// Called when this rank finds an error, such as a mismatched signature. The call ends when fail()
    /// follows.
    std::function<void(const Status&)> on_error{};
  };

  /// Errors   kOutOfMemory, kSystem: no shared memory.
  static Result<std::unique_ptr<NodeTeam>> create(Config config);
  /// Local: waits for no rank.
  ~NodeTeam();
  NodeTeam(const NodeTeam&) = delete;
  NodeTeam& operator=(const NodeTeam&) = delete;

  /// Maps the segments of the other ranks, given by rank. Their blocks may be opened later.
  Status connect(std::span<const NodeName> names);
  /// The same for segments that are mapped already. Local.
  void connect(std::vector<std::shared_ptr<NodePeer>> processes);
  [[nodiscard]] const std::shared_ptr<NodeSegment>& segment() const { return config_.segment; }
  /// By rank.
  [[nodiscard]] const std::vector<std::shared_ptr<NodePeer>>& processes() const { return processes_; }

  /// Starts a call; no call may be outstanding.
  void start(const Call& call);
  /// Makes as much progress as is possible now; true if there was any.
  bool advance();
  [[nodiscard]] bool done() const { return stage_ == Stage::kIdle; }
  /// Makes progress without waiting. Returns the status of the call once it has ended.
  std::optional<Status> test();
  /// Polls for about the duration of a small call whose ranks arrive together. True: the call has ended
  /// successfully. False: the caller continues with wait(), also if the call has failed.
  bool poll_briefly();
  /// Waits for the end of the call and returns its status. kTimeout: the deadline passed, and the call
  /// remains outstanding.
  Status wait(const WaitOptions& options);

  /// Requests a wake-up before a sleep in poll(), for Config::uses_wake_pipes. Returns a descriptor that
  /// becomes readable when there is news. Call advance() once more before the sleep, and disarm() after it.
  [[nodiscard]] int arm();
  void disarm();

  /// Ends the outstanding call, and every later one immediately, with `status`. Any thread. It does not wake
  /// a rank that sleeps on its own wake pipe.
  void fail(const Status& status);
  /// The same on all ranks, where the configuration has a way to tell them.
  void report(const Status& status);
  /// Ends the outstanding call as failed, after an exception inside the call. A peer that is still reading
  /// its buffers does not end successfully. Every later call fails, too.
  void abandon() noexcept;
  /// The status of a call after abandon().
  static Status abandoned() noexcept;
  /// Ranks that the call is waiting for now, ascending.
  [[nodiscard]] std::vector<Rank> waiting_for() const;
  [[nodiscard]] std::string waiting_text() const;

  [[nodiscard]] const StagingLayout& layout() const { return layout_; }

 private:
  enum class Stage : std::uint8_t {
    kIdle,
    kExchange,  ///< all operands at once; each rank reduces all
    kSlices,    ///< slice by slice, through staging
    /// Cannot make progress; fail() ends it. A signature did not match, a peer's buffer cannot be mapped, or
    /// a peer withdrew its buffers while this rank read them.
    kStuck,
  };

  struct Peer {
    NodePeer* process = nullptr;
    SharedBlock* block = nullptr;  ///< null until this rank has found it
    // Its staging; null until the first call that uses it.
    std::byte* exchange = nullptr;
    std::byte* slices = nullptr;
    // The last values read of the peer's counters, so that they are read again only for news.
    std::uint64_t copied = 0, reduced = 0, taken = 0;
    PeerSegments segments;
    // Buffers of the outstanding call; null: in staging.
    const std::byte* in = nullptr;
    const std::byte* out = nullptr;
  };

  explicit NodeTeam(Config config) : config_(std::move(config)) {}

  void publish(std::span<const std::byte> operands);
  void wake_others();
  [[gnu::noinline]] void wake_sleepers(SharedBlock& first);
  /// Whether the peer has opened its block. Looks for it until then.
  [[gnu::noinline]] bool find_block(Rank rank);
  bool has_block(Rank rank) {
    return peers_[static_cast<std::size_t>(rank)].block != nullptr || find_block(rank);
  }
  /// Takes staging for this rank. False: there is none, and the call cannot go on.
  [[gnu::noinline]] bool take_staging(Piece SharedBlock::*piece, std::byte* Peer::*at, std::size_t bytes);
  /// Learns where the staging of the peers is. All have called.
  void find_staging(Piece SharedBlock::*piece, std::byte* Peer::*at);
  /// This rank cannot go on with the call.
  void stop(Status status, Rank rank);
  bool advance_exchange();
  /// Prefetches the lines that the next call will write, if it is like this one.
  void prefetch_next_line();
  void finish_exchange();
  void start_slices();
  bool advance_slices();
  /// All ranks share their inputs and outputs, so no rank uses staging.
  void use_long_runs();
  /// All slices are taken: ends the call once no rank needs this rank's buffers.
  bool finish_slices();
  bool all_called();
  /// Writes the locations of this rank's buffers into its call line, before the line is published.
  void publish_locations();
  /// Whether all ranks have called, and the locations of their operands are known.
  bool knows_operands();
  /// Whether a peer has withdrawn its buffers while this rank read them.
  [[nodiscard]] bool peer_has_left() const;
  /// Leaves a failed call and returns its status.
  Status leave();
  void withdraw_buffers() noexcept;
  /// Trace: records whether the call is waiting for `peer`.
  void note_missing(bool missing, Rank peer);
  [[nodiscard]] std::int64_t now_if_traced() const {
    return config_.trace == nullptr ? 0 : config_.clock->now_ns();
  }
  void trace(TraceEvent::Kind kind, std::int64_t begin_ns, std::int64_t segment, std::size_t bytes,
             Rank peer = -1) const {
    if (config_.trace != nullptr) [[unlikely]]
      record(kind, begin_ns, segment, bytes, peer);
  }
  void record(TraceEvent::Kind kind, std::int64_t begin_ns, std::int64_t segment, std::size_t bytes,
              Rank peer) const;
  bool all_at(std::uint64_t Peer::*seen, SliceCount SharedBlock::*count, std::uint64_t wanted);
  void copy_in(std::uint64_t slice);
  void fold_part(std::uint64_t slice);
  void take(std::uint64_t slice);
  void fold_whole(std::uint64_t slice);
  void fold_own_piece(std::uint64_t slice);
  void copy_parts(std::uint64_t slice);
  void copy_pieces(std::uint64_t slice);
  /// Copies this rank's piece of the vector of rank `from` to its place behind element `to` of the output.
  void copy_own_piece(std::uint64_t slice, std::size_t from, std::uint64_t to);
  void copy_root(std::uint64_t slice);
  void end();
  void mismatch(const Signature& theirs, Rank rank);
  [[nodiscard]] Rank name(Rank rank) const {
    return config_.names.empty() ? rank : config_.names[static_cast<std::size_t>(rank)];
  }
  void cannot_read(Status status, Rank rank);
  void sleep(std::int64_t timeout_ns);

  [[nodiscard]] std::size_t self() const { return static_cast<std::size_t>(config_.rank); }
  [[nodiscard]] bool is_root() const { return config_.rank == call_.root; }
  [[nodiscard]] std::size_t slice_elements() const { return layout_.slice_bytes / element_bytes_; }
  [[nodiscard]] std::size_t bytes() const { return call_.count * element_bytes_; }
  [[nodiscard]] std::size_t shown_bytes() const { return call_.shown() * element_bytes_; }
  /// The first slice after the run that begins with this slice.
  [[nodiscard]] std::uint64_t run_end(std::uint64_t slice) const {
    return std::min(slice + run_, num_slices_);
  }
  /// Number of elements of the run that begins with this slice.
  [[nodiscard]] std::size_t elements_of(std::uint64_t slice) const;
  /// The elements of a rank's section that belong to a slice, relative to the section's beginning.
  [[nodiscard]] Part piece_of(std::uint64_t slice, std::size_t rank) const;
  [[nodiscard]] std::byte* staging_of(const Peer& peer, std::uint64_t slice) const;
  /// A slice of a rank's operands, in its buffer or in staging.
  [[nodiscard]] const std::byte* operands_of(const Peer& peer, std::uint64_t slice) const;
  [[nodiscard]] std::uint64_t slice_begin(std::uint64_t slice) const {
    return slice * slice_elements() * element_bytes_;
  }
  [[nodiscard]] bool scatters_in_place() const { return call_.in == call_.out; }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) const;

  Config config_;
  StagingLayout layout_;
  SharedBlock* block_ = nullptr;
  std::vector<std::shared_ptr<NodePeer>> processes_;  ///< by rank
  std::vector<Peer> peers_;                           ///< by rank, including this rank
  std::vector<const std::byte*> sources_;
  bool is_armed_ = false;  ///< arm() has counted this rank as a sleeper

  // The outstanding call.
  Stage stage_ = Stage::kIdle;
  Call call_;
  std::size_t element_bytes_ = 1;
  Signature signature_;
  bool shown_inline_ = false;      ///< operands fit into the call lines; equal on all ranks
  std::uint64_t number_ = 0;       ///< number of calls so far
  std::size_t next_called_ = 0;    ///< all ranks before this one have called
  std::uint64_t first_slice_ = 0;  ///< number of slices of all earlier calls
  std::uint64_t num_slices_ = 0;
  std::uint64_t run_ = 1;  ///< number of slices that are reduced and taken together
  std::uint64_t copied_ = 0, reduced_ = 0, taken_ = 0;  ///< slices of this call
  bool two_stages_ = false;      ///< ranks take directly from the operands, without a reduction into staging
  bool operands_known_ = false;  ///< the locations of all operands are known
  bool reads_others_ = false;    ///< this rank reads buffers of peers, not only staging
  HeldOperands held_;            ///< buffers of this rank that other ranks read
  bool shows_in_ = false, shows_out_ = false;
  std::size_t piece_elements_ = 0;  ///< elements of a section in a slice
  bool stream_ = false;             ///< the output is too large to stay in a cache

  // Traced calls only.
  std::int64_t begin_ns_ = 0;
  std::int64_t missing_since_ns_ = 0;  ///< 0: no rank is missing
  Rank missing_rank_ = -1;

  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;  ///< guards failure_, and connected_ for fail()
  bool connected_ = false;
  Status failure_;
};

}  // namespace hips::node
