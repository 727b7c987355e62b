#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/exception_status.hpp"
#include "lib/exec/blob.hpp"
#include "lib/exec/channel.hpp"
#include "lib/exec/compiled_program.hpp"
#include "lib/exec/engine_impl.hpp"
#include "lib/exec/layout.hpp"
#include "lib/exec/operation_impl.hpp"
#include "lib/exec/team.hpp"
#include "lib/exec/wire_header.hpp"

namespace hips::exec {

/// See Team. Only the progress owner calls its functions, except fail(), peer_left() and start().
///
/// Files: team_setup.cpp (programs, routes), team_exchange.cpp (channels, staging, exchanges), team_progress.cpp (steps, arrivals, credits),
/// team_sending.cpp (outgoing segments, the user's registered memory), team_grants.cpp (outputs that peers
/// write into), team_connections.cpp (opening and losing connections), team_failure.cpp (missing ranks,
/// signatures, ranks that left).
class TeamImpl final : public Team, public EngineTeam {
 public:
  TeamImpl(EngineImpl& engine, Config config);
  ~TeamImpl() override;

  /// Validates the configuration for Team::create, and finds the routes.
  Status check();

  // Team.
  Outbound offer() override;
  Result<Outbound> allocate(const Inbound& offers) override;
  Status connect(const Inbound& addresses) override;
  std::int32_t add_program(std::shared_ptr<const PlanShape> shape,
                           std::shared_ptr<const Program> program) override;
  std::shared_ptr<Operation> start(const OperationArgs& args) override;
  std::shared_ptr<Operation> start_in_progress(const OperationArgs& args) override;
  void fail(const Status& status) override;
  [[nodiscard]] bool failed() const override { return failed_.load(std::memory_order_acquire); }
  void peer_left(Rank rank) override;
  [[nodiscard]] std::size_t staging_bytes() const override { return staging_.bytes; }
  [[nodiscard]] std::size_t send_slot_bytes() const override { return send_memory_.bytes; }
  [[nodiscard]] std::size_t segment_bytes() const override { return segment_bytes_; }

  // EngineTeam.
  void on_arrival(std::int32_t channel, std::int32_t slot) override;
  void on_credits(std::int32_t channel, std::uint32_t credits) override;
  void on_grant(std::int32_t channel) override;
  void on_completion(const Posted& posted) override;
  void on_lost(const Posted& posted) override;
  void on_unacknowledged(const Posted& posted) override;
  void on_broken(const Connection& connection) override;
  void on_port(const EnginePort& port) override;
  void on_control() override;
  void on_exception(Status status) noexcept override;
  bool advance() override;
  [[nodiscard]] bool busy() const override { return !in_flight_.empty() || !credit_list_.empty(); }
  void set_listed(bool listed) override { listed_ = listed; }
  [[nodiscard]] PortSet used_ports() const override { return used_ports_; }
  bool batch_segment(EnginePort& port, const ReadySegment& ready) override;

  // For Operation's reports.
  [[nodiscard]] std::vector<Rank> missing(const OperationImpl& operation) const;
  [[nodiscard]] std::string missing_text(const OperationImpl& operation) const;

 private:
  using StepState = OperationImpl::StepState;

  /// A connection that this team uses.
  struct UsedConnection {
    Rank rank = -1;
    std::shared_ptr<Connection> connection;
  };
  /// A connection that a rank has at the time of its offer. Rails are positions in Route's lists.
  struct ConnectionEntry {
    Rank rank, peer;
    Rail rail, peer_rail;
    std::uint32_t incarnation, is_lost;
  };

  /// The peer's rail of each of our in-channels and out-channels.
  struct PeerRails {
    std::vector<Rail> in, out;
  };

  // Set-up.
  void give_back_slots();
  Status take_agreement(const std::vector<Blob>& offers);
  Result<PeerRails> take_offers(const std::vector<PeerBlob>& offers);
  [[nodiscard]] std::vector<transport::Transport*> transports() const;
  Status allocate_memory();
  // Make a channel, and write what the peer needs of it. `send_slots`: those that no channel has yet.
  void make_in_channel(std::int32_t c, Rail peer_rail, BlobWriter& writer);
  Status make_out_channel(std::int32_t c, Rail peer_rail, std::byte*& send_slots, BlobWriter& writer);
  Status offer_endpoint(Rank rank, Rail rail, Rail peer_rail, BlobWriter& writer);
  Status connect_peer(Rank rank, std::span<const std::byte> address);
  [[nodiscard]] std::vector<ConnectionEntry> connections_to(Rank rank) const;
  [[nodiscard]] std::uint32_t agreed_incarnation(Rank rank, Rail rail, Rail peer_rail) const;
  /// Opens our end of the connection to a rank's port, or finds it.
  Result<Connection*> open_connection(Rank rank, Rail rail, Rail peer_rail);
  /// Connects it with the peer's end.
  Result<Connection*> join_connection(Rank rank, Rail rail, Rail peer_rail, std::uint32_t incarnation,
                                      std::span<const std::byte> address);
  [[nodiscard]] bool needs_send_slots(Rank rank) const;
  [[nodiscard]] std::size_t best_segment_bytes() const;
  [[nodiscard]] std::int32_t best_credits() const;
  [[nodiscard]] Status disagreement(const ChannelKey& key) const;
  [[nodiscard]] Status unreached(Rank rank, Rail rail, Status status) const;

  // Progress.
  std::shared_ptr<const Layout> layout_for(const OperationArgs& args);
  [[nodiscard]] PortSet ports_of(const Layout& layout) const;
  void take_handed_over();
  void take_new_programs();
  /// The program of an operation. Its first use makes it, and throws std::bad_alloc where there is no memory.
  const CompiledProgram& program_of(std::int32_t index);
  std::size_t idle_place();
  std::shared_ptr<OperationImpl> idle_operation();
  /// Begins the operation. It is done, with an error, if memory runs out.
  void begin_guarded(OperationImpl& operation);
  void begin(OperationImpl& operation);
  void list_for_work(OperationImpl& operation, StepId step);
  void list_dependents(OperationImpl& operation, StepId step);
  void list_active();
  bool run_local(OperationImpl& operation, StepId step);
  void offer_segment(OperationImpl& operation, StepId step);
  [[nodiscard]] bool send_ready(const OperationImpl& operation, StepId step) const;
  [[nodiscard]] bool dependencies_met(const OperationImpl& operation, StepId step,
                                      std::int32_t segment) const;
  [[nodiscard]] StepId head_of(const OperationImpl& operation, std::int32_t channel) const;
  bool give_up_segment(EnginePort& port, const ReadySegment& ready, std::uint32_t bytes);
  /// Counts a segment of the step as sent, and offers the next one.
  void count_segment(OperationImpl& operation, StepId id);
  void next_send(OperationImpl& operation, std::int32_t channel);
  void list_head(std::int32_t channel);
  const SendPath& send_path_for(const OperationImpl& operation, StepId step);
  [[nodiscard]] bool takes_grants(Rank rank, Rail rail) const;
  void give_grants(OperationImpl& operation);
  bool name_output(OperationImpl& operation, EnginePort& port, std::uint64_t bytes, Grant& grant);
  void revoke_grants(OperationImpl& operation);
  [[nodiscard]] const Grant* grant_for(const OperationImpl& operation, StepId step) const;
  [[nodiscard]] bool is_direct(const OperationImpl& operation, const InChannel& channel,
                               std::uint64_t number) const;
  void hold_memory(OperationImpl& operation);
  static void drop_memory(OperationImpl& operation);
  [[nodiscard]] static UserRegion* memory_of(const OperationImpl& operation, Buffer buffer);
  void take_carried_credits(const InChannel& channel, std::uint64_t number);
  /// The outstanding operation that a segment belongs to; null if it has not been started here.
  [[nodiscard]] OperationImpl* receiver_of(std::int32_t c, std::uint64_t number) const;
  [[nodiscard]] Receive receive_of(const OperationImpl& operation, std::int32_t channel,
                                   std::uint64_t number) const;
  void take_early_arrivals(OperationImpl& operation);
  [[nodiscard]] const std::byte* payload(const InChannel& channel, std::uint64_t number) const;
  void consume(std::int32_t channel, std::uint64_t number);
  void finish_segment(OperationImpl& operation, StepId step);
  void finish(OperationImpl& operation, const Status& status);
  void drop_finished();
  bool return_credits();
  [[nodiscard]] const std::byte* local_source(const OperationImpl& operation, const BufferRange& range,
                                              std::int64_t first) const;
  [[nodiscard]] std::byte* destination(OperationImpl& operation, const BufferRange& range,
                                       std::int64_t first) const;
  [[nodiscard]] std::int64_t now_if_traced() const;
  void trace(TraceEvent::Kind kind, const OperationImpl& operation, StepId step, std::int32_t segment,
             Rank peer, Rail rail, std::int64_t bytes, std::int64_t begin_ns) const;

  // Failure.
  [[nodiscard]] WireHeader header_of(const OperationImpl& operation, StepId step, std::int32_t segment) const;
  bool verify(OperationImpl& operation, std::int32_t channel, std::uint64_t number);
  void report(Status status);
  void report_lost(const UsedConnection& lost);
  /// Reports what was lost before the current operation began.
  void report_losses();
  void check_left_peers();
  void end_all(const Status& status);
  /// The program's vectors, and what is freed with the operation, from requests that still read them.
  void take_back_memory(const OperationImpl& operation) noexcept;

  EngineImpl& engine_;
  TraceSink* const trace_sink_;  ///< null: no trace
  Config config_;
  std::map<Rank, Route> routes_;  ///< to the peers: the ranks that a program exchanges messages with
  ChannelTable channels_;
  /// Config::plans, each made by program_of(), then those of add_program(). A deque: operations point into it.
  std::deque<CompiledProgram> programs_;
  std::vector<InChannel> in_;
  /// By in-channel: number at which the next operation starts. Beside the channels, since each operation reads all of them.
  std::vector<std::uint64_t> next_base_;
  std::vector<OutChannel> out_;
  StagingArena::Piece staging_;                        ///< receive slots
  StagingArena::Piece send_memory_;                    ///< send slots, for NICs that need registered memory
  StagingArena::Piece grant_cells_;                    ///< by out-channel, then turn
  StagingArena::Piece grant_sources_;                  ///< by in-channel, then turn
  std::shared_ptr<EngineImpl::StillRead> still_read_;  ///< filled at the end
  std::map<transport::Transport*, transport::Region> phantom_regions_;
  /// A peer's memory on one transport.
  struct PeerRegions {
    transport::RemoteRegion staging, grant_cells;
  };
  std::list<PeerRegions> remote_regions_;  ///< a list: channels point into it
  std::vector<UsedConnection> connections_;
  std::vector<ConnectionEntry>
      offered_connections_;  ///< from and to this rank, from offer() until allocate() ends
  bool has_lost_connection_ = false;
  Status port_down_;                      ///< an error: a NIC that the team uses is broken for good
  std::vector<EnginePort*> registering_;  ///< ports of out-channels that need registered memory
  std::size_t segment_bytes_ = 0;
  std::size_t slot_stride_ = 0;
  std::int64_t slot_base_ = -1;
  std::uint32_t num_slots_ = 0;
  bool listed_ = false;  ///< the team is in the engine's active list

  std::uint64_t next_sequence_ = 1;        ///< starts at 1, as users count calls
  std::vector<OperationImpl*> in_flight_;  ///< oldest first
  PortSet used_ports_ = PortSet::all();
  /// Those with work, so that a thousand waiting operations cost nothing.
  std::vector<OperationImpl*> with_work_;
  std::vector<std::shared_ptr<OperationImpl>> pool_;
  std::size_t last_idle_ = 0;  ///< the one in the pool that was used last
  /// Program, count, bytes of an element, boundaries.
  using LayoutKey = std::tuple<std::int32_t, std::uint64_t, std::size_t, Boundaries>;
  std::map<LayoutKey, std::shared_ptr<const Layout>> layouts_;
  std::size_t steps_of_layouts_ = 0;
  std::pair<std::int32_t, std::shared_ptr<const Layout>> last_layout_;  ///< and its program
  std::vector<std::int32_t> credit_list_;   ///< in-channels that have credits to return
  std::vector<const std::byte*> operands_;  ///< operands of the segment that is being reduced

  std::atomic<bool> failed_{false};
  std::atomic<bool> has_handed_over_{false}, has_new_programs_{false};
  bool ended_ = false;  ///< no operation is outstanding or will start
  bool ended_by_failure_ = false;
  bool any_finished_ = false;        ///< an operation has finished since in_flight_ was last cleaned
  std::int64_t early_arrivals_ = 0;  ///< arrived segments of operations that have not been started here
  bool reported_ = false, reported_left_ = false;
  std::mutex control_mutex_;  ///< guards what other threads hand over: the next five members
  Status failure_;
  std::vector<Rank> newly_left_;
  std::vector<CompiledProgram> new_programs_;
  std::int32_t num_programs_ = 0;  ///< including new_programs_
  std::vector<std::shared_ptr<OperationImpl>> handed_over_;
  std::shared_ptr<OperationImpl> spare_;  ///< an idle one, for a thread that hands its start over
  std::vector<bool> left_;
  bool any_left_ = false;
  /// Segments whose connection broke before they were confirmed. If the peer has left, it has received them,
  /// because no rank leaves before it has all its data. If the peer is dead, they end with the team.
  std::vector<Posted> unacknowledged_;
};

}  // namespace hips::exec
