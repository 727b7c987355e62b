#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/exec/companion.hpp"
#include "lib/exec/engine.hpp"
#include "lib/exec/nic_queue.hpp"
#include "lib/exec/slot_table.hpp"
#include "lib/exec/staging_arena.hpp"
#include "lib/exec/user_regions.hpp"

namespace hips::exec {

class TeamImpl;
struct Port;

/// A request that was posted, or is about to be.
struct Posted {
  enum class Kind : std::uint8_t {
    kSegment,  ///< header and payload
    kPayload,  ///< alone, to granted memory; has no completion and no entry in `posted`
    kHeader,   ///< follows it and speaks for both
    kGrant,    ///< to a sender; `channel` is an in-channel and `slot` the turn
  };
  OperationImpl* operation = nullptr;  ///< null: nobody waits any more
  TeamImpl* team = nullptr;
  Port* port = nullptr;
  StepId step = -1;
  std::int32_t segment = 0;
  std::uint32_t bytes = 0;
  std::int64_t begin_ns = 0;
  transport::PeerId peer = -1;
  std::int32_t channel = -1;     ///< out-channel of the team
  std::uint32_t slot = 0;        ///< of its send slots
  UserRegion* memory = nullptr;  ///< the user's, where it is read from there
  Kind kind = Kind::kSegment;
};

/// A transport with its software queue and its endpoints, which all teams share.
struct Port {
  /// Segments that are handed over together, for one doorbell.
  static constexpr std::size_t kBatch = 16;

  std::unique_ptr<transport::Transport> transport;
  std::size_t index = 0;  ///< in EngineImpl::ports
  NicQueue queue;
  /// Requests that the transport has not taken yet. A segment for granted memory is two of them, and the last
  /// segment may be one.
  std::array<transport::WorkRequest, kBatch + 1> batch;
  std::array<Posted, kBatch + 1> batched;  ///< what they are
  std::size_t num_batched = 0;
  bool refused = false;  ///< the transport was full for what is in the batch
  std::size_t batch_limit = kBatch;
  std::set<transport::PeerId> broken;                         ///< what is posted to them never completes
  std::uint64_t posted_bytes = 0;                             ///< posted and not yet locally complete
  std::map<transport::PeerId, transport::Address> endpoints;  ///< open ones, with our address for the peer
  std::map<transport::PeerId, transport::Address> connected;  ///< with the peer's address
};

struct EngineImpl final : RangeUser {
  /// What may be posted to a NIC and not yet complete: enough to keep it busy, little enough to keep order.
  static constexpr std::uint64_t kMaxPostedBytes = 4U << 20U;

  Engine::Options options;
  Clock* clock = nullptr;
  TraceSink* trace = nullptr;
  int wake_fd = -1;
  std::vector<std::unique_ptr<Port>> ports;
  StagingArena arena;        ///< declared after the ports: it deregisters from their transports when it goes
  StagingArena grant_arena;  ///< cells for grants; its memory is never anything else
  UserRegions user_regions;  ///< after the ports, too
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>, transport::PeerId> peers;
  SlotTable slots;
  std::vector<TeamImpl*> teams;
  std::vector<TeamImpl*> active;       ///< with operations in flight or credits to return
  std::vector<Companion*> companions;  ///< that are busy
  std::vector<Posted> posted;
  std::vector<std::uint32_t> free_posted;

  // Ownership of progress. The fast path of a single thread is one exchange and one store.
  std::atomic<bool> owned{false};
  std::atomic<int> waiters{0};
  std::atomic<int> lockers{0};  ///< of them: threads in lock(), before which whoever only waits steps back
  std::mutex mutex;
  std::condition_variable changed;
  /// A team was failed, a peer left, an operation was handed over, a companion came, a range was
  /// deregistered.
  std::atomic<bool> control_pending{false};
  std::mutex newcomers_mutex;
  std::vector<Companion*> newcomers;  ///< companions to be
  std::mutex forgotten_mutex;
  std::vector<std::uint64_t> forgotten;     ///< ranges that the user has deregistered
  std::array<transport::Event, 64> events;  ///< of the poll under way; made once, as each holds a Status
  bool quiet = false;                       ///< this round polled everything and found nothing
  bool completed_some = false;              ///< since the waiters were last told
  std::vector<pollfd> sleeping_on;          ///< of sleep(), which allocates nothing the next time
  std::vector<Companion*> armed_companions;

  explicit EngineImpl(Engine::Options given);
  ~EngineImpl() override;
  EngineImpl(const EngineImpl&) = delete;
  EngineImpl& operator=(const EngineImpl&) = delete;

  // Owns progress, as std::unique_lock does it: what is thrown inside leaves the engine to others.
  bool try_lock() { return !owned.exchange(true, std::memory_order_seq_cst); }
  void lock();
  void unlock();
  /// Tells threads that wait behind the owner to look at their operations.
  void tell_waiters();

  bool progress();
  /// The part of progress() that is the companions'.
  bool advance_companions();
  void list(Companion& companion);
  void take_newcomers();
  void sleep(std::int64_t timeout_ns);
  void dispatch(Port& port, const transport::Event& event);
  bool drain(Port& port);
  /// Hands the batch to the transport; how much of it was taken.
  std::size_t flush(Port& port);
  /// Takes back what was not handed over yet.
  void drop_batched(const TeamImpl* team);
  void wake() const;

  std::uint32_t add_posted(const Posted& record);
  void complete(std::uint32_t index);
  /// Nothing reads what it names any more: its record is free.
  void release(std::uint32_t index);
  /// The peer is gone: nothing that the transport has taken, or takes from now on, will complete.
  void forget(Port& port, transport::PeerId peer);
  /// One of those requests.
  void lose(std::uint32_t index);
  Port* port_of(transport::Transport* transport);
  void forget(std::uint64_t range) override;
  void take_forgotten();
};

}  // namespace hips::exec
