#include "transports/verbs/verbs_transport.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/base/wait/clock.hpp"
#include "transports/verbs/trouble.hpp"

namespace hips::verbs {

using transport::Armed;
using transport::Event;
using transport::MemoryDesc;
using transport::MemoryId;
using transport::PeerId;
using transport::Region;
using transport::RemoteRegion;

namespace {

/// The planner's default, not a measurement.
constexpr double kLatencyNs = 2000;

std::string host_name() {
  std::array<char, 64> name{};
  return gethostname(name.data(), name.size() - 1) == 0 && name[0] != 0 ? name.data() : "an unnamed node";
}

Status check(const VerbsOptions& options) {
  const auto wrong = [](std::string_view name, long value, std::string_view right) {
    return Status::error(Code::kInvalidArgument, fmt::format("{}={} is wrong: give {}", name, value, right));
  };
  if (options.service_level > 15) return wrong("HIPS_IB_SL", options.service_level, "0 to 15");
  if (options.timeout > 31) return wrong("HIPS_IB_TIMEOUT", options.timeout, "0 to 31");
  if (options.retry_count > 7) return wrong("HIPS_IB_RETRY_CNT", options.retry_count, "0 to 7");
  if (options.pairs_per_peer < 1 || options.pairs_per_peer > static_cast<std::int32_t>(kMaxPairsPerPeer))
    return wrong("HIPS_IB_QPS_PER_CONNECTION", options.pairs_per_peer, "1 to 8");
  return Status::success();
}

}  // namespace

Result<std::unique_ptr<transport::Transport>> create(const PortChoice& port, const VerbsOptions& options) {
  return VerbsTransport::create(port, options);
}

Result<std::unique_ptr<transport::Transport>> VerbsTransport::create(const PortChoice& port,
                                                                     const VerbsOptions& options) {
  if (Status status = check(options); !status.ok()) return fail(std::move(status));
  // On kernels before 5.12, fork() would otherwise move registered pages to the child. The call fails if memory
  // was registered before; there is no remedy then.
  if (ibv_is_fork_initialized() == IBV_FORK_DISABLED) (void)ibv_fork_init();
  std::unique_ptr<VerbsTransport> transport(new VerbsTransport(port, options));
  if (Status status = transport->start(); !status.ok()) return fail(std::move(status));
  return transport;
}

std::optional<std::uint32_t> inline_bytes(const transport::Transport& transport, PeerId peer) {
  const auto* verbs = dynamic_cast<const VerbsTransport*>(&transport);
  return verbs != nullptr ? verbs->inline_bytes(peer) : std::nullopt;
}

std::optional<std::uint32_t> VerbsTransport::inline_bytes(PeerId peer) const {
  const VerbsEndpoint* endpoint = find_endpoint(peer);
  // append() uses the limit of the first queue pair; all have the same.
  if (endpoint == nullptr || endpoint->pairs[0] == nullptr) return std::nullopt;
  return endpoint->pairs[0]->max_inline();
}

Status VerbsTransport::start() {
  pid_ = getpid();
  host_ = host_name();
  immediates_ = !port_.iwarp;
  options_.cm = options_.cm || port_.iwarp;
  auto contexts = open_devices();
  if (!contexts) return std::move(contexts).error();
  const auto named = std::find_if(contexts->begin(), contexts->end(), [&](const ContextHandle& context) {
    return port_.device == ibv_get_device_name(context->device);
  });
  if (named == contexts->end()) {
    return Status::error(Code::kUnsupported,
                         fmt::format("verbs: {} is no longer there; see \"ibv_devices\"", port_.name),
                         Scope::kProcess);
  }
  owned_.opened = std::move(*named);
  contexts->clear();
  auto gid = choose_gid(gid_table(*owned_.opened, port_.port, port_.iwarp),
                        static_cast<std::int32_t>(port_.gid_index), port_.name);
  if (!gid) return std::move(gid).error();
  gid_ = *std::move(gid);
  if (options_.cm) {
    auto cm = CmPort::create(port_.device, port_.port, gid_.gid, port_.name);
    if (!cm) return std::move(cm).error();
    owned_.cm = *std::move(cm);
    owned_.opened.reset();
    owned_.context = owned_.cm->context();
  } else {
    owned_.context = owned_.opened.get();
  }
  auto facts = query_port(*owned_.context, port_.port);
  if (!facts) return std::move(facts).error();
  facts_ = *std::move(facts);
  if (facts_.endless_retry) options_.retry_count = std::min<std::uint8_t>(options_.retry_count, 6);
  while (options_.max_mtu != 0 && facts_.active_mtu > IBV_MTU_256 &&
         mtu_bytes(facts_.active_mtu) > options_.max_mtu)
    --facts_.active_mtu;
  // Without immediates receives have buffers, which belong to one queue pair, so they cannot be shared.
  if (!immediates_) facts_.limits.max_shared_receives = 0;
  auto budget = Budget::of(facts_.limits, options_.max_queue_pairs, port_.name);
  if (!budget) return std::move(budget).error();
  budget_ = *budget;

  owned_.domain.reset(ibv_alloc_pd(owned_.context));
  if (owned_.domain == nullptr) return call_error(port_.name, "creating a protection domain", errno);
  auto queues = CompletionQueues::create(*owned_.context, budget_, port_.name);
  if (!queues) return std::move(queues).error();
  owned_.queues = *std::move(queues);

  owned_.epoll.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!owned_.epoll.valid()) return call_error(port_.name, "epoll_create1", errno);
  const int async = owned_.context->async_fd;
  if (fcntl(async, F_SETFL, fcntl(async, F_GETFL) | O_NONBLOCK) != 0)
    return call_error(port_.name, "fcntl", errno);
  if (Status status = watch(async); !status.ok()) return status;
  if (Status status = watch(owned_.queues->fd()); !status.ok()) return status;
  if (owned_.cm) {
    if (Status status = watch(owned_.cm->fd()); !status.ok()) return status;
  }

  const std::uint32_t requests = budget_.send_depth - Budget::kControl;
  limits_ = {.name = "verbs",
             .device = port_.name,
             .description = port_.description,
             .latency_ns = kLatencyNs,
             .bandwidth_bytes_per_s = facts_.bandwidth_bytes_per_s,
             .max_message_bytes = static_cast<std::size_t>(facts_.limits.max_message_bytes) *
                                  (std::min<std::size_t>(kMaxPartsOfOne, requests) / 2),
             .max_posted = requests,
             .attaches_memory = false,
             .completes_on_post = false,
             .needs_local_registration = true,
             .arrives_before_connect = false,
             .asynchronous = true};
  events_.resize(256);
  log::info(log::Subsystem::kTransport, "verbs: {}: {}; {} queue pair{} per peer, send queue {}, window {}",
            port_.description, options_.cm ? "connects by rdma_cm" : "connects by exchanged addresses",
            options_.pairs_per_peer, options_.pairs_per_peer == 1 ? "" : "s", budget_.send_depth,
            budget_.window);
  return Status::success();
}

Status VerbsTransport::watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ctl(owned_.epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return call_error(port_.name, "epoll_ctl", errno);
  return Status::success();
}

VerbsTransport::~VerbsTransport() {
  if (pid_ != getpid()) {
    (void)new Owned(std::move(owned_));
    return;
  }
  for (std::size_t peer = 0; peer < owned_.endpoints.size(); ++peer) close(static_cast<PeerId>(peer));
  // Waits until the disconnect messages are delivered.
  const std::int64_t end_ns = SystemClock::instance().now_ns() + kCloseTimeoutNs;
  while (!owned_.closing.empty() && SystemClock::instance().now_ns() < end_ns) {
    (void)poll_queues();
    num_events_ = 0;
    send_due_control();
    reap_closing();
    if (!owned_.closing.empty()) sched_yield();
  }
  while (!owned_.closing.empty()) {
    drop_endpoint(*owned_.closing.back());
    owned_.closing.pop_back();
  }
}

// --- Memory ----------------------------------------------------------------------------------------------

Result<Region> VerbsTransport::register_memory(const MemoryDesc& memory) {
  return owned_.memory.add(*owned_.domain, memory, port_.name);
}

void VerbsTransport::deregister(MemoryId memory) {
  owned_.memory.remove(memory);
}

Result<std::span<std::byte>> VerbsTransport::attach(PeerId /*peer*/, const RemoteRegion& /*region*/) {
  return fail(Code::kUnsupported,
              fmt::format("verbs: {} cannot map peer memory; use put or get requests", port_.name));
}

// --- Sleeping --------------------------------------------------------------------------------------------

Armed VerbsTransport::arm() {
  const Armed ready{.ready = true, .fd = owned_.epoll.get()};
  // Old completion events would wake the process at once.
  owned_.queues->drain();
  poll_async_events();
  if (num_events_ > 0) return ready;
  owned_.queues->arm();
  // Completions from before the arming raise no event. One poll reads only one queue and may yield no event for
  // the user, so the queues are polled until they are empty.
  while (num_events_ == 0 && poll_queues()) {
  }
  send_due_control();
  return {.ready = num_events_ > 0, .fd = owned_.epoll.get()};
}

void VerbsTransport::disarm() {
  owned_.queues->drain();
  poll_async_events();
}

}  // namespace hips::verbs
