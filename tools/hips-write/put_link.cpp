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
constexpr std::size_t kMostAtOnce = 64;  ///< requests of one post()

class PutLink final : public Link {
 public:
  static Result<std::unique_ptr<Link>> create(const Options& options, const verbs::PortChoice& port);

  [[nodiscard]] std::string address() const override;
  Status connect(const std::string& address, Watch& watch) override;
  Result<Samples> stream(const Stream& run, Watch& watch) override;
  Result<Samples> ping_pong(const PingPong& run, Watch& watch) override;

  [[nodiscard]] PortWords port() const override { return words_; }
  [[nodiscard]] EndWords local() const override { return words_of_end(mine_, region_.remote); }
  [[nodiscard]] EndWords remote() const override { return words_of_end(theirs_, their_region_); }
  [[nodiscard]] std::span<std::byte> source(std::uint32_t /*pair*/) override {
    return pages_.all().subspan(buffer_bytes_);
  }
  [[nodiscard]] std::span<std::byte> target(std::uint32_t /*pair*/) override {
    return pages_.all().first(buffer_bytes_);
  }
  [[nodiscard]] std::uint32_t num_buffers() const override { return 1; }

 private:
  explicit PutLink(const Options& options)
      : options_(options),
        buffer_bytes_(Slots::buffer_bytes(options.most_bytes())),
        pages_(2 * buffer_bytes_) {}
  Status start(const verbs::PortChoice& port);
  Status settle(Watch& watch);
  Status read_inline();
  [[nodiscard]] EndWords words_of_end(const verbs::WireAddress& end,
                                      const transport::RemoteRegion& region) const;
  [[nodiscard]] WorkRequest put(std::size_t bytes) const;

  Options options_;
  PortWords words_;
  std::string port_name_;
  std::size_t buffer_bytes_;
  Pages pages_;  ///< what comes in, then what goes out
  std::unique_ptr<transport::Transport> transport_;
  transport::Region region_;
  transport::RemoteRegion their_region_;
  verbs::WireAddress mine_, theirs_;
};

Result<std::unique_ptr<Link>> PutLink::create(const Options& options, const verbs::PortChoice& port) {
  std::unique_ptr<PutLink> link(new PutLink(options));
  if (Status status = link->start(port); !status.ok()) return fail(in_words_of_flags(std::move(status)));
  return link;
}

Status PutLink::start(const verbs::PortChoice& port) {
  auto words = words_of(options_, port);
  if (!words) return std::move(words).error();
  words_ = *std::move(words);
  port_name_ = port.name;
  verbs::Options settings;
  settings.traffic_class = static_cast<std::uint8_t>(options_.traffic_class);
  settings.service_level = static_cast<std::uint8_t>(options_.service_level);
  settings.timeout = static_cast<std::uint8_t>(options_.timeout);
  settings.retry_count = static_cast<std::uint8_t>(options_.retry_count);
  settings.pairs_per_peer = static_cast<std::int32_t>(options_.queue_pairs);
  settings.cm = options_.rdma_cm;
  settings.max_mtu = options_.mtu;
  if (options_.inline_bytes >= 0) settings.inline_bytes = static_cast<std::uint32_t>(options_.inline_bytes);
  auto transport = verbs::create(port, settings);
  if (!transport) return std::move(transport).error();
  transport_ = *std::move(transport);
  auto region = transport_->register_memory({.address = pages_.all().data(), .bytes = pages_.all().size()});
  if (!region) return std::move(region).error();
  region_ = *region;
  auto address = transport_->open(kPeer);
  if (!address) return std::move(address).error();
  if (address->size() != sizeof mine_)
    return Status::error(Code::kInternal, "the transport's address has another size");
  std::memcpy(&mine_, address->data(), sizeof mine_);
  return read_inline();
}

/// What the queue pairs have is printed, and may be less than was asked for.
Status PutLink::read_inline() {
  const auto inline_bytes = verbs::inline_bytes(*transport_, kPeer);
  if (!inline_bytes) return Status::success();  // rdma_cm has not made them yet
  words_.inline_bytes = *inline_bytes;
  if (options_.inline_bytes <= static_cast<std::int64_t>(*inline_bytes)) return Status::success();
  return Status::error(Code::kInvalidArgument, fmt::format("-I {} is wrong: {} takes {}",
                                                           options_.inline_bytes, port_name_, *inline_bytes));
}

std::string PutLink::address() const {
  std::string text(reinterpret_cast<const char*>(&mine_), sizeof mine_);
  text.append(reinterpret_cast<const char*>(&region_.remote), sizeof region_.remote);
  return text;
}

Status PutLink::connect(const std::string& address, Watch& watch) {
  if (address.size() != sizeof theirs_ + sizeof their_region_)
    return Status::error(Code::kMismatch, "the other end runs another version");
  std::memcpy(&theirs_, address.data(), sizeof theirs_);
  std::memcpy(&their_region_, address.data() + sizeof theirs_, sizeof their_region_);
  words_.mtu = 128U << std::min(mine_.mtu, theirs_.mtu);
  const auto bytes = std::as_bytes(std::span(address)).first(sizeof theirs_);
  if (Status status = transport_->connect(kPeer, bytes); !status.ok())
    return in_words_of_flags(std::move(status));
  return settle(watch);
}

/// A message each way: rdma_cm connects while it is polled, and an end that is not there is noticed now.
Status PutLink::settle(Watch& watch) {
  WorkRequest hello = put(0);
  hello.token = kHelloToken;
  bool posted = false, done = false, arrived = false;
  const std::int64_t deadline_ns = monotonic_ns() + 10'000'000'000;
  std::array<Event, 8> events;
  while (!done || !arrived) {
    if (!posted) posted = transport_->post({&hello, 1}) == 1;
    const std::size_t count = transport_->poll(events);
    for (std::size_t i = 0; i < count; ++i) {
      if (!events[i].error.ok()) return in_words_of_flags(std::move(events[i].error));
      done = done || events[i].kind == Event::Kind::kCompletion;
      arrived = arrived || events[i].kind == Event::Kind::kArrival;
    }
    if (count == 0 && watch.idle()) return watch.status();
    if (monotonic_ns() > deadline_ns) {
      return Status::error(Code::kPeerLost,
                           fmt::format("{} cannot be reached over {} within 10 s: the control "
                                       "connection stands, so look at the RDMA addresses (-x) and at "
                                       "what the switches let pass",
                                       watch.control().peer(), words_.device));
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

Result<Samples> PutLink::stream(const Stream& run, Watch& watch) {
  const Slots slots(run.bytes);
  Phases phases = run.phases;
  const std::uint64_t wanted = phases.count() * options_.queue_pairs;
  const std::uint64_t depth = std::uint64_t{options_.tx_depth} * options_.queue_pairs;
  const std::size_t list = options_.post_list;
  const std::size_t most = std::max<std::size_t>(list, std::min<std::size_t>(kMostAtOnce, depth / 2));
  std::vector<WorkRequest> requests(most, put(run.bytes));
  WorkRequest end = put(0);
  end.token = kEndToken;
  Samples samples;
  if (run.stamps) {
    samples.posted.reserve(wanted);
    samples.completions.reserve(wanted / options_.cq_moderation + 1);
  }
  std::array<Event, 64> events;
  std::uint64_t posted = 0, done = 0;
  bool stopping = false, sending = run.sends, receiving = run.receives, end_posted = false;
  const std::uint64_t start = ticks();
  phases.start(start, samples);
  if (!phases.timed()) samples.begin = start;
  std::uint64_t now = start;
  while (sending || receiving) {
    bool busy = false;
    if (sending && !stopping && (phases.timed() || posted < wanted)) {
      std::uint64_t room = depth - (posted - done);
      if (!phases.timed()) room = std::min(room, wanted - posted);
      // Whole lists, of which the front one may be posted in part: the transport took no more.
      const std::size_t begun = posted % list;
      const std::size_t count = (begun + std::min<std::size_t>(room, most)) / list * list - begun;
      for (std::size_t i = 0; i < count; ++i) {
        WorkRequest& request = requests[i];
        const std::uint64_t number = posted + i + 1;
        const std::size_t offset = slots.offset(posted + i);
        request.pieces[0].address = pages_.all().data() + buffer_bytes_ + offset;
        request.remote_offset = offset;
        request.token = static_cast<std::uint32_t>(number & 0x7fffffffU);
        request.context = number;
        request.signalled = number % options_.cq_moderation == 0 || (!phases.timed() && number == wanted);
      }
      if (count > 0) {
        if (run.stamps) now = ticks();
        const std::size_t taken = transport_->post(std::span(requests).first(count));
        if (run.stamps) samples.posted.insert(samples.posted.end(), taken, now);
        posted += taken;
        busy = taken > 0;
      }
    }
    const std::size_t found = transport_->poll(events);
    if (phases.timed()) now = ticks();
    for (std::size_t i = 0; i < found; ++i) {
      Event& event = events[i];
      if (event.kind == Event::Kind::kArrival) {
        if (event.token == kEndToken) receiving = false;
      } else if (event.kind != Event::Kind::kCompletion) {
        return fail(in_words_of_flags(std::move(event.error)));
      } else if (event.context == 0) {
        sending = false;  // the end
      } else {
        if (phases.timed()) phases.add(event.context - done, now, samples);
        done = event.context;
        if (run.stamps) samples.completions.push_back({done, ticks()});
      }
    }
    if (sending && !end_posted) {
      stopping = stopping || (phases.timed() && phases.over(now));
      if (phases.timed() ? stopping : done == wanted) {
        if (!phases.timed() && samples.count == 0) {
          samples.end = ticks();
          samples.count = done;
        }
        end_posted = transport_->post({&end, 1}) == 1;
      }
    }
    if (found == 0 && !busy && watch.idle()) return fail(watch.status());
  }
  return samples;
}

Result<Samples> PutLink::ping_pong(const PingPong& run, Watch& watch) {
  WorkRequest request = put(run.bytes);
  request.signalled = false;  // the answer says enough
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
            return fail(in_words_of_flags(std::move(event.error)));
          }
        }
        if (found == 0 && watch.idle()) return fail(watch.status());
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
          if (!events[i].error.ok()) return fail(in_words_of_flags(std::move(events[i].error)));
        }
        if (found == 0 && watch.idle()) return fail(watch.status());
      }
    }
  }
  if (!phases.timed()) samples.count = posted;
  return samples;
}

EndWords PutLink::words_of_end(const verbs::WireAddress& end, const transport::RemoteRegion& region) const {
  EndWords words{.lid = end.lid,
                 .pairs = {},
                 .key = static_cast<std::uint32_t>(region.key[1]),
                 .addresses = {},
                 .gid = end.gid};
  for (std::size_t i = 0; i < options_.queue_pairs; ++i) {
    words.pairs.push_back({end.queue_pairs[i], end.packet_numbers[i]});
    words.addresses.push_back(region.key[0]);
  }
  return words;
}

}  // namespace

Result<std::unique_ptr<Link>> make_put_link(const Options& options, const verbs::PortChoice& port) {
  return PutLink::create(options, port);
}

}  // namespace hips::write
