#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/hips-write/link.hpp"
#include "tools/hips-write/pages.hpp"
#include "tools/hips-write/slots.hpp"
#include "tools/hips-write/ticks.hpp"
#include "transports/verbs/device.hpp"
#include "transports/verbs/handles.hpp"
#include "transports/verbs/trouble.hpp"

namespace hips::write {
namespace {

constexpr std::uint32_t kEnd = 0xffffffffU;                ///< immediate of the last message of a run
constexpr std::uint64_t kEndId = std::uint64_t{1} << 32U;  ///< wr_id of that message
constexpr std::uint32_t kVendorMellanox = 0x02c9;
constexpr std::uint32_t kInlineOfMellanox = 220;
constexpr std::uint8_t kMinRnrTimer = 12;
constexpr std::uint32_t kMaxPairs = 1024;
constexpr int kPollBatch = 16;

/// The address of one end, sent to the other.
struct RawAddress {
  std::uint64_t magic = 0x3177617277706968;  // "hipwraw1"
  std::array<std::uint8_t, 16> gid{};
  std::uint16_t lid = 0;
  std::uint16_t num_pairs = 0;
  std::uint32_t mtu = 0;  ///< IBV_MTU_*
  std::uint32_t key = 0;
  std::uint32_t pad = 0;
  std::uint64_t target = 0;  ///< memory address of the first queue pair
  std::array<std::uint32_t, kMaxPairs> numbers{}, packet_numbers{};
};

class RawLink final : public WriteLink {
 public:
  static Result<std::unique_ptr<WriteLink>> create(const WriteOptions& options,
                                                   const verbs::PortChoice& port);

  [[nodiscard]] std::string address() const override {
    return {reinterpret_cast<const char*>(&mine_), sizeof mine_};
  }
  Status connect(const std::string& address, PeerMonitor& monitor) override;
  Result<Samples> stream(const Stream& run, PeerMonitor& monitor) override;
  Result<Samples> ping_pong(const PingPong& run, PeerMonitor& monitor) override;

  [[nodiscard]] PortDescription port() const override { return description_; }
  [[nodiscard]] EndDescription local() const override { return describe_end(mine_); }
  [[nodiscard]] EndDescription remote() const override { return describe_end(theirs_); }
  [[nodiscard]] std::span<std::byte> source(std::uint32_t pair) override {
    return pages_.all().subspan(pair * buffer_bytes_, buffer_bytes_);
  }
  [[nodiscard]] std::span<std::byte> target(std::uint32_t pair) override {
    return pages_.all().subspan((options_.queue_pairs + pair) * buffer_bytes_, buffer_bytes_);
  }
  [[nodiscard]] std::uint32_t num_buffers() const override { return options_.queue_pairs; }

 private:
  class StreamLoop;

  RawLink(const WriteOptions& options, verbs::PortChoice port)
      : options_(options),
        port_(std::move(port)),
        buffer_bytes_(Slots::buffer_bytes(options.max_bytes())),
        pages_(2 * options.queue_pairs * buffer_bytes_) {}
  Status start();
  Status open_device();
  Status create_queues();
  Status create_pair();
  Status connect_pair(std::uint32_t pair);
  Status post_receives(std::uint32_t pair, std::uint32_t count);
  Status end_stream();
  [[nodiscard]] EndDescription describe_end(const RawAddress& end) const;
  [[nodiscard]] Status call_failed(const std::string& call, int error) const {
    return verbs::call_error(port_.name, call, error);
  }
  [[nodiscard]] Status completion_failed(const ibv_wc& completion, const PeerMonitor& monitor) const {
    return verbs::completion_error(
        port_.name,
        {.host = monitor.control().peer(), .port = "its port", .address = monitor.control().peer(), .pid = 0},
        completion.status, completion.vendor_err, {options_.timeout, options_.retry_count});
  }
  [[nodiscard]] ibv_send_wr write_request(std::uint32_t pair, std::size_t bytes, ibv_sge& piece) const;

  WriteOptions options_;
  verbs::PortChoice port_;
  PortDescription description_;
  verbs::PortFacts facts_;
  std::size_t buffer_bytes_;
  Pages pages_;
  RawAddress mine_, theirs_;
  std::uint32_t inline_bytes_ = 0;
  // In the order of their creation.
  verbs::ContextHandle context_;
  verbs::DomainHandle domain_;
  verbs::MemoryHandle memory_;
  verbs::QueueHandle sent_, received_;
  std::vector<verbs::PairHandle> pairs_;
};

Result<std::unique_ptr<WriteLink>> RawLink::create(const WriteOptions& options,
                                                   const verbs::PortChoice& port) {
  if (port.iwarp)
    return fail(
        Code::kUnsupported,
        fmt::format("{} is an iWARP device, which connects only by rdma_cm; remove --raw", port.name));
  std::unique_ptr<RawLink> link(new RawLink(options, port));
  if (Status status = link->start(); !status.ok()) return fail(std::move(status));
  return link;
}

Status RawLink::start() {
  auto description = describe_port(options_, port_);
  if (!description) return std::move(description).error();
  description_ = *std::move(description);
  if (Status status = open_device(); !status.ok()) return status;
  const auto gids = verbs::gid_table(*context_, port_.port, false);
  const auto gid =
      std::find_if(gids.begin(), gids.end(), [&](const verbs::Gid& g) { return g.index == port_.gid_index; });
  if (gid == gids.end())
    return Status::error(Code::kUnsupported,
                         fmt::format("GID {} of {} has disappeared", port_.gid_index, port_.name));
  if (Status status = create_queues(); !status.ok()) return status;
  description_.inline_bytes = inline_bytes_;
  mine_.gid = gid->bytes;
  mine_.lid = facts_.lid;
  mine_.num_pairs = static_cast<std::uint16_t>(options_.queue_pairs);
  std::uint8_t mtu = facts_.active_mtu;
  while (options_.mtu != 0 && verbs::mtu_bytes(mtu) > options_.mtu) --mtu;
  mine_.mtu = mtu;
  mine_.key = memory_->rkey;
  mine_.target = reinterpret_cast<std::uintptr_t>(target(0).data());
  return Status::success();
}

Status RawLink::open_device() {
  auto contexts = verbs::open_devices();
  if (!contexts) return std::move(contexts).error();
  for (auto& context : *contexts) {
    if (port_.device == ibv_get_device_name(context->device)) context_ = std::move(context);
  }
  contexts->clear();
  if (context_ == nullptr)
    return Status::error(Code::kUnsupported, fmt::format("{} has disappeared", port_.name));
  auto facts = verbs::query_port(*context_, port_.port);
  if (!facts) return std::move(facts).error();
  facts_ = *std::move(facts);
  ibv_device_attr device{};
  if (ibv_query_device(context_.get(), &device) != 0) return call_failed("ibv_query_device", errno);
  // perftest's default: inline data only for latency, and only on known devices.
  if (options_.inline_bytes >= 0) {
    inline_bytes_ = static_cast<std::uint32_t>(options_.inline_bytes);
  } else if (options_.program == WriteProgram::kLatency && device.vendor_id == kVendorMellanox) {
    inline_bytes_ = kInlineOfMellanox;
  }
  return Status::success();
}

Status RawLink::create_queues() {
  domain_.reset(ibv_alloc_pd(context_.get()));
  if (domain_ == nullptr) return call_failed("creating a protection domain", errno);
  memory_.reset(ibv_reg_mr(domain_.get(), pages_.all().data(), pages_.all().size(),
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  if (memory_ == nullptr) return verbs::registration_error(port_.name, pages_.all().size(), errno);
  const auto depth = [&](std::uint32_t each) { return static_cast<int>((each + 1) * options_.queue_pairs); };
  sent_.reset(ibv_create_cq(context_.get(), depth(options_.tx_depth), nullptr, nullptr, 0));
  if (sent_ == nullptr)
    return call_failed(fmt::format("creating a completion queue for -t {} and -q {}", options_.tx_depth,
                                   options_.queue_pairs),
                       errno);
  received_.reset(ibv_create_cq(context_.get(), depth(options_.with_immediate ? options_.rx_depth : 1),
                                nullptr, nullptr, 0));
  if (received_ == nullptr)
    return call_failed(options_.with_immediate
                           ? fmt::format("creating a completion queue for -r {} and -q {}", options_.rx_depth,
                                         options_.queue_pairs)
                           : fmt::format("creating a completion queue for -q {}", options_.queue_pairs),
                       errno);
  std::random_device random;
  for (std::uint32_t i = 0; i < options_.queue_pairs; ++i) {
    if (Status status = create_pair(); !status.ok()) return status;
    mine_.numbers[i] = pairs_.back()->qp_num;
    mine_.packet_numbers[i] = random() & 0xffffffU;
  }
  return Status::success();
}

Status RawLink::create_pair() {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = sent_.get();
  attributes.recv_cq = received_.get();
  attributes.cap.max_send_wr = options_.tx_depth + 1;
  attributes.cap.max_recv_wr = options_.with_immediate ? options_.rx_depth : 1;
  attributes.cap.max_send_sge = 1;
  attributes.cap.max_recv_sge = 1;
  attributes.cap.max_inline_data = inline_bytes_;
  attributes.qp_type = IBV_QPT_RC;
  verbs::PairHandle pair(ibv_create_qp(domain_.get(), &attributes));
  if (pair == nullptr)
    return call_failed(fmt::format("creating a queue pair for -t {} -I {}", options_.tx_depth, inline_bytes_),
                       errno);
  ibv_qp_attr state{};
  state.qp_state = IBV_QPS_INIT;
  state.port_num = port_.port;
  state.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  if (const int error = ibv_modify_qp(pair.get(), &state,
                                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
      error != 0)
    return call_failed("initialising a queue pair", error);
  pairs_.push_back(std::move(pair));
  return Status::success();
}

Status RawLink::connect(const std::string& address, PeerMonitor& /*monitor*/) {
  if (address.size() != sizeof theirs_)
    return Status::error(Code::kMismatch, "the other end runs another version");
  std::memcpy(&theirs_, address.data(), sizeof theirs_);
  if (theirs_.magic != mine_.magic || theirs_.num_pairs != mine_.num_pairs)
    return Status::error(Code::kMismatch, "the other end runs another version");
  description_.mtu = verbs::mtu_bytes(static_cast<std::uint8_t>(std::min(mine_.mtu, theirs_.mtu)));
  for (std::uint32_t i = 0; i < options_.queue_pairs; ++i) {
    if (Status status = connect_pair(i); !status.ok()) return status;
    if (!options_.with_immediate) continue;
    if (Status status = post_receives(i, options_.rx_depth); !status.ok()) return status;
  }
  return Status::success();
}

Status RawLink::connect_pair(std::uint32_t pair) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(std::min(mine_.mtu, theirs_.mtu));
  attributes.dest_qp_num = theirs_.numbers[pair];
  attributes.rq_psn = theirs_.packet_numbers[pair];
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = kMinRnrTimer;
  attributes.ah_attr.is_global = 1;
  std::memcpy(attributes.ah_attr.grh.dgid.raw, theirs_.gid.data(), theirs_.gid.size());
  attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(port_.gid_index);
  attributes.ah_attr.grh.hop_limit = 64;
  attributes.ah_attr.grh.traffic_class = static_cast<std::uint8_t>(options_.traffic_class);
  attributes.ah_attr.dlid = theirs_.lid;
  attributes.ah_attr.sl = static_cast<std::uint8_t>(options_.service_level);
  attributes.ah_attr.port_num = port_.port;
  int error = ibv_modify_qp(pairs_[pair].get(), &attributes,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != 0) return call_failed("connecting a queue pair", error);
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = mine_.packet_numbers[pair];
  attributes.timeout = static_cast<std::uint8_t>(options_.timeout);
  attributes.retry_cnt = static_cast<std::uint8_t>(options_.retry_count);
  attributes.rnr_retry = 7;
  attributes.max_rd_atomic = 1;
  error = ibv_modify_qp(pairs_[pair].get(), &attributes,
                        IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_MAX_QP_RD_ATOMIC);
  return error == 0 ? Status::success() : call_failed("connecting a queue pair", error);
}

Status RawLink::post_receives(std::uint32_t pair, std::uint32_t count) {
  ibv_recv_wr request{};
  request.wr_id = pair;
  ibv_recv_wr* refused = nullptr;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (const int error = ibv_post_recv(pairs_[pair].get(), &request, &refused); error != 0)
      return call_failed("posting receives", error);
  }
  return Status::success();
}

ibv_send_wr RawLink::write_request(std::uint32_t pair, std::size_t bytes, ibv_sge& piece) const {
  piece = {.addr = reinterpret_cast<std::uintptr_t>(pages_.all().data()) + pair * buffer_bytes_,
           .length = static_cast<std::uint32_t>(bytes),
           .lkey = memory_->lkey};
  ibv_send_wr request{};
  request.wr_id = pair;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = options_.with_immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  request.wr.rdma.remote_addr = theirs_.target + pair * buffer_bytes_;
  request.wr.rdma.rkey = theirs_.key;
  if (bytes <= inline_bytes_) request.send_flags = IBV_SEND_INLINE;
  return request;
}

/// Ends a stream: notifies a receiver of immediates, and completes the messages without a signalled
/// completion.
Status RawLink::end_stream() {
  for (auto& pair : pairs_) {
    ibv_send_wr request{}, *refused = nullptr;
    request.wr_id = kEndId;
    request.opcode = options_.with_immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_SIGNALED;
    request.imm_data = htonl(kEnd);
    request.wr.rdma.remote_addr = theirs_.target;
    request.wr.rdma.rkey = theirs_.key;
    if (const int error = ibv_post_send(pair.get(), &request, &refused); error != 0)
      return call_failed("posting", error);
  }
  return Status::success();
}

/// One stream over all queue pairs. It polls and posts in one loop, so that its functions report errors by a
/// flag and error_ instead of a Status per call.
class RawLink::StreamLoop {
 public:
  StreamLoop(RawLink& link, const Stream& run, PeerMonitor& monitor);
  Result<Samples> run();

 private:
  /// The requests of one queue pair.
  struct Flow {
    std::vector<ibv_send_wr> requests;  ///< posted as one list
    std::vector<ibv_sge> pieces;
    std::uint64_t posted = 0, done = 0;
  };
  void prepare(std::uint32_t pair);
  /// Posts messages of a queue pair up to its depth.
  bool post(std::uint32_t pair);
  void mark_signalled(const Flow& flow, ibv_send_wr& request) const;
  /// Handle completions and add their number to `found`.
  bool poll_sent(int& found);
  bool poll_received(int& found);
  /// Ends the stream once all its messages are complete.
  bool end_if_done();
  bool failed(Status error) {
    error_ = std::move(error);
    return false;
  }

  RawLink& link_;
  const Stream& stream_;
  PeerMonitor& monitor_;
  Slots slots_;
  Phases phases_;
  std::uint64_t wanted_;  ///< messages of each queue pair
  std::uint32_t list_;
  bool moderated_;
  std::vector<Flow> flows_;
  Samples samples_;
  std::array<ibv_wc, kPollBatch> completions_{};
  std::uint64_t posted_ = 0, done_ = 0, now_ = 0;
  bool stopping_ = false, sending_;
  std::uint32_t ends_sent_ = 0, ends_to_come_;
  Status error_;
};

RawLink::StreamLoop::StreamLoop(RawLink& link, const Stream& run, PeerMonitor& monitor)
    : link_(link),
      stream_(run),
      monitor_(monitor),
      slots_(run.bytes),
      phases_(run.phases),
      wanted_(phases_.count()),
      list_(link.options_.post_list),
      moderated_(list_ == 1),
      flows_(link.options_.queue_pairs),
      sending_(run.sends),
      ends_to_come_(run.receives && link.options_.with_immediate ? link.options_.queue_pairs : 0) {
  const std::uint32_t num_pairs = link.options_.queue_pairs;
  for (std::uint32_t pair = 0; pair < num_pairs; ++pair) prepare(pair);
  if (!run.stamps) return;
  samples_.posted.reserve(wanted_ * num_pairs);
  samples_.completions.reserve(wanted_ * num_pairs / link.options_.cq_moderation + num_pairs);
}

void RawLink::StreamLoop::prepare(std::uint32_t pair) {
  Flow& flow = flows_[pair];
  flow.requests.resize(list_);
  flow.pieces.resize(list_);
  for (std::uint32_t k = 0; k < list_; ++k) {
    flow.requests[k] = link_.write_request(pair, stream_.bytes, flow.pieces[k]);
    flow.requests[k].next = k + 1 < list_ ? &flow.requests[k + 1] : nullptr;
    flow.pieces[k].addr += slots_.offset(k);
    flow.requests[k].wr.rdma.remote_addr += slots_.offset(k);
  }
  flow.requests.back().send_flags |= IBV_SEND_SIGNALED;
}

Result<Samples> RawLink::StreamLoop::run() {
  now_ = ticks();
  phases_.start(now_, samples_);
  if (!phases_.timed()) samples_.begin = now_;
  while (sending_ || ends_to_come_ > 0) {
    int found = 0;
    if (sending_) {
      for (std::uint32_t pair = 0; pair < flows_.size(); ++pair)
        if (!post(pair)) return fail(std::move(error_));
      if (!poll_sent(found) || !end_if_done()) return fail(std::move(error_));
    }
    if (ends_to_come_ > 0 && !poll_received(found)) return fail(std::move(error_));
    if (found == 0 && monitor_.idle()) return fail(monitor_.status());
  }
  return std::move(samples_);
}

void RawLink::StreamLoop::mark_signalled(const Flow& flow, ibv_send_wr& request) const {
  const bool signal = (flow.posted + 1) % link_.options_.cq_moderation == 0 ||
                      (!phases_.timed() && flow.posted + 1 == wanted_);
  request.send_flags = signal ? request.send_flags | IBV_SEND_SIGNALED
                              : request.send_flags & ~static_cast<unsigned>(IBV_SEND_SIGNALED);
}

bool RawLink::StreamLoop::post(std::uint32_t pair) {
  Flow& flow = flows_[pair];
  while (!stopping_ && (phases_.timed() || flow.posted < wanted_) &&
         flow.posted + list_ <= link_.options_.tx_depth + flow.done) {
    ibv_send_wr& request = flow.requests.front();
    if (moderated_) mark_signalled(flow, request);
    if (stream_.stamps) {
      now_ = ticks();
      samples_.posted.insert(samples_.posted.end(), list_, now_);
    }
    ibv_send_wr* refused = nullptr;
    if (const int error = ibv_post_send(link_.pairs_[pair].get(), &request, &refused); error != 0)
      return failed(link_.call_failed("posting", error));
    flow.posted += list_;
    posted_ += list_;
    if (moderated_ && slots_.count() > 1) {
      const std::size_t offset = pair * link_.buffer_bytes_ + slots_.offset(flow.posted);
      flow.pieces[0].addr = reinterpret_cast<std::uintptr_t>(link_.pages_.all().data()) + offset;
      request.wr.rdma.remote_addr = link_.theirs_.target + offset;
    }
  }
  return true;
}

bool RawLink::StreamLoop::poll_sent(int& found) {
  const int taken = ibv_poll_cq(link_.sent_.get(), kPollBatch, completions_.data());
  if (taken < 0) return failed(link_.call_failed("polling", errno));
  found += taken;
  if (phases_.timed()) now_ = ticks();
  for (int k = 0; k < taken; ++k) {
    const ibv_wc& completion = completions_[static_cast<std::size_t>(k)];
    if (completion.status != IBV_WC_SUCCESS) return failed(link_.completion_failed(completion, monitor_));
    if (completion.wr_id == kEndId) {
      if (--ends_sent_ == 0) sending_ = false;
      continue;
    }
    Flow& flow = flows_[completion.wr_id];
    const std::uint64_t more = std::min<std::uint64_t>(link_.options_.cq_moderation, flow.posted - flow.done);
    flow.done += more;
    done_ += more;
    if (phases_.timed()) phases_.add(more, now_, samples_);
    if (stream_.stamps) samples_.completions.push_back({done_, ticks()});
  }
  return true;
}

bool RawLink::StreamLoop::end_if_done() {
  stopping_ = stopping_ || (phases_.timed() && phases_.over(now_));
  // With -D the last messages may have no signalled completion; the end of the stream completes them.
  const bool all =
      phases_.timed()
          ? stopping_ && posted_ - done_ < std::uint64_t{link_.options_.cq_moderation} * flows_.size()
          : done_ == wanted_ * flows_.size();
  if (!all || !sending_ || ends_sent_ > 0) return true;
  if (!phases_.timed()) {
    samples_.end = ticks();
    samples_.count = done_;
  }
  if (!link_.options_.with_immediate && !phases_.timed()) {
    sending_ = false;
    return true;
  }
  if (Status status = link_.end_stream(); !status.ok()) return failed(std::move(status));
  ends_sent_ = static_cast<std::uint32_t>(flows_.size());
  return true;
}

bool RawLink::StreamLoop::poll_received(int& found) {
  const int taken = ibv_poll_cq(link_.received_.get(), kPollBatch, completions_.data());
  if (taken < 0) return failed(link_.call_failed("polling", errno));
  found += taken;
  for (int k = 0; k < taken; ++k) {
    const ibv_wc& completion = completions_[static_cast<std::size_t>(k)];
    if (completion.status != IBV_WC_SUCCESS) return failed(link_.completion_failed(completion, monitor_));
    if (Status status = link_.post_receives(static_cast<std::uint32_t>(completion.wr_id), 1); !status.ok())
      return failed(std::move(status));
    if (ntohl(completion.imm_data) == kEnd) --ends_to_come_;
  }
  return true;
}

Result<Samples> RawLink::stream(const Stream& run, PeerMonitor& monitor) {
  return StreamLoop(*this, run, monitor).run();
}

Result<Samples> RawLink::ping_pong(const PingPong& run, PeerMonitor& monitor) {
  ibv_sge piece{};
  ibv_send_wr request = write_request(0, run.bytes, piece);
  request.send_flags |= IBV_SEND_SIGNALED;
  // The last byte counts the messages, because RDMA writes arrive from front to back.
  auto* const own = reinterpret_cast<volatile unsigned char*>(source(0).data() + run.bytes - 1);
  auto* const other = reinterpret_cast<volatile unsigned char*>(target(0).data() + run.bytes - 1);
  Phases phases = run.phases;
  const std::uint64_t wanted = phases.count();
  Samples samples;
  if (!phases.timed()) samples.posted.reserve(wanted);
  std::uint64_t posted = 0, arrived = 0;
  ibv_wc completion{};
  phases.start(ticks(), samples);
  Status problem;
  const auto take_immediate = [&]() -> int {
    const int found = ibv_poll_cq(received_.get(), 1, &completion);
    if (found == 0) return 0;
    problem = found < 0                             ? call_failed("polling", errno)
              : completion.status != IBV_WC_SUCCESS ? completion_failed(completion, monitor)
                                                    : post_receives(0, 1);
    return problem.ok() ? 1 : -1;
  };
  // With -D the end that sends first ends the run: its last message has 0 instead of the count.
  bool last_seen = false;
  while (phases.timed() ? !last_seen : posted < wanted || arrived < wanted) {
    if ((posted > 0 || !run.first) && (phases.timed() || arrived < wanted)) {
      ++arrived;
      if (options_.with_immediate) {
        int found = 0;
        while ((found = take_immediate()) == 0) {
          if (monitor.idle()) return fail(monitor.status());
        }
        if (found < 0) return fail(std::move(problem));
      }
      const auto expected = static_cast<unsigned char>(1 + arrived % 255);
      unsigned char seen = *other;
      while (seen != expected && !(phases.timed() && seen == 0)) {
        if (monitor.idle()) return fail(monitor.status());
        seen = *other;
      }
      last_seen = phases.timed() && seen == 0;
      if (last_seen && run.first) break;
    }
    if (phases.timed() || posted < wanted) {
      const bool out_of_time = phases.exchange(posted, ticks(), samples);
      const bool last = last_seen || (run.first && out_of_time);
      *own = last ? 0 : static_cast<unsigned char>(1 + (posted + 1) % 255);
      ++posted;
      ibv_send_wr* refused = nullptr;
      if (const int error = ibv_post_send(pairs_[0].get(), &request, &refused); error != 0)
        return fail(call_failed("posting", error));
      int found = 0;
      while ((found = ibv_poll_cq(sent_.get(), 1, &completion)) == 0) {
        if (monitor.idle()) return fail(monitor.status());
      }
      if (found < 0) return fail(call_failed("polling", errno));
      if (completion.status != IBV_WC_SUCCESS) return fail(completion_failed(completion, monitor));
    }
  }
  if (!phases.timed()) samples.count = posted;
  return samples;
}

EndDescription RawLink::describe_end(const RawAddress& end) const {
  EndDescription end_description{
      .lid = end.lid, .pairs = {}, .key = end.key, .addresses = {}, .gid = end.gid};
  for (std::size_t i = 0; i < options_.queue_pairs; ++i) {
    end_description.pairs.push_back({end.numbers[i], end.packet_numbers[i]});
    end_description.addresses.push_back(end.target + i * buffer_bytes_);
  }
  return end_description;
}

}  // namespace

Result<std::unique_ptr<WriteLink>> make_raw_link(const WriteOptions& options, const verbs::PortChoice& port) {
  return RawLink::create(options, port);
}

}  // namespace hips::write
