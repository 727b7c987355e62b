#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "transports/tcp/tcp_transport.hpp"

namespace hips::tcp {

using transport::Event;
using transport::Verb;
using transport::WorkRequest;
using Kind = FrameHeader::Kind;

namespace {

/// System calls for one peer before the next peer is served.
constexpr int kReceivesPerPeer = 16;
/// Up to this many peers are read directly, which is faster than epoll_wait() and then a read.
constexpr std::size_t kFewPeers = 2;
/// Direct polls between two polls of the epoll set, which also reports new connections.
constexpr std::uint32_t kDirectPolls = 64;

/// Costs a few nanoseconds; milliseconds late.
std::int64_t coarse_now_ns() {
  timespec now{};
  (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void clear_error(Event& event) {
  if (!event.error.ok()) event.error = Status::success();
}

}  // namespace

// --- Requests --------------------------------------------------------------------------------------------

std::size_t TcpTransport::post(std::span<const WorkRequest> requests) {
  std::size_t taken = 0;
  for (const WorkRequest& request : requests) {
    TcpEndpoint* endpoint = find_endpoint(request.peer);
    if (endpoint == nullptr || endpoint->state == TcpEndpoint::State::kOpen) [[unlikely]] {
      report_unconnected(request.peer);
    } else if (endpoint->state != TcpEndpoint::State::kBroken) {
      if (!append(*endpoint, request)) break;
    }
    ++taken;
  }
  for (TcpEndpoint* endpoint : posted_) {
    // After EPOLLOUT is requested, poll() continues the flush when the socket has room.
    if ((endpoint->watched & EPOLLOUT) == 0) flush(*endpoint);
  }
  posted_.clear();
  return taken;
}

/// False if the queue is full.
bool TcpTransport::append(TcpEndpoint& endpoint, const WorkRequest& request) {
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
    break_endpoint(endpoint,
                   Status::error(Code::kInternal,
                                 fmt::format("tcp: {} bytes at offset {} of a region of {} bytes", bytes,
                                             request.remote_offset,
                                             request.remote == nullptr ? 0 : request.remote->bytes),
                                 Scope::kPeer),
                   Ending::kSilently);
    return true;
  }
  if (endpoint.outbox.full() || (get && !endpoint.outbox.may_get())) return false;
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
  endpoint.outbox.push(outgoing);
  if (std::find(posted_.begin(), posted_.end(), &endpoint) == posted_.end()) posted_.push_back(&endpoint);
  return true;
}

void TcpTransport::flush(TcpEndpoint& endpoint) {
  if (endpoint.state != TcpEndpoint::State::kConnected || endpoint.send_error != 0) return;
  std::uint32_t events = EPOLLIN;
  switch (endpoint.outbox.flush(endpoint.fd.get(), endpoint.send_error)) {
    case Outbox::SendResult::kAll:
      break;
    case Outbox::SendResult::kFull:
      events |= EPOLLOUT;
      break;
    case Outbox::SendResult::kBroken:
      // Data that the peer sent before may still be unread; the end of the stream follows it.
      set_ready(endpoint);
      break;
  }
  watch(endpoint, events);
  if (endpoint.outbox.done() != nullptr) set_finished(endpoint);
}

void TcpTransport::set_ready(TcpEndpoint& endpoint) {
  if (!std::exchange(endpoint.ready, true)) ready_.push_back(&endpoint);
}

void TcpTransport::set_finished(TcpEndpoint& endpoint) {
  if (!std::exchange(endpoint.finished, true)) finished_.push_back(&endpoint);
}

// --- Frames ----------------------------------------------------------------------------------------------

void TcpTransport::begin_frame(TcpEndpoint& endpoint, const FrameHeader& header) {
  const auto wrong = [&](std::string_view what) {
    break_endpoint(endpoint,
                   Status::error(Code::kInternal,
                                 fmt::format("tcp: {}: {} sent {}", options_.device, endpoint.name, what),
                                 Scope::kPeer));
  };
  switch (header.kind) {
    case Kind::kPut:
    case Kind::kPutNotify: {
      if (header.bytes > 0) {
        if (memory_.is_gone(header)) [[unlikely]] {
          endpoint.inbox.expect_dropped(header.bytes);
        } else {
          auto payload = memory_.find(header);
          if (!payload) return wrong(payload.error().message);
          endpoint.inbox.expect(*payload);
        }
      }
      endpoint.frame = header;
      return;
    }
    case Kind::kGet: {
      Outgoing answer{.header = header};
      answer.header.kind = Kind::kGetReply;
      if (header.bytes > 0) {
        auto source = memory_.find(header);
        if (!source) return wrong("a get of " + source.error().message);
        answer.pieces[answer.num_pieces++] = {source->data(), source->size()};
        answer.bytes += source->size();
      }
      if (!endpoint.outbox.push_answer(answer))
        return wrong(fmt::format("more than {} outstanding gets", kMaxGets));
      if ((endpoint.watched & EPOLLOUT) == 0) flush(endpoint);
      return;
    }
    case Kind::kGetReply: {
      const Outgoing* get = endpoint.outbox.oldest_get();
      if (get == nullptr || get->into.size() != header.bytes)
        return wrong(
            fmt::format("a get reply of {} bytes that no get of this process expects", header.bytes));
      endpoint.inbox.expect(get->into);
      endpoint.frame = header;
      return;
    }
    case Kind::kClose:
      break_endpoint(endpoint, Status::error(Code::kPeerLost,
                                             fmt::format("tcp: {}: {} closed its endpoint", options_.device,
                                                         endpoint.name),
                                             Scope::kPeer));
      return;
    case Kind::kNone:
      break;
  }
  wrong(fmt::format("a frame of unknown kind {}", static_cast<std::uint32_t>(header.kind)));
}

/// Reads from one peer until its socket is empty, kReceivesPerPeer is reached, or `events` is full. An empty
/// socket clears `ready`. Unless `events` is full, all frames that were received are processed: what is in the
/// inbox wakes nobody.
void TcpTransport::serve(TcpEndpoint& endpoint, std::span<Event> events, std::size_t& filled) {
  bool drained = false;
  for (int receives = 0;;) {
    if (endpoint.state == TcpEndpoint::State::kBroken) break;
    if (endpoint.state == TcpEndpoint::State::kConnecting) {
      if (receive_hello(endpoint)) continue;
    } else if (!endpoint.inbox.in_payload()) {
      if (endpoint.frame.kind == Kind::kPutNotify) {
        if (filled == events.size()) return;
        Event& event = events[filled++];
        event.kind = Event::Kind::kArrival;
        event.peer = endpoint.peer;
        event.token = endpoint.frame.token;
        event.context = 0;
        clear_error(event);
      } else if (endpoint.frame.kind == Kind::kGetReply) {
        endpoint.outbox.get_answered();
        if (endpoint.outbox.done() != nullptr) set_finished(endpoint);
      }
      endpoint.frame.kind = Kind::kNone;
      if (const auto header = endpoint.inbox.next()) {
        begin_frame(endpoint, *header);
        continue;
      }
    }
    if (drained) {
      if (endpoint.send_error != 0) [[unlikely]]
        connection_ended(endpoint, 0);
      break;
    }
    if (receives == kReceivesPerPeer) return;
    ++receives;
    int error = 0;
    switch (endpoint.inbox.receive(endpoint.fd.get(), error)) {
      case Inbox::ReceiveResult::kSome:
        continue;
      case Inbox::ReceiveResult::kAll:
        drained = true;
        continue;
      case Inbox::ReceiveResult::kNothing:
        // Sending has failed for another reason than the connection: memory that the program has unmapped.
        if (endpoint.send_error != 0) connection_ended(endpoint, 0);
        break;
      case Inbox::ReceiveResult::kEnd:
        connection_ended(endpoint, error);
        break;
    }
    break;
  }
  endpoint.ready = false;
}

// --- Events ----------------------------------------------------------------------------------------------

void TcpTransport::poll_sockets() {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const auto number = static_cast<std::int32_t>(event.data.u64 & 0xffffffff);
    switch (static_cast<Watched>(event.data.u64 >> 32)) {
      case Watched::kListener:
        accept_connections();
        break;
      case Watched::kPending:
        identify(number);
        break;
      case Watched::kEndpoint: {
        TcpEndpoint* endpoint = find_endpoint(number);
        if (endpoint == nullptr || endpoint->state == TcpEndpoint::State::kBroken) break;
        if (endpoint->state == TcpEndpoint::State::kConnecting && !endpoint->hello_sent) {
          send_hello(*endpoint);
          break;
        }
        if ((event.events & EPOLLERR) != 0 && endpoint->outbox.awaits_release()) {
          endpoint->outbox.read_releases(endpoint->fd.get());
          if (endpoint->outbox.done() != nullptr) set_finished(*endpoint);
        }
        if ((event.events & EPOLLOUT) != 0) flush(*endpoint);
        if ((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) set_ready(*endpoint);
        break;
      }
    }
  }
}

bool TcpTransport::poll_few_peers_directly() {
  if (endpoints_.size() > kFewPeers || ++direct_polls_ % kDirectPolls == 0) return false;
  bool any = false;
  for (const auto& endpoint : endpoints_) {
    if (endpoint == nullptr || endpoint->state == TcpEndpoint::State::kBroken) continue;
    if (endpoint->state != TcpEndpoint::State::kConnected || endpoint->watched != EPOLLIN) return false;
    // Zero-copy releases are reported by the epoll set.
    if (endpoint->outbox.awaits_release()) return false;
    any = true;
  }
  if (!any) return false;
  for (const auto& endpoint : endpoints_) {
    if (endpoint != nullptr && endpoint->state == TcpEndpoint::State::kConnected) set_ready(*endpoint);
  }
  return true;
}

void TcpTransport::take_completions(std::span<Event> events, std::size_t& filled) {
  while (filled < events.size() && !finished_.empty()) {
    TcpEndpoint& endpoint = *finished_.front();
    const Outgoing* done = endpoint.outbox.done();
    if (done == nullptr) {
      endpoint.finished = false;
      finished_.pop_front();
      continue;
    }
    Event& event = events[filled++];
    event.kind = Event::Kind::kCompletion;
    event.peer = endpoint.peer;
    event.token = done->token;
    event.context = done->context;
    clear_error(event);
    endpoint.outbox.pop();
  }
}

void TcpTransport::take_arrivals(std::span<Event> events, std::size_t& filled) {
  for (std::size_t peers = ready_.size(); peers > 0 && filled < events.size(); --peers) {
    TcpEndpoint& endpoint = *ready_.front();
    serve(endpoint, events, filled);
    ready_.pop_front();
    if (endpoint.ready) ready_.push_back(&endpoint);
  }
}

void TcpTransport::take_broken(std::span<Event> events, std::size_t& filled) {
  for (; filled < events.size() && !broken_.empty(); broken_.pop_front())
    events[filled++] = std::move(broken_.front());
}

std::size_t TcpTransport::poll_completions(std::span<Event> events) {
  std::size_t filled = 0;
  take_completions(events, filled);
  return filled;
}

std::size_t TcpTransport::poll(std::span<Event> events) {
  std::size_t filled = 0;
  try {
    poll(events, filled);
  } catch (const std::bad_alloc&) {
    // What was taken must not be lost.
    if (filled == 0) throw;
  }
  return filled;
}

void TcpTransport::poll(std::span<Event> events, std::size_t& filled) {
  // Comes before events are taken, so that what it finds is among them.
  constexpr std::int64_t kLookEveryNs = 250'000'000;
  if (const std::int64_t now_ns = coarse_now_ns(); now_ns >= next_look_ns_) [[unlikely]] {
    next_look_ns_ = now_ns + kLookEveryNs;
    look_for_silence();
  }
  take_completions(events, filled);
  if (!poll_few_peers_directly()) poll_sockets();
  take_arrivals(events, filled);
  // A socket that had room again, a new connection or the answer to a get has completed requests. They wake
  // nobody, and the caller may sleep after this poll.
  if (!finished_.empty()) take_completions(events, filled);
  if (!broken_.empty()) [[unlikely]]
    take_broken(events, filled);
  if (!closing_connections_.empty()) [[unlikely]]
    progress_closing();
  if (!accepting_) [[unlikely]]
    resume_accepting();
}

}  // namespace hips::tcp
