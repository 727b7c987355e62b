#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/hips-write/link.hpp"
#include "tools/hips-write/pages.hpp"
#include "tools/hips-write/slots.hpp"
#include "tools/hips-write/ticks.hpp"
#include "transports/verbs/endpoint.hpp"

namespace hips::write {
namespace {

using transport::Event;
using transport::Verb;
using transport::WorkRequest;

constexpr transport::PeerId kPeer = 0;
constexpr std::uint32_t kEndToken = 0xffffffffU;  ///< token of the last message of a run
constexpr std::uint32_t kHelloToken = 0xfffffffeU;
constexpr std::size_t kMaxPostedAtOnce = 64;  ///< requests of one post()

class PutLink final : public WriteLink {
 public:
  static Result<std::unique_ptr<WriteLink>> create(const WriteOptions& options,
                                                   const verbs::PortChoice& port);

  [[nodiscard]] std::string address() const override;
  Status connect(const std::string& address, PeerMonitor& monitor) override;
  Result<Samples> stream(const Stream& run, PeerMonitor& monitor) override;
  Result<Samples> ping_pong(const PingPong& run, PeerMonitor& monitor) override;

  [[nodiscard]] PortDescription port() const override { return description_; }
  [[nodiscard]] EndDescription local() const override { return describe_end(mine_, region_.remote); }
  [[nodiscard]] EndDescription remote() const override { return describe_end(theirs_, their_region_); }
  [[nodiscard]] std::span<std::byte> source(std::uint32_t /*pair*/) override {
    return pages_.all().subspan(buffer_bytes_);
  }
  [[nodiscard]] std::span<std::byte> target(std::uint32_t /*pair*/) override {
    return pages_.all().first(buffer_bytes_);
  }
  [[nodiscard]] std::uint32_t num_buffers() const override { return 1; }

 private:
  explicit PutLink(const WriteOptions& options)
      : options_(options),
        buffer_bytes_(Slots::buffer_bytes(options.max_bytes())),
        pages_(2 * buffer_bytes_) {}
  class StreamLoop;
  Status start(const verbs::PortChoice& port);
  [[nodiscard]] verbs::VerbsOptions settings() const;
  Status check_inline(const verbs::PortChoice& port) const;
  Status exchange_hello(PeerMonitor& monitor);
  Status read_inline();
  [[nodiscard]] Status inline_error(std::uint32_t available) const;
  [[nodiscard]] EndDescription describe_end(const verbs::VerbsAddress& end,
                                            const transport::RemoteRegion& region) const;
  [[nodiscard]] WorkRequest put(std::size_t bytes) const;

  WriteOptions options_;
  PortDescription description_;
  std::string port_name_;
  std::size_t buffer_bytes_;
  Pages pages_;  ///< the receive buffer, then the send buffer
  std::unique_ptr<transport::Transport> transport_;
  transport::Region region_;
  transport::RemoteRegion their_region_;
  verbs::VerbsAddress mine_, theirs_;
};

Result<std::unique_ptr<WriteLink>> PutLink::create(const WriteOptions& options,
                                                   const verbs::PortChoice& port) {
  std::unique_ptr<PutLink> link(new PutLink(options));
  if (Status status = link->start(port); !status.ok()) return fail(with_flag_names(std::move(status)));
  return link;
}

Status PutLink::start(const verbs::PortChoice& port) {
  auto description = describe_port(options_, port);
  if (!description) return std::move(description).error();
  description_ = *std::move(description);
  port_name_ = port.name;
  if (Status status = check_inline(port); !status.ok()) return status;
  auto transport = verbs::create(port, settings());
  if (!transport) return std::move(transport).error();
  transport_ = *std::move(transport);
  auto region = transport_->register_memory({.address = pages_.all().data(), .bytes = pages_.all().size()});
  if (!region) return std::move(region).error();
  region_ = *region;
  auto address = transport_->open(kPeer);
  if (!address) return std::move(address).error();
  if (address->size() != sizeof mine_)
    return Status::error(Code::kInternal, "the size of the transport's address has changed");
  std::memcpy(&mine_, address->data(), sizeof mine_);
  return read_inline();
}

verbs::VerbsOptions PutLink::settings() const {
  verbs::VerbsOptions settings;
  settings.traffic_class = static_cast<std::uint8_t>(options_.traffic_class);
  settings.service_level = static_cast<std::uint8_t>(options_.service_level);
  settings.timeout = static_cast<std::uint8_t>(options_.timeout);
  settings.retry_count = static_cast<std::uint8_t>(options_.retry_count);
  settings.pairs_per_peer = static_cast<std::int32_t>(options_.queue_pairs);
  settings.cm = options_.rdma_cm;
  settings.max_mtu = options_.mtu;
  if (options_.inline_bytes >= 0) settings.inline_bytes = static_cast<std::uint32_t>(options_.inline_bytes);
  return settings;
}

/// Checks -I before rdma_cm creates the queue pairs, which it does while it connects: with a queue pair that
/// is not connected.
Status PutLink::check_inline(const verbs::PortChoice& port) const {
  // iWARP devices have no queue pairs without rdma_cm.
  if (!options_.rdma_cm || options_.inline_bytes < 0 || port.iwarp) return Status::success();
  verbs::VerbsOptions direct = settings();
  direct.cm = false;
  auto transport = verbs::create(port, direct);
  if (!transport) return std::move(transport).error();
  if (auto address = (*transport)->open(kPeer); !address) return std::move(address).error();
  const auto available = verbs::inline_bytes(**transport, kPeer);
  (*transport)->close(kPeer);
  if (!available || options_.inline_bytes <= static_cast<std::int64_t>(*available)) return Status::success();
  return inline_error(*available);
}

Status PutLink::inline_error(std::uint32_t available) const {
  return Status::error(Code::kInvalidArgument, fmt::format("-I {} is too large; {} has at most {}",
                                                           options_.inline_bytes, port_name_, available));
}

/// Reads the inline bytes of the queue pairs, which may be fewer than requested.
Status PutLink::read_inline() {
  const auto inline_bytes = verbs::inline_bytes(*transport_, kPeer);
  if (!inline_bytes) return Status::success();  // rdma_cm has not created them yet
  description_.inline_bytes = *inline_bytes;
  if (options_.inline_bytes <= static_cast<std::int64_t>(*inline_bytes)) return Status::success();
  return inline_error(*inline_bytes);
}

std::string PutLink::address() const {
  std::string text(reinterpret_cast<const char*>(&mine_), sizeof mine_);
  text.append(reinterpret_cast<const char*>(&region_.remote), sizeof region_.remote);
  return text;
}

Status PutLink::connect(const std::string& address, PeerMonitor& monitor) {
  if (address.size() != sizeof theirs_ + sizeof their_region_)
    return Status::error(Code::kMismatch, "the other end runs another version");
  std::memcpy(&theirs_, address.data(), sizeof theirs_);
  std::memcpy(&their_region_, address.data() + sizeof theirs_, sizeof their_region_);
  description_.mtu = 128U << std::min(mine_.mtu, theirs_.mtu);
  const auto bytes = std::as_bytes(std::span(address)).first(sizeof theirs_);
  if (Status status = transport_->connect(kPeer, bytes); !status.ok())
    return with_flag_names(std::move(status));
  return exchange_hello(monitor);
}

/// Exchanges a message in each direction: rdma_cm connects while the transport is polled, and an unreachable
/// end is detected now.
Status PutLink::exchange_hello(PeerMonitor& monitor) {
  WorkRequest hello = put(0);
  hello.token = kHelloToken;
  bool posted = false, done = false, arrived = false;
  const std::int64_t deadline_ns = monotonic_ns() + 10'000'000'000;
  std::array<Event, 8> events;
  while (!done || !arrived) {
    if (!posted) posted = transport_->post({&hello, 1}) == 1;
    const std::size_t count = transport_->poll(events);
    for (std::size_t i = 0; i < count; ++i) {
      if (!events[i].error.ok()) return with_flag_names(std::move(events[i].error));
      done = done || events[i].kind == Event::Kind::kCompletion;
      arrived = arrived || events[i].kind == Event::Kind::kArrival;
    }
    if (count == 0 && monitor.idle()) return monitor.status();
    if (monotonic_ns() > deadline_ns) {
      return Status::error(
          Code::kPeerLost,
          fmt::format("{} does not answer over {} within 10 s, although TCP works; check the "
                      "RDMA addresses (-x) and whether the switches forward RDMA packets",
                      monitor.control().peer(), description_.device));
    }
  }
  return read_inline();
}

WorkRequest PutLink::put(std::size_t bytes) const {
  WorkRequest request;
  request.verb = Verb::kPutNotify;
  request.peer = kPeer;
  request.pieces[0] = {
      .address = pages_.all().data() + buffer_bytes_, .bytes = bytes, .memory = region_.local};
  request.num_pieces = bytes == 0 ? 0 : 1;
  request.remote = &their_region_;
  return request;
}

/// One stream of notified puts, which polls and posts in one loop.
class PutLink::StreamLoop {
 public:
  StreamLoop(PutLink& link, const Stream& run, PeerMonitor& monitor);
  Result<Samples> run();

 private:
  /// Posts as many messages as the depth and the transport allow. Returns whether any was posted.
  bool post();
  /// Handles an event. Returns false, and sets error_, if it is an error.
  bool take(Event& event);
  /// Posts the end of the stream once all its messages are complete.
  void end_if_done();

  PutLink& link_;
  const Stream& stream_;
  PeerMonitor& monitor_;
  Slots slots_;
  Phases phases_;
  std::uint64_t wanted_, depth_;
  std::size_t list_, max_posted_;  ///< max_posted_: requests of one post()
  std::vector<WorkRequest> requests_;
  WorkRequest end_;
  Samples samples_;
  std::uint64_t posted_ = 0, done_ = 0, now_ = 0;
  bool stopping_ = false, sending_, receiving_, end_posted_ = false;
  Status error_;
};

PutLink::StreamLoop::StreamLoop(PutLink& link, const Stream& run, PeerMonitor& monitor)
    : link_(link),
      stream_(run),
      monitor_(monitor),
      slots_(run.bytes),
      phases_(run.phases),
      wanted_(phases_.count() * link.options_.queue_pairs),
      depth_(std::uint64_t{link.options_.tx_depth} * link.options_.queue_pairs),
      list_(link.options_.post_list),
      max_posted_(std::max<std::size_t>(list_, std::min<std::size_t>(kMaxPostedAtOnce, depth_ / 2))),
      requests_(max_posted_, link.put(run.bytes)),
      end_(link.put(0)),
      sending_(run.sends),
      receiving_(run.receives) {
  end_.token = kEndToken;
  if (!run.stamps) return;
  samples_.posted.reserve(wanted_);
  samples_.completions.reserve(wanted_ / link.options_.cq_moderation + 1);
}

Result<Samples> PutLink::StreamLoop::run() {
  std::array<Event, 64> events;
  now_ = ticks();
  phases_.start(now_, samples_);
  if (!phases_.timed()) samples_.begin = now_;
  while (sending_ || receiving_) {
    const bool busy = sending_ && !stopping_ && (phases_.timed() || posted_ < wanted_) && post();
    const std::size_t found = link_.transport_->poll(events);
    if (phases_.timed()) now_ = ticks();
    for (std::size_t i = 0; i < found; ++i)
      if (!take(events[i])) return fail(std::move(error_));
    if (sending_ && !end_posted_) end_if_done();
    if (found == 0 && !busy && monitor_.idle()) return fail(monitor_.status());
  }
  return std::move(samples_);
}

bool PutLink::StreamLoop::post() {
  std::uint64_t room = depth_ - (posted_ - done_);
  if (!phases_.timed()) room = std::min(room, wanted_ - posted_);
  // Whole lists. The first one may have been posted in part, if the transport accepted no more.
  const std::size_t begun = posted_ % list_;
  const std::size_t count = (begun + std::min<std::size_t>(room, max_posted_)) / list_ * list_ - begun;
  if (count == 0) return false;
  for (std::size_t i = 0; i < count; ++i) {
    WorkRequest& request = requests_[i];
    const std::uint64_t number = posted_ + i + 1;
    const std::size_t offset = slots_.offset(posted_ + i);
    request.pieces[0].address = link_.pages_.all().data() + link_.buffer_bytes_ + offset;
    request.remote_offset = offset;
    request.token = static_cast<std::uint32_t>(number & 0x7fffffffU);
    request.context = number;
    request.signalled = number % link_.options_.cq_moderation == 0 || (!phases_.timed() && number == wanted_);
  }
  if (stream_.stamps) now_ = ticks();
  const std::size_t taken = link_.transport_->post(std::span(requests_).first(count));
  if (stream_.stamps) samples_.posted.insert(samples_.posted.end(), taken, now_);
  posted_ += taken;
  return taken > 0;
}

bool PutLink::StreamLoop::take(Event& event) {
  if (event.kind == Event::Kind::kArrival) {
    if (event.token == kEndToken) receiving_ = false;
  } else if (event.kind != Event::Kind::kCompletion) {
    error_ = with_flag_names(std::move(event.error));
    return false;
  } else if (event.context == 0) {
    sending_ = false;  // the end of the stream
  } else {
    if (phases_.timed()) phases_.add(event.context - done_, now_, samples_);
    done_ = event.context;
    if (stream_.stamps) samples_.completions.push_back({done_, ticks()});
  }
  return true;
}

void PutLink::StreamLoop::end_if_done() {
  stopping_ = stopping_ || (phases_.timed() && phases_.over(now_));
  if (phases_.timed() ? !stopping_ : done_ != wanted_) return;
  if (!phases_.timed() && samples_.count == 0) {
    samples_.end = ticks();
    samples_.count = done_;
  }
  end_posted_ = link_.transport_->post({&end_, 1}) == 1;
}

Result<Samples> PutLink::stream(const Stream& run, PeerMonitor& monitor) {
  return StreamLoop(*this, run, monitor).run();
}

Result<Samples> PutLink::ping_pong(const PingPong& run, PeerMonitor& monitor) {
  WorkRequest request = put(run.bytes);
  request.signalled = false;  // the answer implies its completion
  Phases phases = run.phases;
  const std::uint64_t wanted = phases.count();
  Samples samples;
  if (!phases.timed()) samples.posted.reserve(wanted);
  std::array<Event, 8> events;
  std::uint64_t posted = 0, arrived = 0;
  phases.start(ticks(), samples);
  bool last_seen = false;
  while (phases.timed() ? !last_seen : posted < wanted || arrived < wanted) {
    if ((posted > 0 || !run.first) && (phases.timed() || arrived < wanted)) {
      const std::uint64_t before = arrived;
      while (arrived == before) {
        const std::size_t found = transport_->poll(events);
        for (std::size_t i = 0; i < found; ++i) {
          Event& event = events[i];
          if (event.kind == Event::Kind::kArrival) {
            ++arrived;
            last_seen = last_seen || event.token == kEndToken;
          } else if (event.kind != Event::Kind::kCompletion) {
            return fail(with_flag_names(std::move(event.error)));
          }
        }
        if (found == 0 && monitor.idle()) return fail(monitor.status());
      }
      if (last_seen && run.first) break;
    }
    if (phases.timed() || posted < wanted) {
      const bool out_of_time = phases.exchange(posted, ticks(), samples);
      const bool last = last_seen || (run.first && out_of_time);
      request.token = last ? kEndToken : static_cast<std::uint32_t>(posted & 0x7fffffffU);
      ++posted;
      while (transport_->post({&request, 1}) == 0) {
        const std::size_t found = transport_->poll(events);
        for (std::size_t i = 0; i < found; ++i) {
          if (events[i].kind == Event::Kind::kArrival) ++arrived;
          if (!events[i].error.ok()) return fail(with_flag_names(std::move(events[i].error)));
        }
        if (found == 0 && monitor.idle()) return fail(monitor.status());
      }
    }
  }
  if (!phases.timed()) samples.count = posted;
  return samples;
}

EndDescription PutLink::describe_end(const verbs::VerbsAddress& end,
                                     const transport::RemoteRegion& region) const {
  EndDescription end_description{.lid = end.lid,
                                 .pairs = {},
                                 .key = static_cast<std::uint32_t>(region.key[1]),
                                 .addresses = {},
                                 .gid = end.gid};
  for (std::size_t i = 0; i < options_.queue_pairs; ++i) {
    end_description.pairs.push_back({end.queue_pairs[i], end.packet_numbers[i]});
    end_description.addresses.push_back(region.key[0]);
  }
  return end_description;
}

}  // namespace

Result<std::unique_ptr<WriteLink>> make_put_link(const WriteOptions& options, const verbs::PortChoice& port) {
  return PutLink::create(options, port);
}

}  // namespace hips::write
