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

/// What the planner assumes of a NIC that does not tell its rate: 10 Gbit/s.
constexpr double kUsualBytesPerS = 10e9 / 8;
/// With its header it fills two of the largest packets, which are what loopback carries and the kernel hands
/// NICs, and leaves nothing for a third; the kernel's copies at both ends still meet in the caches. Measured
/// over loopback from 1 MiB on, 2 to 9 ranks: mostly 0.8 to 0.95 of the time of 64 KiB, and two thirds of 128
/// KiB's.
constexpr std::size_t kSegmentBytes = 130'816;
/// Nothing in the frames or the kernel limits one request; a terabyte keeps sums far from overflow.
constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 40;

double bytes_per_s(const std::string& device) {
  std::ifstream file("/sys/class/net/" + device + "/speed");
  double megabits = 0;  // -1 or an error where the device has none
  return file >> megabits && megabits > 0 ? megabits * 1e6 / 8 : kUsualBytesPerS;
}

}  // namespace

Token Token::random() {
  Token token;
  if (getrandom(&token, sizeof token, 0) != sizeof token) {
    std::random_device device;
    const auto word = [&] { return std::uint64_t{device()} << 32 | device(); };
    token = {word(), word()};
  }
  return token;
}

Result<std::unique_ptr<transport::Transport>> create(const Options& options) {
  return TcpTransport::create(options);
}

Result<std::unique_ptr<transport::Transport>> TcpTransport::create(const Options& options) {
  if (options.queue_entries < 1 || options.queue_entries > (1u << 20)) {
    return fail(Code::kInvalidArgument, fmt::format("tcp: queue_entries is {}; it must lie in [1, {}]",
                                                    options.queue_entries, 1u << 20));
  }
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return fail(socket_error(errno, "tcp: epoll_create1"));
  auto doorman =
      Doorman::create(options.address, {options.dead_after_ns, options.socket_buffer_bytes}, epoll.get());
  if (!doorman) return fail(std::move(doorman).error());
  std::unique_ptr<TcpTransport> transport(new TcpTransport(options, *std::move(doorman), std::move(epoll)));
  if (Status status = transport->watch(transport->doorman_.listener(), Watched::kListener, 0, EPOLLIN);
      !status.ok())
    return fail(std::move(status));
  log::info(log::Subsystem::kTransport, "tcp: {}", transport->limits_.description);
  return transport;
}

TcpTransport::TcpTransport(const Options& options, Doorman doorman, UniqueFd epoll)
    : options_(options),
      link_options_{options.dead_after_ns, options.socket_buffer_bytes},
      pid_(getpid()),
      doorman_(std::move(doorman)),
      epoll_(std::move(epoll)) {
  limits_ = {.name = "tcp",
             .device = options.device,
             .latency_ns = options.latency_ns,
             .bandwidth_bytes_per_s = bytes_per_s(options.device),
             .max_message_bytes = kMaxMessageBytes,
             .max_posted = options.queue_entries,
             .registers_freely = true,
             .arrives_before_connect = false,
             .asynchronous = true};
  limits_.best_segment_bytes = kSegmentBytes;
  limits_.best_credits = 8;  // the kernel's two queues hold some of them
  limits_.description = fmt::format("{}, listening on {}, {:g} Gbit/s", options.device,
                                    to_string(doorman_.address()), limits_.bandwidth_bytes_per_s * 8e-9);
}

TcpTransport::~TcpTransport() {
  // A child's copies of the sockets may be closed, but a goodbye or a shutdown would reach the parent's
  // peers.
  if (pid_ != getpid()) return;
  for (std::size_t peer = 0; peer < endpoints_.size(); ++peer) close(static_cast<PeerId>(peer));
  constexpr timespec kNap{0, 100'000};
  for (step_farewells(); !farewells_.empty(); step_farewells()) nanosleep(&kNap, nullptr);
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
  // What is half received or still to be sent must not touch it any more.
  for (const auto& mine : endpoints_) {
    if (mine == nullptr || mine->state != Endpoint::State::kConnected) continue;
    if (mine->inbox.payload_under_way() && mine->frame.memory == memory &&
        mine->frame.kind != FrameHeader::Kind::kGetReply)
      mine->inbox.drop_payload();
    if (!mine->outbox.answers_from(memory)) continue;
    break_endpoint(*mine, Status::error(Code::kInternal,
                                        fmt::format("tcp: {}: memory was deregistered while {} read from it",
                                                    options_.device, mine->name),
                                        Scope::kPeer));
  }
}

Result<std::span<std::byte>> TcpTransport::attach(PeerId /*peer*/, const RemoteRegion& /*region*/) {
  return fail(Code::kUnsupported, fmt::format("tcp: {} reaches memory by requests only", options_.device));
}

// --- Sleeping --------------------------------------------------------------------------------------------

// The epoll set always watches and is level-triggered: what nobody has read keeps it readable, so there is
// nothing to arm and no wake-up to lose.
Armed TcpTransport::arm() {
  bool ready = !ready_.empty() || !finished_.empty() || !broken_.empty();
  if (!ready) {
    epoll_event event;
    ready = epoll_wait(epoll_.get(), &event, 1, 0) > 0;
  }
  return {.ready = ready, .fd = epoll_.get()};
}

}  // namespace hips::tcp
