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

#include "lib/base/os/shared_memory.hpp"
#include "lib/base/os/unique_fd.hpp"
#include "lib/base/os/wake_pipe.hpp"
#include "lib/base/result.hpp"
#include "lib/base/trace.hpp"
#include "lib/base/wait/clock.hpp"
#include "lib/base/wait/idle.hpp"
#include "lib/base/wait/wait_options.hpp"
#include "lib/node/call.hpp"
#include "lib/node/node_layout.hpp"
#include "lib/node/shared_block.hpp"
#include "lib/node/shared_operands.hpp"

namespace hips::node {

/// The ranks of one host that reduce through memory they share, every rank reading all others directly.
///
/// Small calls: every rank writes its operands where the others see them, and folds or copies those it wants.
/// Larger ones go slice by slice through staging that stays in the caches, in two stages or in three:
///
///   allreduce        copy the slice in; fold a part from all ranks into staging; copy all parts out
///   reduce           the same, but only the root copies out
///   both, 2 ranks    copy the slice in; fold the whole slice
///   reduce_scatter   copy a piece of each section in; fold the own piece of all ranks
///   allgather        copy a piece of the own section in; copy the pieces of all ranks out
///   bcast            the root copies the slice in; the others copy it out
///
/// A buffer in memory of hips_mem_alloc() is not copied in: the others read it where it lies, and of an
/// allreduce take parts of the result from there, too. Each rank says in its call line where its buffers lie,
/// and for that it stays in the call until nobody reads them any more. Ranks only ever read what is
/// another's.
///
/// Every call waits for all ranks to come, also those that MPI lets leave early: two lines for calls are
/// enough then (shared_block.hpp).
///
/// Shapes   every rank calls with the same collective, count, type, op, root and sections, any number of
///          elements; StagingLayout::holds() the call.
/// Result   folded in rank order, so the bits are equal on all ranks and in every size.
/// Cost     small: a line read from each other rank, and as many more as the operands fill. Large: two reads
///          and two writes of each byte; a read and a write less where inputs are shared.
/// Owns     one shared segment of `segment_bytes()`; it ends with its last user, crash or not.
/// Threads  one call at a time; fail() from any thread. No allocation, lock or system call in a call that
///          nobody sleeps in, but for buffers that others read: a call by slices locks the process' list of
///          registered memory, where there is any, and maps a buffer of a peer at its first use.
/// Source   the n-way direct scheme of Open MPI's coll/xhc and MPICH's release-gather, without their trees.
class NodeTeam {
 public:
  struct Config {
    Rank rank = -1;
    Rank size = 0;
    std::size_t max_staging_bytes = 8U << 20U;
    std::uint32_t num_slices = StagingLayout::kFewSlices;  ///< of staging, if they fit
    IdleLimits idle{};
    Clock* clock = nullptr;      ///< null: SystemClock
    TraceSink* trace = nullptr;  ///< null: no trace
    std::uint64_t id = 0;        ///< of the communicator, in traces
    std::vector<Rank> names{};   ///< what others call the ranks, in errors and answers; empty: as here
    /// The ranks wait for other things, too: by arm(), and never by wait(). The same on all.
    bool has_doors = false;
    bool crowded = false;  ///< ranks outnumber the host's cores. The same on all
    bool direct = true;    ///< let the others read memory of hips_mem_alloc() where it lies
    /// Called on a finding of this rank, a mismatched signature; the call ends when fail() follows.
    std::function<void(const Status&)> on_error{};
  };

  /// Errors   kOutOfMemory, kSystem: no shared memory.
  static Result<std::unique_ptr<NodeTeam>> create(Config config);
  ~NodeTeam();
  NodeTeam(const NodeTeam&) = delete;
  NodeTeam& operator=(const NodeTeam&) = delete;

  /// For the others' connect(), by rank.
  [[nodiscard]] const SharedMemoryName& name() const { return own_.name(); }
  Status connect(std::span<const SharedMemoryName> names);

  /// Starts a call; none may be under way.
  void start(const Call& call);
  /// Moves the call as far as it gets; true when anything moved.
  bool advance();
  [[nodiscard]] bool done() const { return stage_ == Stage::kIdle; }
  /// Moves the call on without waiting; how it ended, once it has.
  std::optional<Status> test();
  /// Polls for about as long as a small call takes whose ranks come together, and says whether it has ended:
  /// then well. Otherwise, also where it has failed, wait() does the rest.
  bool ends_soon();
  /// Moves the call to its end. kTimeout: the deadline passed, and the call goes on; else how it ended.
  Status wait(const WaitOptions& options);

  /// Before a sleep on other things as well, where the team has doors: asks the others to ring. Gives what
  /// becomes readable then. advance() once more before the sleep, and disarm() after it.
  [[nodiscard]] int arm();
  void disarm();

  /// Ends the call under way, and every later one at once, with `status`. Any thread; whoever sleeps at its
  /// own door has to be woken besides.
  void fail(const Status& status);
  /// Ends the call under way as one that failed, wherever it was: something was thrown in it. Nobody reads
  /// its buffers any more and ends well. Every later call fails, too.
  void abandon() noexcept;
  /// What such a call ends with.
  static Status abandoned() noexcept;
  /// Ranks that the call lacks right now, ascending.
  [[nodiscard]] std::vector<Rank> waiting_for() const;
  [[nodiscard]] std::string waiting_text() const;

  [[nodiscard]] const StagingLayout& layout() const { return layout_; }

 private:
  enum class Stage : std::uint8_t {
    kIdle,
    kExchange,  ///< all operands at once, each rank folds all
    kSlices,    ///< staging, slice by slice
    /// Cannot go on until fail() ends it: a signature did not match, a buffer of a peer cannot be mapped, or
    /// a peer has left its buffers while this rank read them.
    kStuck,
  };

  struct Peer {
    SharedMemory memory;
    SharedBlock* block = nullptr;
    UniqueFd door;  ///< to be rung; none of this rank's own
    // What has been seen of its counters, so that they are read only for news.
    std::uint64_t copied = 0, reduced = 0, taken = 0;
    PeerSegments segments;
    // Of the call under way; null: in staging.
    const std::byte* in = nullptr;
    const std::byte* out = nullptr;
  };

  explicit NodeTeam(Config config) : config_(std::move(config)) {}

  void publish(std::span<const std::byte> operands);
  void ring();
  [[gnu::noinline]] void wake_sleepers();
  bool advance_exchange();
  /// Has the lines of a next call like this one ready to be written.
  void expect_another();
  void finish_exchange();
  void start_slices();
  bool advance_slices();
  /// All ranks show where they lie what they bring and what they fold.
  void nobody_stages();
  /// All is taken: the end, once nobody needs this rank's buffers.
  bool finish_slices();
  bool all_called();
  /// Says where this rank's buffers lie, in the line of a call that is not yet published.
  void show_places();
  /// Have all called, and is known where their operands lie?
  bool knows_operands();
  /// Whether a peer has left its buffers while this rank read them.
  [[nodiscard]] bool was_left() const;
  /// The call has failed.
  Status leave();
  void let_buffers_go() noexcept;
  /// Whether the call lacks `peer` right now.
  void lacks(bool lacking, Rank peer);
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
  /// The first slice behind the run that begins with this one.
  [[nodiscard]] std::uint64_t run_end(std::uint64_t slice) const {
    return std::min(slice + run_, num_slices_);
  }
  /// Of the run that begins with this slice.
  [[nodiscard]] std::size_t elements_of(std::uint64_t slice) const;
  /// Of a section, the run that belongs to a slice; counted from the section's beginning.
  [[nodiscard]] Part piece_of(std::uint64_t slice, std::size_t rank) const;
  [[nodiscard]] std::byte* staging_of(const Peer& peer, std::uint64_t slice) const;
  /// A slice of the vector that a rank brings, in its buffer or in staging.
  [[nodiscard]] const std::byte* operands_of(const Peer& peer, std::uint64_t slice) const;
  [[nodiscard]] std::uint64_t slice_begin(std::uint64_t slice) const {
    return slice * slice_elements() * element_bytes_;
  }
  [[nodiscard]] bool scatters_in_place() const { return call_.in == call_.out; }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) const;

  Config config_;
  StagingLayout layout_;
  SharedMemory own_;
  WakePipe door_;
  SharedBlock* block_ = nullptr;
  SharedBlock* first_ = nullptr;  ///< rank 0's, with the bell
  std::vector<Peer> peers_;       ///< by rank, this one's included
  std::vector<const std::byte*> sources_;

  // The call under way.
  Stage stage_ = Stage::kIdle;
  Call call_;
  std::size_t element_bytes_ = 1;
  Signature signature_;
  bool shown_inline_ = false;      ///< by all ranks alike, whatever this one shows
  std::uint64_t number_ = 0;       ///< of calls so far
  std::size_t next_called_ = 0;    ///< ranks before this one have come to the call
  std::uint64_t first_slice_ = 0;  ///< slices of all earlier calls
  std::uint64_t num_slices_ = 0;
  std::uint64_t run_ = 1;  ///< slices that are folded and taken at a time, as if they were one
  std::uint64_t copied_ = 0, reduced_ = 0, taken_ = 0;  ///< slices of this call
  bool two_stages_ = false;                             ///< what is taken is not folded into staging before
  bool operands_known_ = false;                         ///< where all of them lie
  bool reads_others_ = false;                           ///< buffers of theirs, not only staging
  HeldOperands held_;                                   ///< this rank's, which others read
  bool shows_in_ = false, shows_out_ = false;
  std::size_t piece_elements_ = 0;  ///< of a section in a slice
  bool stream_ = false;             ///< the output is too large to be found in a cache later

  // Traced calls only.
  std::int64_t begin_ns_ = 0;
  std::int64_t lacking_since_ns_ = 0;  ///< 0: nobody is lacking
  Rank lacking_ = -1;

  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;  ///< guards failure_
  Status failure_;
};

}  // namespace hips::node
