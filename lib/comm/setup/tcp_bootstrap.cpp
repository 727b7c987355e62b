#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>

#include <fmt/format.h>

#include "lib/base/wait/clock.hpp"
#include "lib/comm/control/wire.hpp"
#include "lib/comm/setup/bootstrap.hpp"
#include "lib/comm/setup/process_info.hpp"
#include "lib/comm/setup/socket.hpp"

namespace hips::comm {
namespace {

using log::Subsystem;

/// Limits what an unknown process can make us allocate. Members may send whole address tables.
constexpr std::uint32_t kMaxHelloBytes = 4096;
constexpr std::uint32_t kMaxFrameBytes = 1u << 30;

enum class BootstrapFrame : std::uint8_t {
  kWelcome = 1,  ///< root: all ranks are connected
  kRefused,      ///< root: this process is rejected; text
  kFailed,       ///< root: the rendezvous or an exchange failed; status
  kGather,       ///< member: its data in an exchange
  kGathered,     ///< root: the data of all ranks
};

Blob frame_with(BootstrapFrame type, std::span<const std::byte> body) {
  Blob frame(1 + body.size());
  frame[0] = static_cast<std::byte>(type);
  std::copy(body.begin(), body.end(), frame.begin() + 1);
  return frame;
}

/// The first frame of a member. These fields have the same format in every wire version, so that a mismatch of
/// versions can be reported.
struct Hello {
  std::uint32_t magic = kWireMagic;
  std::uint32_t version = kWireVersion;
  std::string token;
  Rank rank = -1;
  Rank size = 0;
  std::int32_t pid = 0;
  std::string host;
};

Blob encode(const Hello& hello) {
  ByteWriter writer;
  writer.put(hello.magic);
  writer.put(hello.version);
  writer.put_text(hello.token);
  writer.put(hello.rank);
  writer.put(hello.size);
  writer.put(hello.pid);
  writer.put_text(hello.host);
  return writer.take();
}

std::optional<Hello> decode_hello(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  Hello hello;
  hello.magic = reader.get<std::uint32_t>();
  hello.version = reader.get<std::uint32_t>();
  hello.token = reader.get_text();
  hello.rank = reader.get<Rank>();
  hello.size = reader.get<Rank>();
  hello.pid = reader.get<std::int32_t>();
  hello.host = reader.get_text();
  if (!reader.ok() || hello.magic != kWireMagic) return std::nullopt;
  return hello;
}

/// A connection with its incomplete incoming and outgoing frames.
struct Link {
  UniqueFd fd;
  FrameReader reader{kMaxHelloBytes};
  FrameWriter writer;
  std::string who;  ///< "pid 4 on host", for errors
};

/// `error` is that of the connection; 0 if the other end has closed it.
Status disconnected(const std::string& who, int error) {
  std::string text = who + " disconnected during the setup";
  if (error != 0) text += ": " + std::generic_category().message(error);
  return Status::error(Code::kPeerLost, std::move(text), Scope::kCommunicator);
}

std::int64_t now_ns() {
  return SystemClock::instance().now_ns();
}

std::int64_t after(std::int64_t begin_ns, std::int64_t duration_ns) {
  return duration_ns > INT64_MAX - begin_ns ? INT64_MAX : begin_ns + duration_ns;
}

/// Sleeps until a descriptor is ready or the deadline passes; false if it passed.
bool wait_for(std::vector<pollfd>& fds, std::int64_t deadline_ns) {
  while (true) {
    timespec timeout{};
    const bool bounded = deadline_ns != INT64_MAX;
    if (bounded) {
      const std::int64_t left_ns = std::max<std::int64_t>(deadline_ns - now_ns(), 0);
      timeout = {static_cast<time_t>(left_ns / 1'000'000'000), static_cast<long>(left_ns % 1'000'000'000)};
    }
    const int ready = ppoll(fds.data(), fds.size(), bounded ? &timeout : nullptr, nullptr);
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno == EINTR) continue;
    for (pollfd& fd : fds) fd.revents = POLLERR;  // the following reads will return the error
    return true;
  }
}

std::string seconds(std::int64_t ns) {
  return fmt::format("{:g} s", static_cast<double>(ns) / 1e9);
}

/// Writes all queued frames; waits while the socket is full.
bool drain(Link& link, std::int64_t deadline_ns) {
  while (true) {
    if (!link.writer.flush(link.fd.get())) return false;
    if (link.writer.empty()) return true;
    std::vector<pollfd> fds{{link.fd.get(), POLLOUT, 0}};
    if (!wait_for(fds, deadline_ns)) return false;
  }
}

std::string rank_list(const std::vector<Rank>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

/// An address and no name.
bool is_literal(const std::string& host) {
  in6_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 || inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

Result<std::vector<Blob>> from_all(Result<Inbound> incoming) {
  if (!incoming) return fail(incoming.error());
  return std::move(incoming->from_all);
}

/// For what else rank 0 opens: transports, shared memory, files of the program.
constexpr std::size_t kSpareDescriptors = 128;

/// Rank 0: accepts the connections of all ranks, then relays the exchanges.
class RootBootstrap final : public Bootstrap {
 public:
  explicit RootBootstrap(TcpRendezvous rendezvous)
      : rendezvous_(std::move(rendezvous)), members_(static_cast<std::size_t>(rendezvous_.size)) {}
  [[nodiscard]] Rank rank() const override { return 0; }
  [[nodiscard]] Rank size() const override { return rendezvous_.size; }

  Status rendezvous() {
    if (size() == 1) return Status::success();
    // A connection of each rank, now and later for control messages.
    allow_descriptors(2 * static_cast<std::size_t>(size()) + kSpareDescriptors);
    if (Status status = open_listeners(); !status.ok()) return status;
    const std::int64_t deadline_ns = after(now_ns(), rendezvous_.connect_timeout_ns);
    std::vector<Link> pending;
    while (true) {
      const std::vector<Rank> missing = missing_ranks();
      if (missing.empty()) break;
      std::vector<pollfd> fds = listening();
      for (const Link& link : pending) fds.push_back({link.fd.get(), POLLIN, 0});
      for (const Link& link : members_)
        if (link.fd.valid()) fds.push_back({link.fd.get(), POLLIN, 0});
      if (!wait_for(fds, deadline_ns))
        return give_up(Status::error(
            Code::kTimeout,
            fmt::format("{} of {} did not connect to {}:{} within {}", rank_list(missing), size(),
                        rendezvous_.host, rendezvous_.port, seconds(rendezvous_.connect_timeout_ns))));
      auto has_news = [at = fds.begin() + static_cast<std::ptrdiff_t>(listeners_.size())]() mutable {
        return (at++)->revents != 0;
      };
      // Greeting adds members, which have no descriptor in `fds` yet.
      std::vector<Link*> with_news;
      for (Link& link : pending)
        if (has_news()) with_news.push_back(&link);
      for (Rank r = 1; r < size(); ++r)
        if (member(r).fd.valid() && has_news())
          if (Status status = check_member(r); !status.ok())
            return notify_late_ranks(give_up(std::move(status)), pending);
      for (Link* const link : with_news)
        if (Status status = greet(*link); !status.ok()) {
          Status failure = give_up(std::move(status), link);
          link->fd.reset();
          return notify_late_ranks(std::move(failure), pending);
        }
      std::erase_if(pending, [](const Link& link) { return !link.fd.valid(); });
      if (Status status = accept_all(pending); !status.ok()) {
        status.rank = 0;
        status.message =
            fmt::format("rank 0, which has connections of {} of {} ranks: {}",
                        size() - static_cast<Rank>(missing_ranks().size()), size(), status.message);
        return notify_late_ranks(give_up(std::move(status)), pending);
      }
    }
    listeners_.clear();
    return send_to_all(frame_with(BootstrapFrame::kWelcome, {}));
  }

  Result<std::vector<Blob>> allgather(std::span<const std::byte> mine) override {
    return from_all(exchange({{mine.begin(), mine.end()}, {}}));
  }

  Result<Inbound> exchange(const Outbound& mine) override {
    if (!failure_.ok()) return fail(failure_);
    auto parts = take_parts();
    if (!parts) return fail(parts.error());
    parts->front() = mine;
    std::vector<Inbound> incoming(parts->size());
    ByteWriter of_all;
    for (Rank from = 0; from < size(); ++from) {
      Outbound& part = (*parts)[static_cast<std::size_t>(from)];
      of_all.put_bytes(part.to_all);
      incoming[0].from_all.push_back(std::move(part.to_all));
      for (PeerBlob& one : part.to_peers)
        incoming[static_cast<std::size_t>(one.peer)].from_peers.push_back({from, std::move(one.blob)});
    }
    // Before any rank has got anything: all fail alike.
    for (const Inbound& one : incoming) {
      std::size_t bytes = of_all.blob().size() + sizeof(std::uint32_t);
      for (const PeerBlob& from : one.from_peers)
        bytes += sizeof(Rank) + sizeof(std::uint32_t) + from.blob.size();
      if (bytes < kMaxFrameBytes) continue;
      return fail(give_up(Status::error(
          Code::kUnsupported,
          fmt::format("{} ranks have {} bytes for the setup of one rank; at most {} are possible", size(),
                      bytes, kMaxFrameBytes - 1))));
    }
    const std::int64_t deadline_ns = after(now_ns(), rendezvous_.exchange_timeout_ns);
    // One after the other: copies for all would be quadratic in their number.
    for (Rank r = 1; r < size(); ++r) {
      ByteWriter of_rank = of_all;
      put_peer_blobs(of_rank, incoming[static_cast<std::size_t>(r)].from_peers);
      member(r).writer.push(frame_with(BootstrapFrame::kGathered, of_rank.blob()));
      if (!drain(member(r), deadline_ns)) return fail(give_up(full_or_lost(r, deadline_ns)));
    }
    return std::move(incoming[0]);
  }

 private:
  /// What the other ranks pass to an exchange, by rank; that of rank 0 is empty.
  Result<std::vector<Outbound>> take_parts() {
    std::vector<Outbound> parts(static_cast<std::size_t>(size()));
    std::vector<Rank> missing;
    for (Rank r = 1; r < size(); ++r) missing.push_back(r);
    const std::int64_t deadline_ns = after(now_ns(), rendezvous_.exchange_timeout_ns);
    // At first each is looked at: what it sent may have been received before.
    std::vector<pollfd> fds(missing.size(), {-1, POLLIN, POLLIN});
    while (true) {
      std::vector<Rank> still;
      for (std::size_t i = 0; i < missing.size(); ++i) {
        const Rank r = missing[i];
        auto part = fds[i].revents != 0 ? take_part(r) : Result<std::optional<Outbound>>(std::nullopt);
        if (!part) return fail(give_up(std::move(part.error())));
        if (*part)
          parts[static_cast<std::size_t>(r)] = std::move(**part);
        else
          still.push_back(r);
      }
      missing = std::move(still);
      if (missing.empty()) break;
      fds.clear();
      for (const Rank r : missing) fds.push_back({member(r).fd.get(), POLLIN, 0});
      if (!wait_for(fds, deadline_ns))
        return fail(give_up(
            Status::error(Code::kTimeout,
                          fmt::format("{} of {} did not take part in the setup within {}", rank_list(missing),
                                      size(), seconds(rendezvous_.exchange_timeout_ns)))));
    }
    return parts;
  }

  Link& member(Rank r) { return members_[static_cast<std::size_t>(r)]; }

  [[nodiscard]] std::vector<Rank> missing_ranks() const {
    std::vector<Rank> ranks;
    for (Rank r = 1; r < size(); ++r)
      if (!members_[static_cast<std::size_t>(r)].fd.valid()) ranks.push_back(r);
    return ranks;
  }

  Status accept_all(std::vector<Link>& pending) const {
    for (const UniqueFd& listener : listeners_) {
      while (true) {
        auto fd = accept_tcp(listener.get(), rendezvous_.dead_after_ns);
        if (!fd) return std::move(fd).error();
        if (!*fd) break;
        pending.push_back(Link{std::move(**fd), FrameReader{kMaxHelloBytes}, {}, {}});
      }
    }
    return Status::success();
  }

  [[nodiscard]] std::vector<pollfd> listening() const {
    std::vector<pollfd> fds;
    for (const UniqueFd& listener : listeners_) fds.push_back({listener.get(), POLLIN, 0});
    return fds;
  }

  /// Members may reach any of the addresses that a name has. One that leads to this node alone, as Debian gives a host's own name,
  /// is for others the name of the node: then all of its addresses are meant.
  Status open_listeners() {
    auto addresses = resolve(rendezvous_.host, rendezvous_.port);
    if (!addresses) return addresses.error();
    const bool is_name = rendezvous_.host != "localhost" && !is_literal(rendezvous_.host);
    Status last;
    if (is_name && std::ranges::all_of(*addresses, is_loopback))
      *addresses = {any_address(AF_INET6, 0, rendezvous_.port), any_address(AF_INET, 0, rendezvous_.port)};
    for (const SocketAddress& address : *addresses) {
      auto listener = listen_tcp(address);
      if (listener) {
        listeners_.push_back(std::move(*listener));
        continue;
      }
      // Another program's port; or this one's, where an address of IPv6 stands for all.
      if (listener.error().sys_errno == EADDRINUSE && !listeners_.empty()) continue;
      last = std::move(listener.error());
      if (last.sys_errno == EADDRINUSE) break;
    }
    if (!listeners_.empty()) return Status::success();
    last.message += "; set HIPS_ROOT to an address of rank 0's node and a free port";
    return last;
  }

  /// Handles the hello of a pending connection once it is complete; drops the link unless it is a member's.
  Status greet(Link& link) {
    const auto state = link.reader.fill(link.fd.get());
    const auto frame = link.reader.next();
    if (!frame) {
      if (state == FrameReader::State::kBroken) refuse(link, "it does not use the HiPS protocol", true);
      if (state == FrameReader::State::kClosed) link.fd.reset();
      return Status::success();
    }
    const auto hello = decode_hello(*frame);
    if (!hello) {
      refuse(link, "it does not use the HiPS protocol", true);
      return Status::success();
    }
    link.who = fmt::format("rank {} (pid {} on {})", hello->rank, hello->pid, hello->host);
    if (hello->token != rendezvous_.token) {
      refuse(link, "its job token differs; check HIPS_JOB_TOKEN and HIPS_ROOT");
      return Status::success();
    }
    // Retrying cannot fix a different library version, so fail before the deadline.
    if (hello->version != kWireVersion)
      return Status::error(
          Code::kMismatch,
          fmt::format("{} has wire version {}, but rank 0 has {}; use the same HiPS on all ranks", link.who,
                      hello->version, kWireVersion));
    if (hello->size != size())
      return Status::error(Code::kMismatch,
                           fmt::format("{} expects {} ranks, but rank 0 expects {}; set the same HIPS_SIZE",
                                       link.who, hello->size, size()));
    if (hello->rank < 1 || hello->rank >= size()) {
      refuse(link, fmt::format("rank {} is out of range [1, {}]", hello->rank, size() - 1));
      return Status::success();
    }
    if (member(hello->rank).fd.valid()) {
      refuse(link, fmt::format("{} has that rank already", member(hello->rank).who));
      return Status::success();
    }
    link.reader.set_max_bytes(kMaxFrameBytes);
    member(hello->rank) = std::move(link);
    log::debug(Subsystem::kBootstrap, "{} is connected", member(hello->rank).who);
    return Status::success();
  }

  /// `plain`: answer in plain text, for a program that does not know our frames.
  void refuse(Link& link, const std::string& why, bool plain = false) {
    log::warn(Subsystem::kBootstrap, "rejected {}: {}", link.who.empty() ? "a connection" : link.who, why);
    if (plain) {
      static constexpr std::string_view kLine = "HiPS: this port accepts only the ranks of a HiPS job\n";
      (void)!send(link.fd.get(), kLine.data(), kLine.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    } else {
      ByteWriter body;
      body.put_text(
          fmt::format("rank 0 at {}:{} rejected {}: {}", rendezvous_.host, rendezvous_.port, link.who, why));
      link.writer.push(frame_with(BootstrapFrame::kRefused, body.blob()));
      link.writer.flush(link.fd.get());
    }
    link.fd.reset();
  }

  /// If a connected member disconnects, the job cannot start.
  Status check_member(Rank r) {
    Link& link = member(r);
    if (!link.fd.valid()) return Status::success();
    const auto state = link.reader.fill(link.fd.get());
    if (link.reader.next())
      return Status::error(Code::kMismatch,
                           fmt::format("{} sent an unexpected frame during the setup", link.who));
    return state == FrameReader::State::kOpen ? Status::success() : lost(r);
  }

  Status lost(Rank r) {
    Status status = disconnected(member(r).who, member(r).reader.sys_errno);
    status.rank = r;
    return status;
  }

  /// A member to which not all could be sent.
  Status full_or_lost(Rank r, std::int64_t deadline_ns) {
    if (now_ns() < deadline_ns) return lost(r);
    Status status = Status::error(Code::kTimeout,
                                  fmt::format("{} has not taken what was sent to it during the setup for {}",
                                              member(r).who, seconds(rendezvous_.exchange_timeout_ns)));
    status.rank = r;
    return status;
  }

  Result<std::optional<Outbound>> take_part(Rank r) {
    Link& link = member(r);
    const auto state = link.reader.fill(link.fd.get());
    auto frame = link.reader.next();
    if (!frame) {
      if (state != FrameReader::State::kOpen) return fail(lost(r));
      return std::optional<Outbound>();
    }
    if (frame->empty() || static_cast<BootstrapFrame>(frame->front()) != BootstrapFrame::kGather)
      return fail(Code::kMismatch, fmt::format("{} sent an unexpected frame during the setup", link.who));
    auto part = decode_outbound(std::span<const std::byte>(*frame).subspan(1));
    const auto is_rank = [&](const PeerBlob& one) { return one.peer >= 0 && one.peer < size(); };
    if (!part || !std::ranges::all_of(part->to_peers, is_rank))
      return fail(Code::kMismatch, fmt::format("{} sent invalid data in an exchange", link.who));
    return part;
  }

  Status send_to_all(const Blob& frame) {
    const std::int64_t deadline_ns = after(now_ns(), rendezvous_.exchange_timeout_ns);
    // One after the other: copies for all would be quadratic in their number.
    for (Rank r = 1; r < size(); ++r) {
      member(r).writer.push(frame);
      if (!drain(member(r), deadline_ns)) return give_up(full_or_lost(r, deadline_ns));
    }
    return Status::success();
  }

  /// Sends the failure to all connected members and to `also`, a link that is not a member's, and returns it.
  Status give_up(Status status, Link* also = nullptr) {
    failure_ = status;
    ByteWriter body;
    body.put_status(status);
    const Blob frame = frame_with(BootstrapFrame::kFailed, body.blob());
    const std::int64_t deadline_ns = after(now_ns(), 1'000'000'000);
    const auto tell = [&](Link& link) {
      if (!link.fd.valid()) return;
      link.writer.push(frame);
      drain(link, deadline_ns);
    };
    for (Link& link : members_) tell(link);
    if (also != nullptr) tell(*also);
    return status;
  }

  /// Keeps accepting for a moment, so that ranks that connect late get the same failure instead of a refused
  /// connection. Returns `failure`.
  Status notify_late_ranks(Status failure, std::vector<Link>& pending) {
    constexpr std::int64_t kStayNs = 2'000'000'000;
    ByteWriter body;
    body.put_status(failure);
    const Blob frame = frame_with(BootstrapFrame::kFailed, body.blob());
    const std::int64_t deadline_ns = after(now_ns(), kStayNs);
    auto num_not_notified = missing_ranks().size();
    if (num_not_notified > 0) --num_not_notified;  // the rank that failed was notified already or is lost
    while (num_not_notified > 0) {
      for (Link& link : pending) {
        if (!link.fd.valid()) continue;
        const auto state = link.reader.fill(link.fd.get());
        // Read first: closing a socket with unread bytes resets it, and the peer may lose our frame.
        const auto bytes = link.reader.next();
        const auto hello = bytes ? decode_hello(*bytes) : std::nullopt;
        if (hello && hello->token != rendezvous_.token) {
          refuse(link, "its job token differs; check HIPS_JOB_TOKEN and HIPS_ROOT");
        } else if (hello) {
          link.writer.push(frame);
          drain(link, deadline_ns);
          link.fd.reset();
          if (--num_not_notified == 0) break;
        } else if (state != FrameReader::State::kOpen) {
          link.fd.reset();
        }
      }
      if (num_not_notified == 0) break;
      std::erase_if(pending, [](const Link& link) { return !link.fd.valid(); });
      std::vector<pollfd> fds = listening();
      for (const Link& link : pending) fds.push_back({link.fd.get(), POLLIN, 0});
      if (!wait_for(fds, deadline_ns)) break;
      if (!accept_all(pending).ok()) break;
    }
    return failure;
  }

  TcpRendezvous rendezvous_;
  std::vector<UniqueFd> listeners_;
  std::vector<Link> members_;  ///< by rank; [0] is unused
  Status failure_;
};

/// Any other rank.
class MemberBootstrap final : public Bootstrap {
 public:
  explicit MemberBootstrap(TcpRendezvous rendezvous) : rendezvous_(std::move(rendezvous)) {}
  [[nodiscard]] Rank rank() const override { return rendezvous_.rank; }
  [[nodiscard]] Rank size() const override { return rendezvous_.size; }

  Status rendezvous() {
    if (Status status = connect_to_root(); !status.ok()) return status;
    Hello hello;
    hello.token = rendezvous_.token;
    hello.rank = rank();
    hello.size = size();
    hello.pid = getpid();
    hello.host = host_name();
    link_.writer.push(encode(hello));
    link_.reader.set_max_bytes(kMaxFrameBytes);
    // Rank 0 may have started later than this rank, and its timeout error names the missing ranks. So wait for
    // that one.
    auto frame = answer(BootstrapFrame::kWelcome, after(now_ns(), 2 * rendezvous_.connect_timeout_ns));
    return frame ? Status::success() : frame.error();
  }

  Result<std::vector<Blob>> allgather(std::span<const std::byte> mine) override {
    return from_all(exchange({{mine.begin(), mine.end()}, {}}));
  }

  Result<Inbound> exchange(const Outbound& mine) override {
    if (!failure_.ok()) return fail(failure_);
    link_.writer.push(frame_with(BootstrapFrame::kGather, encode_outbound(mine)));
    const auto body = answer(BootstrapFrame::kGathered,
                             after(now_ns(), after(rendezvous_.exchange_timeout_ns, 1'000'000'000)));
    if (!body) return fail(body.error());
    ByteReader reader(*body);
    Inbound incoming;
    for (Rank r = 0; r < size(); ++r) {
      const auto part = reader.get_bytes();
      incoming.from_all.emplace_back(part.begin(), part.end());
    }
    incoming.from_peers = get_peer_blobs(reader);
    if (!reader.ok())
      return fail(failed(Status::error(Code::kMismatch, "rank 0 sent invalid data in an exchange")));
    return incoming;
  }

 private:
  Status failed(Status status) {
    failure_ = status;
    return status;
  }

  Status connect_to_root() {
    const std::int64_t deadline_ns = after(now_ns(), rendezvous_.connect_timeout_ns);
    std::int64_t pause_ns = 10'000'000;
    std::string cause;
    while (true) {
      // Resolve again each time: in some clusters the name of rank 0 exists only after it starts.
      auto addresses = resolve(rendezvous_.host, rendezvous_.port);
      if (!addresses) cause = addresses.error().message;
      for (std::size_t i = 0; addresses && i < addresses->size(); ++i) {
        auto fd = connect_tcp((*addresses)[i], rendezvous_.dead_after_ns);
        if (!fd) {
          cause = fd.error().message;
          continue;
        }
        std::vector<pollfd> fds{{fd->get(), POLLOUT, 0}};
        const bool ready = wait_for(fds, std::min(deadline_ns, after(now_ns(), 5'000'000'000)));
        const int error = ready ? connect_error(fd->get()) : ETIMEDOUT;
        if (error == 0 && !connected_to_itself(fd->get())) {
          link_.fd = std::move(*fd);
          return Status::success();
        }
        cause = error == 0 ? "connection refused" : std::generic_category().message(error);
      }
      if (now_ns() + pause_ns >= deadline_ns)
        return failed(Status::error(Code::kTimeout,
                                    fmt::format("rank {} could not reach rank 0 at {}:{} within {}: {}; is "
                                                "rank 0 running, and HIPS_ROOT the same on all ranks?",
                                                rank(), rendezvous_.host, rendezvous_.port,
                                                seconds(rendezvous_.connect_timeout_ns), cause)));
      const timespec pause{0, static_cast<long>(pause_ns)};
      nanosleep(&pause, nullptr);
      pause_ns = std::min<std::int64_t>(2 * pause_ns, 500'000'000);
    }
  }

  /// If the port is ephemeral and nobody listens on it yet, the kernel may assign it to the connecting socket,
  /// and TCP then connects the socket to itself.
  static bool connected_to_itself(int fd) {
    SocketAddress peer;
    peer.length = sizeof peer.storage;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer.length) != 0) return false;
    return to_string(peer) == to_string(local_address(fd));
  }

  /// Waits for a frame of rank 0. A rejection or failure of rank 0 becomes the error of this rank.
  Result<Blob> answer(BootstrapFrame wanted, std::int64_t deadline_ns) {
    while (true) {
      const bool sent = link_.writer.flush(link_.fd.get());
      const auto state = link_.reader.fill(link_.fd.get());
      if (auto frame = link_.reader.next(); frame && !frame->empty()) {
        const BootstrapFrame type = static_cast<BootstrapFrame>(frame->front());
        frame->erase(frame->begin());
        if (type == wanted) return std::move(*frame);
        ByteReader reader(*frame);
        if (type == BootstrapFrame::kRefused)
          return fail(failed(Status::error(Code::kInvalidArgument, reader.get_text())));
        if (type == BootstrapFrame::kFailed) return fail(failed(reader.get_status()));
        return fail(
            failed(Status::error(Code::kMismatch, "rank 0 sent an unexpected frame during the setup")));
      }
      if (!sent || state != FrameReader::State::kOpen) {
        Status status = disconnected(fmt::format("rank 0 at {}:{}", rendezvous_.host, rendezvous_.port),
                                     link_.reader.sys_errno);
        status.rank = 0;
        return fail(failed(std::move(status)));
      }
      std::vector<pollfd> fds{
          {link_.fd.get(), static_cast<short>(link_.writer.empty() ? POLLIN : POLLIN | POLLOUT), 0}};
      if (!wait_for(fds, deadline_ns))
        return fail(failed(Status::error(
            Code::kTimeout, fmt::format("rank 0 at {}:{} did not answer rank {} in time during the setup",
                                        rendezvous_.host, rendezvous_.port, rank()))));
    }
  }

  TcpRendezvous rendezvous_;
  Link link_;
  Status failure_;
};

}  // namespace

Result<std::unique_ptr<Bootstrap>> make_tcp_bootstrap(const TcpRendezvous& rendezvous) {
  if (rendezvous.rank == 0) {
    auto bootstrap = std::make_unique<RootBootstrap>(rendezvous);
    if (Status status = bootstrap->rendezvous(); !status.ok()) return fail(std::move(status));
    return bootstrap;
  }
  auto bootstrap = std::make_unique<MemberBootstrap>(rendezvous);
  if (Status status = bootstrap->rendezvous(); !status.ok()) return fail(std::move(status));
  return bootstrap;
}

}  // namespace hips::comm
