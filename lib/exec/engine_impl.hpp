#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/base/exception_status.hpp"
#include "lib/exec/connection.hpp"
#include "lib/exec/engine.hpp"
#include "lib/exec/engine_client.hpp"
#include "lib/exec/engine_team.hpp"
#include "lib/exec/nic_queue.hpp"
#include "lib/exec/slot_table.hpp"
#include "lib/exec/staging_arena.hpp"
#include "lib/exec/user_regions.hpp"

namespace hips::exec {

struct EnginePort;

/// A request that was posted, or is about to be.
struct Posted {
  enum class Kind : std::uint8_t {
    kSegment,  ///< header and payload in one request
    kPayload,  ///< payload alone, to granted memory; no completion, and no entry in `posted`
    kHeader,   ///< header after a kPayload request; its completion covers both
    kGrant,    ///< a grant for a sender; `channel` is an in-channel and `slot` the turn
  };
  OperationImpl* operation = nullptr;  ///< null: the operation has ended
  EngineTeam* team = nullptr;
  EnginePort* port = nullptr;
  StepId step = -1;
  std::int32_t segment = 0;
  std::uint32_t bytes = 0;
  std::int64_t begin_ns = 0;
  transport::PeerId peer = -1;
  std::int32_t channel = -1;     ///< out-channel of the team
  std::uint32_t slot = 0;        ///< index of the send slot
  UserRegion* memory = nullptr;  ///< the user's registered memory, if the payload is read from it
  Kind kind = Kind::kSegment;
};

/// A transport with its software queue and its connections, which all teams share.
struct EnginePort {
  /// Segments that are posted together, for one doorbell.
  static constexpr std::size_t kBatch = 16;

  std::unique_ptr<transport::Transport> transport;
  std::size_t index = 0;  ///< in EngineImpl::ports
  NicQueue queue;
  /// Requests that the transport has not accepted yet. A segment for granted memory takes two requests, and
  /// it may be the last one of the batch.
  std::array<transport::WorkRequest, kBatch + 1> batch;
  std::array<Posted, kBatch + 1> batched;  ///< one record for each request in `batch`
  std::size_t num_batched = 0;
  bool refused = false;  ///< the transport accepted only a part of the batch: its queue is full
  std::size_t batch_limit = kBatch;
  std::uint64_t posted_bytes = 0;  ///< posted but not locally complete
  /// The newest connection to each peer. Null: its endpoint could not be opened.
  std::map<transport::PeerId, std::shared_ptr<Connection>> connections;
  Status down;  ///< an error: the NIC is down

  /// Removes the requests from the batch for whose index `drops` returns true.
  template <typename Drops>
  void remove_batched_if(Drops drops) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < num_batched; ++i) {
      if (drops(i)) continue;
      batch[kept] = batch[i];
      batched[kept++] = batched[i];
    }
    num_batched = kept;
    refused &= kept > 0;
  }
};

struct EngineImpl final : RangeListener {
  /// Limit of the bytes that are posted to a NIC and not complete: enough to keep the NIC busy, and little
  /// enough to keep the order of priorities.
  static constexpr std::uint64_t kMaxPostedBytes = 4U << 20U;
  /// A port that no outstanding operation uses brings early arrivals, new connections and ends of peers. None
  /// of them is urgent, and a poll is a system call for most transports.
  static constexpr std::uint32_t kRoundsPerSweep = 4;

  Engine::Options options;
  Clock* clock = nullptr;
  TraceSink* trace = nullptr;
  int wake_fd = -1;
  Status start_error;  ///< there is no `wake_fd`
  std::vector<std::unique_ptr<EnginePort>> ports;
  StagingArena arena;  ///< declared after `ports`: its destructor deregisters memory with their transports
  StagingArena grant_arena;  ///< grant cells; this memory is never used for anything else
  UserRegions user_regions;  ///< also declared after `ports`
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>, transport::PeerId> peers;
  /// Staging of teams that failed and are gone. Peers that do not know of the failure may still write into it,
  /// until both ends have closed the connections.
  struct AbandonedStaging {
    std::vector<StagingArena::Piece> pieces;
    std::vector<std::shared_ptr<const Connection>> connections;
  };
  std::vector<AbandonedStaging> abandoned;
  /// What requests of a team that is gone still read.
  struct StillRead {
    EngineImpl& engine;
    std::vector<std::vector<std::byte>> headers{};
    StagingArena::Piece send_memory{}, grant_sources{};
    std::shared_ptr<const StillRead> itself{};  ///< set where it is never freed

    explicit StillRead(EngineImpl& of) : engine(of) {}
    StillRead(const StillRead&) = delete;
    StillRead& operator=(const StillRead&) = delete;
    ~StillRead() {
      try {
        engine.arena.release(send_memory);
        engine.grant_arena.release(grant_sources);
      } catch (const std::bad_alloc&) {
        return;  // that memory is not used again
      }
    }
  };
  std::unordered_map<std::uint32_t, std::shared_ptr<const StillRead>> still_read;  ///< by their records
  SlotTable slots;
  std::vector<EngineTeam*> teams;
  std::vector<EngineTeam*> active;     ///< teams with outstanding operations or credits to return
  std::vector<EngineClient*> clients;  ///< clients that are busy
  std::vector<Posted> posted;
  std::vector<std::uint32_t> free_posted;

  // Ownership of progress. The fast path of a single thread is one exchange and one store.
  std::atomic<bool> owned{false};
  std::atomic<int> waiters{0};
  std::atomic<int> lockers{0};  ///< waiters in lock(); a thread in wait() gives way to them
  std::mutex mutex;
  std::condition_variable changed;
  /// Set when a team failed, a peer left, an operation was handed over, a client was added or a range was
  /// deregistered.
  std::atomic<bool> control_pending{false};
  std::mutex new_clients_mutex;
  std::vector<EngineClient*> new_clients;  ///< clients that other threads have activated
  std::mutex removed_ranges_mutex;
  std::vector<std::uint64_t> removed_ranges;  ///< ids of ranges that the user has deregistered
  std::array<transport::Event, 64> events;    ///< results of poll(); a member, because constructing 64 events
                                              ///< is expensive (each holds a Status)
  std::array<transport::Event, 16> completions;  ///< the same of poll_completions()
  std::uint32_t rounds = 0;                      ///< of progress()
  PortSet woken;                                 ///< ports whose events ended the last sleep
  bool quiet = false;                            ///< this round polled every transport and found nothing
  bool dispatched_completions = false;           ///< of poll_completions(), since the last round
  WaitKind wait_kind = WaitKind::kMemory;
  bool completed_some = false;  ///< an operation has completed since the waiters were last notified
  /// Used by sleep(); a member, so that sleep() does not allocate each time.
  std::vector<pollfd> sleeping_on;
  std::vector<EngineClient*> armed_clients;

  explicit EngineImpl(Engine::Options given);
  ~EngineImpl() override;
  EngineImpl(const EngineImpl&) = delete;
  EngineImpl& operator=(const EngineImpl&) = delete;

  // Lock of progress, for std::unique_lock: an exception inside releases it.
  bool try_lock() { return !owned.exchange(true, std::memory_order_seq_cst); }
  void lock();
  void unlock();
  /// Notifies the threads that wait for the owner, so that they check their operations.
  void tell_waiters();

  bool progress();
  /// Polls the ports that an outstanding operation uses, and in each kRoundsPerSweep-th round all; a part of
  /// progress(). True: something happened.
  bool poll_ports();
  /// Advances the clients; a part of progress().
  bool advance_clients();
  void activate(EngineClient& client);
  void take_new_clients();
  void sleep(std::int64_t timeout_ns);
  void dispatch(EnginePort& port, const transport::Event& event);
  bool drain(EnginePort& port);
  /// Posts the batch. Returns the number of requests that the transport accepted.
  std::size_t flush(EnginePort& port);
  /// Removes the requests of `team` that have not been posted.
  void drop_batched(const EngineTeam* team);
  /// Runs `work` for a team. Nothing throws through progress, where it would stop others' operations: what
  /// is thrown, such as std::bad_alloc, fails the team.
  template <typename Work>
  static void guard(EngineTeam& team, Work work) {
    try {
      work();
    } catch (...) {
      team.on_exception(status_of_exception());
    }
  }
  void wake() const;

  std::uint32_t add_posted(const Posted& record);
  void complete(std::uint32_t index);
  /// Frees the record: no device reads the request's memory any more.
  void release(std::uint32_t index);
  /// The connection of that incarnation. Opens our endpoint if there is none yet, and closes an older one.
  Result<std::shared_ptr<Connection>> open(EnginePort& port, transport::PeerId peer,
                                           std::uint32_t incarnation);
  /// Connects our endpoint with the peer's, whose address is `theirs`.
  Status connect(Connection& connection, std::span<const std::byte> theirs);
  /// Releases abandoned staging that no peer writes into any more.
  void release_abandoned();
  /// The connection is broken: gives up all requests to the peer, and tells the teams that use it.
  void lose(Connection& connection, const Status& cause);
  EnginePort* port_of(transport::Transport* transport);
  void range_removed(std::uint64_t range) override;
  void take_removed_ranges();
};

}  // namespace hips::exec
