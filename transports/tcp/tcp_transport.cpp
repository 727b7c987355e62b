#include "transports/tcp/tcp_transport.hpp"

#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "lib/base/log.hpp"

namespace hips::tcp {

using transport::Armed;
using transport::MemoryDesc;
using transport::MemoryId;
using transport::PeerId;
using transport::Region;
using transport::RemoteRegion;

namespace {

/// Assumed for a NIC that does not report its rate: 10 Gbit/s.
constexpr double kUsualBytesPerS = 10e9 / 8;
/// A segment and its header fill exactly two packets of the largest size, which loopback and segmentation
/// offload use. It is small enough that the receiver's copy finds the data in cache. Measured over loopback from
/// 1 MiB on with 2 to 9 ranks: mostly 0.8 to 0.95 of the time with 64 KiB, and two thirds of that with 128 KiB.
constexpr std::size_t kSegmentBytes = 130'816;
/// Neither frames nor the kernel limit a request. A terabyte keeps sums far from overflow.
constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 40;

double bytes_per_s(const std::string& device) {
  std::ifstream file("/sys/class/net/" + device + "/speed");
  double megabits = 0;  // -1 or an error if the device has no rate
  return file >> megabits && megabits > 0 ? megabits * 1e6 / 8 : kUsualBytesPerS;
}

}  // namespace

EndpointToken EndpointToken::random() {
  EndpointToken token;
  if (getrandom(&token, sizeof token, 0) != sizeof token) {
    std::random_device device;
    const auto word = [&] { return std::uint64_t{device()} << 32 | device(); };
    token = {word(), word()};
  }
  return token;
}

Result<std::unique_ptr<transport::Transport>> create(const TcpOptions& options) {
  return TcpTransport::create(options);
}

Result<std::unique_ptr<transport::Transport>> TcpTransport::create(const TcpOptions& options) {
  if (options.queue_entries < 1 || options.queue_entries > (1u << 20)) {
    return fail(Code::kInvalidArgument, fmt::format("tcp: queue_entries is {}; it must lie in [1, {}]",
                                                    options.queue_entries, 1u << 20));
  }
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return fail(socket_error(errno, "tcp: epoll_create1"));
  auto acceptor =
      Acceptor::create(options.address, {options.dead_after_ns, options.socket_buffer_bytes}, epoll.get());
  if (!acceptor) return fail(std::move(acceptor).error());
  std::unique_ptr<TcpTransport> transport(new TcpTransport(options, *std::move(acceptor), std::move(epoll)));
  if (Status status = transport->watch(transport->acceptor_.listener(), Watched::kListener, 0, EPOLLIN);
      !status.ok())
    return fail(std::move(status));
  log::info(log::Subsystem::kTransport, "tcp: {}", transport->limits_.description);
  return transport;
}

TcpTransport::TcpTransport(const TcpOptions& options, Acceptor acceptor, UniqueFd epoll)
    : options_(options),
      link_options_{options.dead_after_ns, options.socket_buffer_bytes},
      pid_(getpid()),
      acceptor_(std::move(acceptor)),
      epoll_(std::move(epoll)) {
  limits_ = {.name = "tcp",
             .device = options.device,
             .latency_ns = options.latency_ns,
             .bandwidth_bytes_per_s = bytes_per_s(options.device),
             .max_message_bytes = kMaxMessageBytes,
             .max_posted = options.queue_entries,
             .registers_freely = true,
             .arrives_before_connect = false,
             .polls_by_system_call = true,
             .asynchronous = true};
  limits_.best_segment_bytes = kSegmentBytes;
  limits_.best_credits = 8;  // some of them wait in the kernel's two socket buffers
  limits_.description = fmt::format("{}, listening on {}, {:g} Gbit/s", options.device,
                                    to_string(acceptor_.address()), limits_.bandwidth_bytes_per_s * 8e-9);
}

TcpTransport::~TcpTransport() {
  // A forked child may close its copies of the sockets. A close frame or shutdown() would reach the parent's
  // peers.
  if (pid_ != getpid()) return;
  for (std::size_t peer = 0; peer < endpoints_.size(); ++peer) close(static_cast<PeerId>(peer));
  constexpr timespec kNap{0, 100'000};
  for (progress_closing(); !closing_connections_.empty(); progress_closing()) nanosleep(&kNap, nullptr);
}

Status TcpTransport::watch(int fd, Watched kind, std::uint32_t number, std::uint32_t events,
                           std::uint32_t before) {
  if (events == before) return Status::success();
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<std::uint64_t>(kind) << 32 | number;
  const int action = events == 0 ? EPOLL_CTL_DEL : before == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  if (epoll_ctl(epoll_.get(), action, fd, &event) != 0) return socket_error(errno, "tcp: epoll_ctl");
  return Status::success();
}

// --- Memory ----------------------------------------------------------------------------------------------

Result<Region> TcpTransport::register_memory(const MemoryDesc& memory) {
  return memory_.add(memory);
}

void TcpTransport::deregister(MemoryId memory) {
  memory_.remove(memory);
  // Partly received payloads and queued answers must not touch the memory any more.
  for (const auto& endpoint : endpoints_) {
    if (endpoint == nullptr || endpoint->state != TcpEndpoint::State::kConnected) continue;
    if (endpoint->inbox.in_payload() && endpoint->frame.memory == memory &&
        endpoint->frame.kind != FrameHeader::Kind::kGetReply)
      endpoint->inbox.drop_payload();
    if (!endpoint->outbox.answers_from(memory)) continue;
    break_endpoint(*endpoint,
                   Status::error(Code::kInternal,
                                 fmt::format("tcp: {}: memory was deregistered while {} read from it",
                                             options_.device, endpoint->name),
                                 Scope::kPeer));
  }
}

void TcpTransport::take_back(std::span<const std::byte> memory) noexcept {
  for (const auto& endpoint : endpoints_) {
    if (endpoint == nullptr || endpoint->state == TcpEndpoint::State::kBroken) continue;
    Outbox& outbox = endpoint->outbox;
    if (outbox.awaits_release()) {
      outbox.read_releases(endpoint->fd.get());
      if (outbox.done() != nullptr) set_finished(*endpoint);
    }
    if (outbox.take_back(memory)) continue;
    // The kernel sends nothing more of it either.
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    if (endpoint->fd.valid())
      (void)setsockopt(endpoint->fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    try {
      break_endpoint(
          *endpoint,
          Status::error(
              Code::kOutOfMemory,
              fmt::format("tcp: {}: a call has failed, and there is no copy of what {} had still to get",
                          options_.device, endpoint->name),
              Scope::kPeer));
    } catch (const std::bad_alloc&) {
      // Nothing is sent from now on, and the next poll finds the end.
      endpoint->send_error = ENOMEM;
      set_ready(*endpoint);
    }
  }
}

Result<std::span<std::byte>> TcpTransport::attach(PeerId /*peer*/, const RemoteRegion& /*region*/) {
  return fail(Code::kUnsupported,
              fmt::format("tcp: {} cannot map peer memory; use put or get requests", options_.device));
}

// --- Sleeping --------------------------------------------------------------------------------------------

// The epoll set is level-triggered: unread data keeps it readable. There is nothing to arm, and no wake-up can
// be lost, as poll() leaves nothing in user space that it does not report.
Armed TcpTransport::arm() {
  return {.ready = !ready_.empty() || !finished_.empty() || !broken_.empty(),
          .fd = epoll_.get(),
          .stays_readable = true};
}

}  // namespace hips::tcp
