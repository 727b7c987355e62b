#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "transports/tcp/tcp_transport.hpp"

namespace hips::tcp {

using transport::Event;
using transport::Verb;
using transport::WorkRequest;
using Kind = FrameHeader::Kind;

namespace {

/// System calls for one peer before it is the next one's turn.
constexpr int kTurnsPerPeer = 16;
/// So few peers are asked one by one: that takes less time than asking the epoll set and then the peer.
constexpr std::size_t kFewPeers = 2;
/// Between two looks at the epoll set, where whoever knocks at the door is seen.
constexpr std::uint32_t kDirectPolls = 64;

void clear_error(Event& event) {
  if (!event.error.ok()) event.error = Status::success();
}

}  // namespace

// --- Requests --------------------------------------------------------------------------------------------

std::size_t TcpTransport::post(std::span<const WorkRequest> requests) {
  std::size_t taken = 0;
  for (const WorkRequest& request : requests) {
    Endpoint* mine = endpoint(request.peer);
    if (mine == nullptr || mine->state == Endpoint::State::kOpen) [[unlikely]] {
      refuse(request.peer);
    } else if (mine->state != Endpoint::State::kBroken) {
      if (!append(*mine, request)) break;
    }
    ++taken;
  }
  for (Endpoint* mine : posted_) {
    // Where the socket is full, EPOLLOUT says when to go on.
    if ((mine->watched & EPOLLOUT) == 0) flush(*mine);
  }
  posted_.clear();
  return taken;
}

/// False: full.
bool TcpTransport::append(Endpoint& mine, const WorkRequest& request) {
  const bool get = request.verb == Verb::kGet;
  Outgoing outgoing;
  std::size_t bytes = request.into.size();
  if (!get) {
    bytes = 0;
    for (std::int32_t i = 0; i < request.num_pieces; ++i) {
      const auto& piece = request.pieces[static_cast<std::size_t>(i)];
      if (piece.bytes == 0) continue;
      outgoing.pieces[outgoing.num_pieces++] = {const_cast<std::byte*>(piece.address), piece.bytes};
      bytes += piece.bytes;
    }
    outgoing.bytes += bytes;
  }
  if (bytes > 0 && (request.remote == nullptr || request.remote_offset > request.remote->bytes ||
                    bytes > request.remote->bytes - request.remote_offset)) [[unlikely]] {
    break_endpoint(mine,
                   Status::error(Code::kInternal,
                                 fmt::format("tcp: {} bytes at offset {} of a region of {} bytes", bytes,
                                             request.remote_offset,
                                             request.remote == nullptr ? 0 : request.remote->bytes),
                                 Scope::kPeer),
                   Ending::kSilently);
    return true;
  }
  if (mine.outbox.full() || (get && !mine.outbox.may_get())) return false;
  outgoing.header.kind = get ? Kind::kGet : request.verb == Verb::kPutNotify ? Kind::kPutNotify : Kind::kPut;
  outgoing.header.token = request.token;
  outgoing.header.bytes = bytes;
  if (bytes > 0) {
    outgoing.header.memory = static_cast<std::int32_t>(request.remote->key[0]);
    outgoing.header.stamp = static_cast<std::uint32_t>(request.remote->key[1]);
    outgoing.header.offset = request.remote_offset;
  }
  outgoing.into = request.into;
  outgoing.token = request.token;
  outgoing.context = request.context;
  outgoing.signalled = request.signalled;
  mine.outbox.push(outgoing);
  if (std::find(posted_.begin(), posted_.end(), &mine) == posted_.end()) posted_.push_back(&mine);
  return true;
}

void TcpTransport::flush(Endpoint& mine) {
  if (mine.state != Endpoint::State::kConnected || mine.send_error != 0) return;
  std::uint32_t events = EPOLLIN;
  switch (mine.outbox.flush(mine.fd.get(), mine.send_error)) {
    case Outbox::Sent::kAll:
      break;
    case Outbox::Sent::kFull:
      events |= EPOLLOUT;
      break;
    case Outbox::Sent::kBroken:
      // What the peer sent before it went may still be unread; its end comes behind that.
      set_ready(mine);
      break;
  }
  watch(mine, events);
  if (mine.outbox.done() != nullptr) set_finished(mine);
}

void TcpTransport::set_ready(Endpoint& mine) {
  if (!std::exchange(mine.ready, true)) ready_.push_back(&mine);
}

void TcpTransport::set_finished(Endpoint& mine) {
  if (!std::exchange(mine.finished, true)) finished_.push_back(&mine);
}

// --- Frames ----------------------------------------------------------------------------------------------

void TcpTransport::begin_frame(Endpoint& mine, const FrameHeader& header) {
  const auto wrong = [&](std::string_view what) {
    break_endpoint(mine, Status::error(Code::kInternal,
                                       fmt::format("tcp: {}: {} sent {}", options_.device, mine.name, what),
                                       Scope::kPeer));
  };
  switch (header.kind) {
    case Kind::kPut:
    case Kind::kPutNotify: {
      if (header.bytes > 0) {
        if (memory_.is_gone(header)) [[unlikely]] {
          mine.inbox.expect_dropped(header.bytes);
        } else {
          auto payload = memory_.find(header);
          if (!payload) return wrong(payload.error().message);
          mine.inbox.expect(*payload);
        }
      }
      mine.frame = header;
      return;
    }
    case Kind::kGet: {
      Outgoing answer{.header = header};
      answer.header.kind = Kind::kGetReply;
      if (header.bytes > 0) {
        auto source = memory_.find(header);
        if (!source) return wrong("a request for " + source.error().message);
        answer.pieces[answer.num_pieces++] = {source->data(), source->size()};
        answer.bytes += source->size();
      }
      if (!mine.outbox.push_answer(answer))
        return wrong(fmt::format("more than {} requests for memory at a time", kMaxGets));
      if ((mine.watched & EPOLLOUT) == 0) flush(mine);
      return;
    }
    case Kind::kGetReply: {
      const Outgoing* get = mine.outbox.oldest_get();
      if (get == nullptr || get->into.size() != header.bytes)
        return wrong(fmt::format("{} bytes that nobody asked for", header.bytes));
      mine.inbox.expect(get->into);
      mine.frame = header;
      return;
    }
    case Kind::kGoodbye:
      break_endpoint(mine,
                     Status::error(Code::kPeerLost,
                                   fmt::format("tcp: {}: {} closed its endpoint", options_.device, mine.name),
                                   Scope::kPeer));
      return;
    case Kind::kNone:
      break;
  }
  wrong(fmt::format("a frame of the unknown kind {}", static_cast<std::uint32_t>(header.kind)));
}

/// Reads from one peer until nothing is there, its turns are over, or `events` is full; in the first case it
/// is ready no more.
std::size_t TcpTransport::serve(Endpoint& mine, std::span<Event> events) {
  std::size_t filled = 0;
  bool drained = false;
  for (int turns = 0; turns < kTurnsPerPeer;) {
    if (mine.state == Endpoint::State::kBroken) break;
    if (mine.state == Endpoint::State::kConnecting) {
      if (hear_hello(mine)) continue;
    } else if (!mine.inbox.payload_under_way()) {
      if (mine.frame.kind == Kind::kPutNotify) {
        if (filled == events.size()) return filled;
        Event& event = events[filled++];
        event.kind = Event::Kind::kArrival;
        event.peer = mine.peer;
        event.token = mine.frame.token;
        event.context = 0;
        clear_error(event);
      } else if (mine.frame.kind == Kind::kGetReply) {
        mine.outbox.get_answered();
        if (mine.outbox.done() != nullptr) set_finished(mine);
      }
      mine.frame.kind = Kind::kNone;
      if (const auto header = mine.inbox.next()) {
        begin_frame(mine, *header);
        continue;
      }
    }
    if (drained) break;
    ++turns;
    int error = 0;
    switch (mine.inbox.receive(mine.fd.get(), error)) {
      case Inbox::Got::kSome:
        if (turns == kTurnsPerPeer) return filled;
        continue;
      case Inbox::Got::kAll:
        drained = true;
        // Its frames count, however many turns it had.
        turns = 0;
        continue;
      case Inbox::Got::kNothing:
        break;
      case Inbox::Got::kEnd:
        connection_ended(mine, error);
        break;
    }
    break;
  }
  mine.ready = false;
  return filled;
}

// --- Events ----------------------------------------------------------------------------------------------

void TcpTransport::look_at_sockets() {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const auto number = static_cast<std::int32_t>(event.data.u64 & 0xffffffff);
    switch (static_cast<Watched>(event.data.u64 >> 32)) {
      case Watched::kListener:
        take_strangers();
        break;
      case Watched::kStranger:
        hear_stranger(number);
        break;
      case Watched::kEndpoint: {
        Endpoint* mine = endpoint(number);
        if (mine == nullptr || mine->state == Endpoint::State::kBroken) break;
        if (mine->state == Endpoint::State::kConnecting && !mine->said_hello) {
          say_hello(*mine);
          break;
        }
        if ((event.events & EPOLLERR) != 0 && mine->outbox.awaits_release()) {
          mine->outbox.look_for_releases(mine->fd.get());
          if (mine->outbox.done() != nullptr) set_finished(*mine);
        }
        if ((event.events & EPOLLOUT) != 0) flush(*mine);
        if ((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) set_ready(*mine);
        break;
      }
    }
  }
}

bool TcpTransport::ask_few_peers() {
  if (endpoints_.size() > kFewPeers || ++direct_polls_ % kDirectPolls == 0) return false;
  bool any = false;
  for (const auto& mine : endpoints_) {
    if (mine == nullptr || mine->state == Endpoint::State::kBroken) continue;
    if (mine->state != Endpoint::State::kConnected || mine->watched != EPOLLIN) return false;
    // What the kernel releases is an event of the set.
    if (mine->outbox.awaits_release()) return false;
    any = true;
  }
  if (!any) return false;
  for (const auto& mine : endpoints_) {
    if (mine != nullptr && mine->state == Endpoint::State::kConnected) set_ready(*mine);
  }
  return true;
}

std::size_t TcpTransport::take_completions(std::span<Event> events) {
  std::size_t filled = 0;
  while (filled < events.size() && !finished_.empty()) {
    Endpoint& mine = *finished_.front();
    const Outgoing* done = mine.outbox.done();
    if (done == nullptr) {
      mine.finished = false;
      finished_.pop_front();
      continue;
    }
    Event& event = events[filled++];
    event.kind = Event::Kind::kCompletion;
    event.peer = mine.peer;
    event.token = done->token;
    event.context = done->context;
    clear_error(event);
    mine.outbox.pop();
  }
  return filled;
}

std::size_t TcpTransport::take_arrivals(std::span<Event> events) {
  std::size_t filled = 0;
  for (std::size_t peers = ready_.size(); peers > 0 && filled < events.size(); --peers) {
    Endpoint& mine = *ready_.front();
    filled += serve(mine, events.subspan(filled));
    ready_.pop_front();
    if (mine.ready) ready_.push_back(&mine);
  }
  return filled;
}

std::size_t TcpTransport::take_broken(std::span<Event> events) {
  std::size_t filled = 0;
  for (; filled < events.size() && !broken_.empty(); broken_.pop_front())
    events[filled++] = std::move(broken_.front());
  return filled;
}

std::size_t TcpTransport::poll(std::span<Event> events) {
  std::size_t filled = take_completions(events);
  if (!ask_few_peers()) look_at_sockets();
  filled += take_arrivals(events.subspan(filled));
  if (!broken_.empty()) [[unlikely]]
    filled += take_broken(events.subspan(filled));
  if (!farewells_.empty()) [[unlikely]]
    step_farewells();
  if (!listening_) [[unlikely]]
    listen_again();
  return filled;
}

}  // namespace hips::tcp
