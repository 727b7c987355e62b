// The links of the control plane: connecting to a process at its addresses, the hello, and broken links.

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/base/log.hpp"
#include "lib/comm/control/control_impl.hpp"
#include "lib/comm/setup/interfaces.hpp"

namespace hips::comm {
namespace {

using log::Subsystem;

/// Longer than a network round trip. A stopped process only delays the next address by this long.
constexpr std::int64_t kHelloWaitNs = 2'000'000'000;

/// How long a process without descriptors leaves connections pending.
constexpr std::int64_t kDescriptorWaitNs = 100'000'000;

/// Returns why a link ended. The text must not depend on which rank noticed it, or how.
std::string cause_of(int error) {
  switch (error) {
    case 0:
    case EPIPE:
    case ECONNRESET:
      return kProcessEnded;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return "died: its node does not respond";
    default:
      return fmt::format("is lost: its control link broke: {}", std::generic_category().message(error));
  }
}

}  // namespace

void Control::Impl::accept_all() {
  if (now_ns() < accept_again_ns_) return;
  accept_again_ns_ = 0;
  for (const auto& [reach, listener] : listeners_) {
    while (true) {
      auto fd = accept_tcp(listener.first.get(), options_.dead_after_ns);
      if (!fd) {
        // The connection stays pending, and the listener readable.
        accept_again_ns_ = now_ns() + kDescriptorWaitNs;
        if (!std::exchange(warned_of_descriptors_, true))
          log::warn(Subsystem::kControl, "control connections have to wait: {}", fd.error().message);
        return;
      }
      if (!*fd) break;
      Link& link = links_.emplace_back(std::move(**fd));
      send(link, hello({}));
    }
  }
}

/// `to`: the process that we want to reach; unset on accepted connections, whose peer is unknown.
ByteWriter Control::Impl::hello(const ProcessUid& to) const {
  ByteWriter writer;
  writer.put(ControlFrame::kHello);
  writer.put(kWireMagic);
  writer.put(kWireVersion);
  writer.put_text(options_.token);
  writer.put(options_.self.uid.high);
  writer.put(options_.self.uid.low);
  writer.put(to.high);
  writer.put(to.low);
  return writer;
}

Control::Impl::Link& Control::Impl::link_to(const ProcessInfo& process) {
  for (Link& link : links_)
    if (link.uid == process.uid && !link.broken) return link;
  // In the list when it is whole: without a descriptor it would look like a broken one, and its process dead.
  std::list<Link> made;
  Link& link = made.emplace_back(UniqueFd());
  link.uid = process.uid;
  link.dialled = true;
  link.unconfirmed.push_back(hello(process.uid).take());
  for (const std::string& host : process.control.hosts) {
    // The addresses are numeric, so this does no name lookup.
    if (auto addresses = resolve(host, process.control.port))
      link.candidates.insert(link.candidates.end(), addresses->begin(), addresses->end());
  }
  if (link.candidates.size() > 1) {
    if (const auto mine = local_networks())
      link.candidates = by_reachability(std::move(link.candidates), *mine);
  }
  dial(link);
  links_.splice(links_.end(), made);
  wake();
  return link;
}

/// Starts to connect to the next address. The link breaks if none is left.
void Control::Impl::dial(Link& link) {
  while (!link.candidates.empty()) {
    link.trying = link.candidates.front();
    link.candidates.erase(link.candidates.begin());
    auto fd = connect_tcp(link.trying, options_.dead_after_ns);
    if (!fd) {
      note_failed(link, fd.error().sys_errno);
      continue;
    }
    link.fd = std::move(*fd);
    link.reader = FrameReader(kMaxFrameBytes);
    link.writer = FrameWriter();
    for (const auto& frame : link.unconfirmed) link.writer.push(frame);
    link.connecting = true;
    link.deadline_ns = link.candidates.empty() ? INT64_MAX : now_ns() + kHelloWaitNs;
    return;
  }
  // If every address refused or reset the connection, the process has ended.
  const bool refused = link.all_refused && !link.failures.empty();
  break_link(link, refused ? kProcessEnded
                           : fmt::format("cannot be reached for control messages: {}",
                                         fmt::join(link.failures, "; ")));
}

void Control::Impl::note_failed(Link& link, int error) {
  link.failures.push_back(
      fmt::format("{}: {}", to_string(link.trying),
                  error == 0 ? "a different process listens there" : std::generic_category().message(error)));
  link.all_refused = link.all_refused && (error == ECONNREFUSED || error == ECONNRESET);
}

/// An address that sends no hello may belong to an unknown process or to a stopped one. Retry it after the
/// others.
void Control::Impl::expire_dials(std::int64_t now_ns) {
  for (Link& link : links_) {
    if (link.broken || !link.dialled || link.greeted || now_ns < link.deadline_ns) continue;
    link.candidates.push_back(link.trying);
    dial(link);
  }
}

void Control::Impl::send(Link& link, const ByteWriter& frame) {
  if (link.broken) return;
  if (link.dialled && !link.greeted) link.unconfirmed.push_back(frame.blob());
  link.writer.push(frame.blob());
  // Write immediately, not when the thread next runs: a leave message must be sent before the process exits.
  if (!link.connecting && !link.writer.flush(link.fd.get())) lose(link, errno);
  if (!link.writer.empty()) wake();
}

/// The connection has ended. Without a hello it may have been to an unknown process: try the next address.
void Control::Impl::lose(Link& link, int error) {
  if (link.dialled && !link.greeted && !link.candidates.empty()) {
    note_failed(link, error);
    dial(link);
  } else {
    break_link(link, cause_of(error));
  }
}

void Control::Impl::break_link(Link& link, std::string cause) {
  if (link.broken) return;
  link.broken = true;
  link.cause = std::move(cause);
  wake();
}

void Control::Impl::service(Link& link) {
  if (link.broken) return;
  if (link.connecting) {
    pollfd ready{link.fd.get(), POLLOUT, 0};
    if (poll(&ready, 1, 0) <= 0) return;
    if (const int error = connect_error(link.fd.get()); error != 0) {
      note_failed(link, error);
      dial(link);
      return;
    }
    link.connecting = false;
  }
  const bool writable = link.writer.flush(link.fd.get());
  // All that has arrived: an end of the process, or of the connection, comes after its last words.
  auto state = FrameReader::State::kOpen;
  for (bool had_frame = true; had_frame && state == FrameReader::State::kOpen;) {
    state = link.reader.fill(link.fd.get());
    had_frame = false;
    while (auto frame = link.reader.next()) {
      had_frame = true;
      take_frame(link, *frame);
      // The hello of a different process makes us connect to the next address.
      if (link.broken || link.connecting) return;
    }
  }
  const int read_error = link.reader.sys_errno;
  if (state == FrameReader::State::kBroken)
    break_link(link, "is lost: it sent an invalid HiPS control frame");
  else if (state == FrameReader::State::kClosed)
    lose(link, read_error);
  else if (!writable)
    lose(link, EPIPE);
}

bool Control::Impl::take_hello(Link& link, ByteReader& reader) {
  const auto magic = reader.get<std::uint32_t>();
  const auto version = reader.get<std::uint32_t>();
  const std::string token = reader.get_text();
  ProcessUid uid, to;
  uid.high = reader.get<std::uint64_t>();
  uid.low = reader.get<std::uint64_t>();
  to.high = reader.get<std::uint64_t>();
  to.low = reader.get<std::uint64_t>();
  std::string why;
  if (!reader.ok() || magic != kWireMagic)
    why = "it does not use the HiPS protocol";
  else if (version != kWireVersion)
    why = fmt::format("it has wire version {}, but this process has {}", version, kWireVersion);
  else if (token != options_.token)
    why = "its job token differs; check HIPS_JOB_TOKEN";
  if (!why.empty()) {
    log::warn(Subsystem::kControl, "rejected a control connection: {}", why);
    break_link(link, "is lost: its address answers, but " + why);
    return false;
  }
  if (to != ProcessUid() && to != options_.self.uid) {
    log::debug(Subsystem::kControl, "a control connection was meant for another process at this address");
    break_link(link, "is lost: its connection was meant for another process");
    return false;
  }
  if (link.uid != ProcessUid() && link.uid != uid) {
    note_failed(link, 0);
    dial(link);
    return false;
  }
  link.uid = uid;
  link.greeted = true;
  link.unconfirmed.clear();
  link.candidates.clear();
  return true;
}

void Control::Impl::drop_broken_links() {
  // process_died() may break further links, so start over after each.
  for (auto link = links_.begin(); link != links_.end();) {
    if (!link->broken) {
      ++link;
      continue;
    }
    // Another link may hold an unread message with the reason. Read it first.
    for (Link& other : links_) service(other);
    for (auto& [id, group] : groups_) {
      std::erase_if(group.links, [&](const auto& entry) { return entry.second == &*link; });
      if (group.hub_link != &*link) continue;
      group.hub_link = nullptr;
      // Our leave message can no longer reach it. If it has died, the next hub gets one (confirm_death()).
      if (group.leaving && link->uid == ProcessUid()) group.done = true;
    }
    std::erase_if(early_joins_, [&](const EarlyJoin& join) { return join.link == &*link; });
    const ProcessUid uid = link->uid;
    const std::string cause = link->cause;
    links_.erase(link);
    if (uid != ProcessUid()) process_died(uid, cause);
    link = links_.begin();
  }
}

}  // namespace hips::comm
