#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/base/wait/clock.hpp"
#include "transports/verbs/trouble.hpp"
#include "transports/verbs/verbs_transport.hpp"

namespace hips::verbs {

using transport::Address;
using transport::Event;
using transport::PeerId;

namespace {

/// A number for each connection. Switches spread flows by it, and packets of an earlier connection are rejected.
std::uint32_t mix(std::uint64_t token, std::size_t pair) {
  std::uint64_t x = token + 0x9e3779b97f4a7c15U * (pair + 1);
  x = (x ^ x >> 30U) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27U) * 0x94d049bb133111ebU;
  return static_cast<std::uint32_t>(x ^ x >> 31U);
}

template <std::size_t n>
void copy_text(std::array<char, n>& to, const std::string& from) {
  to.fill(0);
  from.copy(to.data(), n - 1);
}

}  // namespace

// --- Queue pairs -----------------------------------------------------------------------------------------

Result<std::unique_ptr<QueuePair>> VerbsTransport::make_pair(VerbsEndpoint& endpoint, rdma_cm_id* cm) {
  const bool shares = endpoint.shares_receives;
  CmIdHandle owned_cm(cm);
  if (shares && owned_.shared_receives == nullptr) {
    ibv_srq_init_attr attributes{};
    attributes.attr.max_wr = budget_.shared_receives;
    attributes.attr.max_sge = 1;
    owned_.shared_receives.reset(ibv_create_srq(owned_.domain.get(), &attributes));
    if (owned_.shared_receives == nullptr)
      return fail(call_error(port_.name, "creating a shared receive queue", errno));
  }
  const std::uint32_t window = shares ? budget_.shared_window : budget_.window;
  if (shares && (num_sharing_ + 1) * (window + Budget::kControl) > budget_.shared_receives) {
    return fail(
        Code::kUnsupported,
        fmt::format("verbs: {}: its shared receive queue of {} entries serves at most {} connections; use an "
                    "algorithm with fewer neighbours, such as HIPS_PATTERN=ring",
                    port_.name, budget_.shared_receives, num_sharing_),
        Scope::kProcess);
  }
  auto place = owned_.queues->reserve();
  if (!place) return fail(std::move(place).error());
  if (free_slots_.empty()) {
    slots_.emplace_back();
    free_slots_.push_back(static_cast<std::uint16_t>(slots_.size() - 1));
  }
  const std::uint16_t slot = free_slots_.back();
  auto made = QueuePair::create({.domain = owned_.domain.get(),
                                 .queue = owned_.queues->handle(*place),
                                 .shared_receives = shares ? owned_.shared_receives.get() : nullptr,
                                 .budget = budget_,
                                 .window = window,
                                 .inline_bytes = options_.inline_bytes,
                                 .immediates = immediates_,
                                 .slot = slot,
                                 .generation = slots_[slot].generation,
                                 .cm = owned_cm.release(),
                                 .port = port_.name});
  if (!made) {
    owned_.queues->release(*place);
    return fail(std::move(made).error());
  }
  QueuePair& pair = **made;
  pair.endpoint = &endpoint;
  pair.completion_queue = *place;
  free_slots_.pop_back();
  slots_[slot].pair = &pair;
  if (shares) {
    sharing_.emplace(pair.handle().qp_num, &pair);
    ++num_sharing_;
  }
  Status status;
  if (pair.cm() == nullptr) status = pair.initialise(port_.port);
  if (status.ok()) {
    if (shares && spare_receives_ > 0) {
      --spare_receives_;
      pair.adopt_spare_receives();
    } else {
      status = pair.post_receives();
    }
  }
  if (!status.ok()) {
    drop_pair(*std::move(made));
    return fail(std::move(status));
  }
  if (endpoint.has_address) pair.set_peer_window(endpoint.remote.windows[0]);
  return made;
}

void VerbsTransport::drop_pair(std::unique_ptr<QueuePair> pair) {
  if (pair == nullptr) return;
  pair->stop();
  if (has_shared_receives(*pair)) {
    // Finds and posts the receives that it used; its set of shared receives then serves another queue pair.
    sweep();
    (void)pair->post_receives();
    ++spare_receives_;
    --num_sharing_;
    sharing_.erase(pair->handle().qp_num);
  }
  Slot& slot = slots_[pair->slot()];
  slot.pair = nullptr;
  slot.generation = (slot.generation + 1) & 0x7fffU;
  free_slots_.push_back(pair->slot());
  const int queue = pair->completion_queue;
  pair.reset();
  // Removes its completions before another queue pair uses the room in the completion queue.
  sweep();
  owned_.queues->release(queue);
}

bool VerbsTransport::has_shared_receives(const QueuePair& pair) const {
  return !sharing_.empty() && sharing_.contains(pair.handle().qp_num);
}

void VerbsTransport::sweep() {
  while (poll_queues()) {
  }
}

// --- Endpoints -------------------------------------------------------------------------------------------

Result<Address> VerbsTransport::open(PeerId peer) {
  if (pid_ != getpid())
    return fail(Code::kUnsupported, "verbs: this process is a fork of the one that made the transport");
  if (peer < 0)
    return fail(Code::kInvalidArgument, fmt::format("verbs: open of peer {}; peers count from 0", peer));
  if (find_endpoint(peer) != nullptr)
    return fail(Code::kInvalidArgument, fmt::format("verbs: peer {} is open already; close it first", peer));
  reap_closing();
  const auto wanted = static_cast<std::size_t>(options_.pairs_per_peer);
  if (num_pairs_ + wanted > budget_.max_queue_pairs) {
    const bool by_user =
        options_.max_queue_pairs != 0 && options_.max_queue_pairs <= facts_.limits.max_queue_pairs;
    return fail(
        Code::kUnsupported,
        fmt::format(
            "verbs: {}: one more peer needs {} queue pair{} besides the {} in use; {} allows {}; {} use "
            "an "
            "algorithm with fewer neighbours (HIPS_PATTERN=ring) or lower HIPS_IB_QPS_PER_CONNECTION ({})",
            port_.name, wanted, wanted == 1 ? "" : "s", num_pairs_,
            by_user ? "HIPS_VERBS_MAX_QP" : "the device", budget_.max_queue_pairs, by_user ? "raise it," : "",
            options_.pairs_per_peer),
        Scope::kProcess);
  }
  VerbsAddress wire;
  if (getrandom(&wire.token, sizeof wire.token, 0) != static_cast<ssize_t>(sizeof wire.token))
    return fail(call_error(port_.name, "getrandom", errno));

  auto made = std::make_unique<VerbsEndpoint>(2 * wanted * budget_.send_depth);
  made->peer = peer;
  made->token = wire.token;
  made->name = {.host = "an unknown node", .port = "?", .address = "?", .pid = 0};
  made->shares_receives = num_pairs_ + wanted > budget_.own_receives;
  made->pairs.resize(wanted);
  made->connecting.resize(wanted);
  num_pairs_ += wanted;
  for (std::size_t i = 0; i < wanted; ++i) {
    wire.windows[i] =
        static_cast<std::uint16_t>(made->shares_receives ? budget_.shared_window : budget_.window);
    wire.packet_numbers[i] = mix(wire.token, i) & 0xffffffU;
    if (options_.cm) continue;
    auto pair = make_pair(*made, nullptr);
    if (!pair) {
      drop_endpoint(*made);
      return fail(std::move(pair).error());
    }
    wire.queue_pairs[i] = (*pair)->handle().qp_num;
    made->pairs[i] = *std::move(pair);
  }
  wire.gid = gid_.gid.bytes;
  wire.gid_kind = static_cast<std::uint8_t>(gid_.gid.kind);
  wire.num_pairs = static_cast<std::uint8_t>(wanted);
  wire.mtu = facts_.active_mtu;
  wire.reads = static_cast<std::uint8_t>(std::min<std::uint32_t>(facts_.limits.max_reads, 16));
  wire.lid = facts_.lid;
  wire.pid = pid_;
  wire.immediates = immediates_ ? 1 : 0;
  wire.cm = options_.cm ? 1 : 0;
  if (options_.cm) wire.cm_address = owned_.cm->address();
  copy_text(wire.host, host_);
  copy_text(wire.port, port_.name);

  if (static_cast<std::size_t>(peer) >= owned_.endpoints.size())
    owned_.endpoints.resize(static_cast<std::size_t>(peer) + 1);
  owned_.endpoints[static_cast<std::size_t>(peer)] = std::move(made);
  Address address(sizeof wire);
  std::memcpy(address.data(), &wire, sizeof wire);
  return address;
}

Status VerbsTransport::read_address(std::span<const std::byte> bytes, VerbsAddress& wire) const {
  const auto wrong = [](Code code, std::string message) {
    return Status::error(code, "verbs: " + std::move(message), Scope::kPeer);
  };
  if (bytes.size() != sizeof wire)
    return wrong(Code::kInvalidArgument,
                 fmt::format("the address has {} bytes; expected {}", bytes.size(), sizeof wire));
  std::memcpy(&wire, bytes.data(), sizeof wire);
  wire.host.back() = wire.port.back() = 0;
  if (wire.magic != VerbsAddress::kMagic || wire.num_pairs < 1 || wire.num_pairs > kMaxPairsPerPeer ||
      wire.mtu < IBV_MTU_256 || wire.mtu > IBV_MTU_4096)
    return wrong(Code::kInvalidArgument, "the address is of another transport or version");
  const auto differ = [&](std::string_view what, std::string_view theirs, std::string_view ours,
                          std::string_view remedy) {
    return wrong(Code::kUnsupported,
                 fmt::format("{} on {} has {} {}, but {} here has {}; {}", wire.port.data(), wire.host.data(),
                             what, theirs, port_.name, ours, remedy));
  };
  if ((wire.cm != 0) != options_.cm)
    return differ("HIPS_VERBS_CM", wire.cm != 0 ? "on" : "off", options_.cm ? "on" : "off",
                  "give all ranks the same (iWARP always has it on)");
  if ((wire.immediates != 0) != immediates_)
    return differ("a protocol", wire.immediates != 0 ? "RoCE" : "iWARP", immediates_ ? "RoCE" : "iWARP",
                  "name devices of one kind with HIPS_IB_HCA");
  Gid theirs{.index = 0, .kind = static_cast<Gid::Kind>(wire.gid_kind), .bytes = wire.gid};
  if (!options_.cm && (theirs.kind != gid_.gid.kind || theirs.is_ipv4() != gid_.gid.is_ipv4()))
    return differ("the address", theirs.to_string(), gid_.gid.to_string(),
                  "choose addresses of one kind with HIPS_IB_GID_INDEX");
  if (wire.num_pairs != options_.pairs_per_peer)
    return differ("HIPS_IB_QPS_PER_CONNECTION", std::to_string(wire.num_pairs),
                  std::to_string(options_.pairs_per_peer), "give all ranks the same");
  return Status::success();
}

Status VerbsTransport::connect(PeerId peer, std::span<const std::byte> address) {
  VerbsEndpoint* endpoint = find_endpoint(peer);
  if (endpoint != nullptr && endpoint->state == VerbsEndpoint::State::kBroken) {
    // If the peer disconnected before its address was known, `cause` does not name it. In all other cases
    // `cause` is the more exact error.
    if (endpoint->has_address || endpoint->cause.code != Code::kPeerLost) return endpoint->cause;
    return Status::error(Code::kPeerLost,
                         fmt::format("verbs: peer {} has left before it was connected", peer), Scope::kPeer);
  }
  if (endpoint == nullptr || endpoint->state != VerbsEndpoint::State::kOpen || pid_ != getpid()) {
    return Status::error(
        Code::kInvalidArgument,
        fmt::format("verbs: connect of peer {}, which is not open or is connected already", peer));
  }
  VerbsAddress wire;
  if (Status status = read_address(address, wire); !status.ok()) return status;
  endpoint->remote = wire;
  endpoint->has_address = true;
  const Gid gid{.index = 0, .kind = static_cast<Gid::Kind>(wire.gid_kind), .bytes = wire.gid};
  endpoint->name = {
      .host = wire.host.data(), .port = wire.port.data(), .address = gid.address(), .pid = wire.pid};
  for (std::size_t i = 0; i < endpoint->pairs.size(); ++i) {
    if (endpoint->pairs[i] != nullptr) endpoint->pairs[i]->set_peer_window(wire.windows[i]);
  }
  if (Status status = options_.cm ? start_connections(*endpoint) : join(*endpoint); !status.ok()) {
    status.message += "; peer: " + endpoint->name.to_string();
    break_endpoint(*endpoint, status);
    drop_events(peer);
    return status;
  }
  return Status::success();
}

Status VerbsTransport::join(VerbsEndpoint& endpoint) {
  const VerbsAddress& wire = endpoint.remote;
  for (std::size_t i = 0; i < endpoint.pairs.size(); ++i) {
    QueuePair::Path path;
    path.queue_pair = wire.queue_pairs[i];
    path.packet_number = wire.packet_numbers[i];
    path.gid = {.index = 0, .kind = static_cast<Gid::Kind>(wire.gid_kind), .bytes = wire.gid};
    path.lid = wire.lid;
    path.mtu = std::min(wire.mtu, facts_.active_mtu);
    path.port = port_.port;
    path.gid_index = static_cast<std::uint8_t>(gid_.gid.index);
    path.traffic_class = options_.traffic_class;
    path.service_level = options_.service_level;
    path.timeout = options_.timeout;
    path.retry_count = options_.retry_count;
    path.reads =
        static_cast<std::uint8_t>(std::min<std::uint32_t>({facts_.limits.max_reads, wire.reads, 16}));
    path.flow_label = mix(endpoint.token ^ wire.token, i) & 0xfffffU;
    if (Status status = endpoint.pairs[i]->connect(path, mix(endpoint.token, i) & 0xffffffU); !status.ok())
      return status;
  }
  endpoint.state = VerbsEndpoint::State::kConnected;
  log::info(log::Subsystem::kTransport,
            "verbs: {} to {}: {} queue pair{}, MTU {} (the smaller of {} and {}), inline {}", port_.name,
            endpoint.name.to_string(), endpoint.pairs.size(), endpoint.pairs.size() == 1 ? "" : "s",
            mtu_bytes(std::min(wire.mtu, facts_.active_mtu)), mtu_bytes(facts_.active_mtu),
            mtu_bytes(wire.mtu), endpoint.pairs[0]->max_inline());
  return Status::success();
}

void VerbsTransport::break_endpoint(VerbsEndpoint& endpoint, Status error) {
  if (endpoint.state == VerbsEndpoint::State::kBroken || endpoint.state == VerbsEndpoint::State::kClosing)
    return;
  // First what needs memory: without it nothing has changed yet.
  Event dead;
  dead.kind = Event::Kind::kPeerDead;
  dead.peer = endpoint.peer;
  dead.error = endpoint.cause = std::move(error);
  push(std::move(dead));
  if (endpoint.state == VerbsEndpoint::State::kConnecting) --num_connecting_;
  endpoint.state = VerbsEndpoint::State::kBroken;
  endpoint.pending.clear();
  if (std::exchange(endpoint.control_due, false)) --num_control_due_;
  for (auto& pair : endpoint.pairs) {
    if (pair == nullptr) continue;
    std::erase(chained_, pair.get());
    pair->stop();
  }
}

void VerbsTransport::drop_endpoint(VerbsEndpoint& endpoint) {
  if (endpoint.state == VerbsEndpoint::State::kConnecting) --num_connecting_;
  if (std::exchange(endpoint.control_due, false)) --num_control_due_;
  endpoint.state = VerbsEndpoint::State::kClosing;  // completions found by sweep() are ignored
  num_pairs_ -= endpoint.pairs.size();
  endpoint.connecting.clear();
  for (auto& pair : endpoint.pairs) drop_pair(std::move(pair));
  // What was found meanwhile may have made it owe credits.
  if (std::exchange(endpoint.control_due, false)) --num_control_due_;
}

void VerbsTransport::drop_events(PeerId peer) {
  const std::size_t count = std::exchange(num_events_, 0);
  for (std::size_t i = 0; i < count; ++i) {
    Event event = std::move(events_[(events_head_ + i) % events_.size()]);
    if (event.peer == peer && event.kind != Event::Kind::kPortDown) continue;
    events_[(events_head_ + num_events_) % events_.size()] = std::move(event);
    ++num_events_;
  }
}

void VerbsTransport::close(PeerId peer) {
  VerbsEndpoint* endpoint = find_endpoint(peer);
  if (endpoint == nullptr || pid_ != getpid()) return;
  std::unique_ptr<VerbsEndpoint> closed = std::move(owned_.endpoints[static_cast<std::size_t>(peer)]);
  drop_events(peer);
  if (endpoint->state != VerbsEndpoint::State::kConnected) {
    drop_endpoint(*endpoint);
    return;
  }
  endpoint->state = VerbsEndpoint::State::kClosing;
  endpoint->pending.clear();
  endpoint->close_deadline_ns = SystemClock::instance().now_ns() + kCloseTimeoutNs;
  for (auto& pair : endpoint->pairs) pair->disconnect_due = true;
  send_disconnects(*endpoint);
  owned_.closing.push_back(std::move(closed));
  any_closed_ = true;
}

void VerbsTransport::send_disconnects(VerbsEndpoint& endpoint) {
  for (auto& pair : endpoint.pairs) {
    if (pair == nullptr || !pair->disconnect_due) continue;
    if (pair->send_control({ControlMessage::Kind::kDisconnect, 0})) {
      pair->disconnect_due = false;
      pair->disconnect_sent = true;
      pair->disconnect_number = pair->posted() - 1;
    } else if (!std::exchange(endpoint.control_due, true)) {
      ++num_control_due_;
    }
  }
}

void VerbsTransport::reap_closing() {
  const bool look = std::exchange(any_closed_, false);
  const bool late = ++num_reaps_ % kReapsPerClock == 0;
  const std::int64_t now_ns = late ? SystemClock::instance().now_ns() : 0;
  for (std::size_t i = 0; i < owned_.closing.size();) {
    VerbsEndpoint& endpoint = *owned_.closing[i];
    const auto finished = [](const auto& pair) {
      return pair == nullptr || pair->disconnect_received ||
             (pair->disconnect_sent && pair->completed() > pair->disconnect_number);
    };
    const bool done = (look && std::all_of(endpoint.pairs.begin(), endpoint.pairs.end(), finished)) ||
                      (late && now_ns >= endpoint.close_deadline_ns);
    if (!done) {
      ++i;
      continue;
    }
    // Removed first, because sweep() in drop_endpoint() may change owned_.closing.
    std::unique_ptr<VerbsEndpoint> gone = std::move(owned_.closing[i]);
    owned_.closing.erase(owned_.closing.begin() + static_cast<std::ptrdiff_t>(i));
    drop_endpoint(*gone);
  }
}

void VerbsTransport::report_unconnected(PeerId peer) {
  Status error =
      Status::error(Code::kInvalidArgument,
                    fmt::format("verbs: post to peer {}, which is not connected", peer), Scope::kPeer);
  if (VerbsEndpoint* endpoint = find_endpoint(peer); endpoint != nullptr) {
    break_endpoint(*endpoint, std::move(error));
    return;
  }
  // Only one such event at a time.
  for (std::size_t i = 0; i < num_events_; ++i) {
    const Event& event = events_[(events_head_ + i) % events_.size()];
    if (event.kind == Event::Kind::kPeerDead && event.peer == peer) return;
  }
  Event dead;
  dead.kind = Event::Kind::kPeerDead;
  dead.peer = peer;
  dead.error = std::move(error);
  push(std::move(dead));
}

// --- rdma_cm -----------------------------------------------------------------------------------------------

// The side with the smaller token connects, the other listens. The listening side accepts a connection from
// open() on, by the token alone. It sends only after the first message has arrived, because iWARP does not allow
// the accepting side to send before.

Status VerbsTransport::start_connections(VerbsEndpoint& endpoint) {
  endpoint.state = VerbsEndpoint::State::kConnecting;
  ++num_connecting_;
  if (endpoint.token > endpoint.remote.token) {
    finish_connecting(endpoint);  // the connection may be accepted already
    return Status::success();
  }
  for (std::size_t i = 0; i < endpoint.connecting.size(); ++i) {
    auto id =
        owned_.cm->resolve(endpoint.remote.cm_address, options_.traffic_class, options_.timeout, port_.name);
    if (!id) return std::move(id).error();
    endpoint.connecting[i] = *std::move(id);
  }
  return Status::success();
}

void VerbsTransport::finish_connecting(VerbsEndpoint& endpoint) {
  if (endpoint.state != VerbsEndpoint::State::kConnecting) return;
  const bool all = std::all_of(endpoint.pairs.begin(), endpoint.pairs.end(),
                               [](const auto& pair) { return pair != nullptr && pair->established; });
  if (!all) return;
  --num_connecting_;
  endpoint.state = VerbsEndpoint::State::kConnected;
  log::info(log::Subsystem::kTransport, "verbs: {} to {}: {} queue pair{} by rdma_cm, inline {}", port_.name,
            endpoint.name.to_string(), endpoint.pairs.size(), endpoint.pairs.size() == 1 ? "" : "s",
            endpoint.pairs[0]->max_inline());
}

VerbsEndpoint* VerbsTransport::endpoint_of(const rdma_cm_id* id, std::size_t& index) {
  for (auto& endpoint : owned_.endpoints) {
    if (endpoint == nullptr) continue;
    for (index = 0; index < endpoint->pairs.size(); ++index) {
      if (endpoint->connecting[index].get() == id) return endpoint.get();
      if (endpoint->pairs[index] != nullptr && endpoint->pairs[index]->cm() == id) return endpoint.get();
    }
  }
  return nullptr;
}

void VerbsTransport::accept(rdma_cm_id* id, const CmGreeting& greeting) {
  CmIdHandle owned(id);
  const auto known =
      std::find_if(owned_.endpoints.begin(), owned_.endpoints.end(), [&](const auto& endpoint) {
        return endpoint != nullptr && endpoint->token == greeting.token &&
               (endpoint->state == VerbsEndpoint::State::kOpen ||
                endpoint->state == VerbsEndpoint::State::kConnecting);
      });
  if (greeting.magic != CmGreeting::kMagic || known == owned_.endpoints.end() ||
      greeting.pair >= (*known)->pairs.size() || (*known)->pairs[greeting.pair] != nullptr) {
    (void)rdma_reject(id, nullptr, 0);  // an unknown process, or the address of a closed endpoint
    return;
  }
  VerbsEndpoint& endpoint = **known;
  auto pair = make_pair(endpoint, owned.release());
  if (!pair) {
    // make_pair() has destroyed the id, which rejects the connection.
    break_endpoint(endpoint, std::move(pair).error());
    return;
  }
  if (endpoint.has_address) (*pair)->set_peer_window(endpoint.remote.windows[greeting.pair]);
  rdma_conn_param parameters{};
  const auto reads = static_cast<std::uint8_t>(std::min<std::uint32_t>(facts_.limits.max_reads, 16));
  parameters.responder_resources = reads;
  parameters.initiator_depth = reads;
  parameters.rnr_retry_count = 7;
  endpoint.pairs[greeting.pair] = *std::move(pair);
  if (rdma_accept(id, &parameters) != 0)
    break_endpoint(endpoint, call_error(port_.name, "rdma_accept", errno));
}

void VerbsTransport::advance_connection(const CmPort::Event& event) {
  std::size_t index = 0;
  VerbsEndpoint* endpoint = endpoint_of(event.id, index);
  if (endpoint == nullptr) return;
  const auto fail_connecting = [&](std::string_view what, int error) {
    Status status = call_error(port_.name, fmt::format("{} to {}", what, endpoint->name.to_string()),
                               error < 0 ? -error : error);
    status.code = Code::kPeerLost;
    status.scope = Scope::kPeer;
    break_endpoint(*endpoint, std::move(status));
  };
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (rdma_resolve_route(event.id, 2000) != 0) fail_connecting("rdma_resolve_route", errno);
      return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED: {
      if (event.id->verbs != owned_.context) {
        fail_connecting("the route uses another device, not this one,", EHOSTUNREACH);
        return;
      }
      auto pair = make_pair(*endpoint, endpoint->connecting[index].release());
      if (!pair) {
        break_endpoint(*endpoint, std::move(pair).error());
        return;
      }
      (*pair)->set_peer_window(endpoint->remote.windows[index]);
      endpoint->pairs[index] = *std::move(pair);
      const CmGreeting greeting{.pair = static_cast<std::uint32_t>(index), .token = endpoint->remote.token};
      const auto reads = static_cast<std::uint8_t>(
          std::min<std::uint32_t>({facts_.limits.max_reads, endpoint->remote.reads, 16}));
      rdma_conn_param parameters{};
      parameters.private_data = &greeting;
      parameters.private_data_len = sizeof greeting;
      parameters.responder_resources = reads;
      parameters.initiator_depth = reads;
      parameters.retry_count = options_.retry_count;
      parameters.rnr_retry_count = 7;
      if (rdma_connect(event.id, &parameters) != 0) fail_connecting("rdma_connect", errno);
      return;
    }
    case RDMA_CM_EVENT_ESTABLISHED: {
      QueuePair& pair = *endpoint->pairs[index];
      if (!endpoint->has_address || endpoint->token > endpoint->remote.token)
        return;  // the accepting side waits for the hello
      pair.established = true;
      (void)pair.send_control({ControlMessage::Kind::kHello, 0});
      finish_connecting(*endpoint);
      return;
    }
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
      fail_connecting("no route", event.status != 0 ? event.status : EHOSTUNREACH);
      return;
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_REJECTED:
      fail_connecting("refused connection", ECONNREFUSED);
      return;
    default:
      return;  // DISCONNECTED, TIMEWAIT_EXIT: disconnect messages and failed requests report it in order
  }
}

void VerbsTransport::poll_connections() {
  CmPort::Event event;
  while (owned_.cm->next(event)) {
    if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      accept(event.id, event.greeting);
    } else if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
      Event removed;
      removed.kind = Event::Kind::kPortDown;
      removed.error =
          Status::error(Code::kPeerLost, fmt::format("verbs: {} was removed", port_.name), Scope::kLink);
      if (!port_down_reported_) push(std::move(removed));
      port_down_reported_ = true;
    } else {
      advance_connection(event);
    }
  }
}

}  // namespace hips::verbs
