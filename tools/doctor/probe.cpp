#include "tools/doctor/probe.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <deque>
#include <map>

#include <fmt/format.h>

#include "lib/base/os/shared_memory.hpp"
#include "lib/base/wait/clock.hpp"

namespace hips::doctor {
namespace {

using transport::Event;
using transport::Transport;
using transport::Verb;
using transport::WorkRequest;

/// Number of empty messages of a trial, before a large one. The first is a warm-up.
constexpr std::uint32_t kNumSmall = 9;
constexpr std::uint32_t kNumPings = kNumSmall + 1;
/// Bit of the token of an answer.
constexpr std::uint32_t kEcho = 1U << 8;

std::int64_t now_ns() {
  return SystemClock::instance().now_ns();
}

/// Registered memory: the transport sends from the first half, and peers write to the second.
struct ProbeBuffer {
  SharedMemory memory;
  transport::Region region;
};

/// One end of a path, from open() to close().
struct Attempt {
  Trial trial;
  Transport* transport = nullptr;
  transport::PeerId peer = -1;
  ProbeBuffer* buffer = nullptr;
  transport::RemoteRegion remote;
  std::uint32_t sent = 0, answered = 0, echoed = 0;
  std::int64_t sent_ns = 0;
  std::vector<double> round_trips_us;
  std::deque<std::uint32_t> outbox;  ///< tokens to post
  bool failed = false;

  [[nodiscard]] bool done() const {
    return failed || (answered == kNumPings && echoed == kNumPings && outbox.empty());
  }
  void set_failed(std::string why) {
    if (failed) return;
    failed = true;
    trial.error = std::move(why);
    if (answered >= kNumSmall)
      trial.error = fmt::format("small messages pass, but {} KiB do not: {}", kLargeBytes >> 10, trial.error);
  }
};

void send_next(Attempt& attempt) {
  if (attempt.sent == kNumPings) return;
  attempt.outbox.push_back(attempt.sent++);
  attempt.sent_ns = now_ns();
}

void flush(Attempt& attempt) {
  while (!attempt.outbox.empty() && !attempt.failed) {
    const std::uint32_t token = attempt.outbox.front();
    WorkRequest request;
    request.verb = Verb::kPutNotify;
    request.peer = attempt.peer;
    request.token = token;
    if (token == kNumPings - 1) {
      request.pieces[0] = {attempt.buffer->memory.data(), kLargeBytes, attempt.buffer->region.local};
      request.num_pieces = 1;
      request.remote = &attempt.remote;
      request.remote_offset = kLargeBytes;
    }
    if (attempt.transport->post(std::span(&request, 1)) == 0) return;
    attempt.outbox.pop_front();
  }
}

void take(Attempt& attempt, const Event& event) {
  switch (event.kind) {
    case Event::Kind::kCompletion:
    case Event::Kind::kPortUp:
      return;
    case Event::Kind::kPeerDead:
    case Event::Kind::kPortDown:
      attempt.set_failed(event.error.ok() ? "the other end has closed the connection" : event.error.message);
      return;
    case Event::Kind::kArrival:
      break;
  }
  if ((event.token & kEcho) == 0) {
    ++attempt.echoed;
    attempt.outbox.push_back(event.token | kEcho);
    return;
  }
  if (attempt.answered > 0 && attempt.answered < kNumSmall)
    attempt.round_trips_us.push_back(static_cast<double>(now_ns() - attempt.sent_ns) / 1000);
  ++attempt.answered;
  send_next(attempt);
}

/// Probes the paths of one rank, round by round.
class Prober {
 public:
  Prober(comm::Bootstrap& bootstrap, const ProbeTransports& transports, const ProbeOptions& options)
      : bootstrap_(bootstrap), transports_(transports), options_(options) {}
  ~Prober() {
    for (auto& [transport, buffer] : buffers_) transport->deregister(buffer.region.local);
  }
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  Result<ProbeResult> run(std::span<const ProbePath> paths) {
    const auto rounds = in_rounds(paths, bootstrap_.size());
    const std::int64_t end_ns = now_ns() + options_.budget_ns;
    ProbeResult result;
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      std::vector<Attempt> attempts = open(rounds[i]);
      // Rank 0's clock decides, so that all ranks stop in the same round.
      auto last = exchange(attempts, now_ns() >= end_ns);
      if (!last) return fail(std::move(last).error());
      if (*last) {
        for (std::size_t rest = i; rest < rounds.size(); ++rest) result.untried += rounds[rest].size();
        close(attempts);
        break;
      }
      ping(attempts);
      close(attempts);
      for (Attempt& attempt : attempts) result.trials.push_back(std::move(attempt.trial));
    }
    // No rank destroys its transports while a peer still waits for its shutdown.
    auto all = bootstrap_.allgather({});
    if (!all) return fail(std::move(all).error());
    return result;
  }

 private:
  [[nodiscard]] bool mine(const ProbePath& path) const {
    return path.a == bootstrap_.rank() || path.b == bootstrap_.rank();
  }

  ProbeBuffer* buffer_of(Transport& transport, std::string& error) {
    const auto known = buffers_.find(&transport);
    if (known != buffers_.end()) return &known->second;
    auto memory = SharedMemory::create(2 * kLargeBytes);
    if (!memory) {
      error = memory.error().message;
      return nullptr;
    }
    auto region = transport.register_memory({.address = memory->data(),
                                             .bytes = memory->size(),
                                             .kind = transport::MemoryKind::kShared,
                                             .fd = memory->fd()});
    if (!region) {
      error = region.error().message;
      return nullptr;
    }
    return &buffers_.emplace(&transport, ProbeBuffer{*std::move(memory), *std::move(region)}).first->second;
  }

  /// Opens this rank's ends of a round, and keeps their addresses for exchange().
  std::vector<Attempt> open(std::span<const ProbePath> round) {
    std::vector<Attempt> attempts;
    addresses_.clear();
    for (const ProbePath& path : round) {
      if (!mine(path)) continue;
      Attempt attempt;
      attempt.trial.path = path;
      attempt.trial.from = bootstrap_.rank();
      attempt.transport = transports_.on(path.a == bootstrap_.rank() ? path.a_rail : path.b_rail);
      attempt.peer = static_cast<transport::PeerId>(attempts.size());
      transport::Address address;
      std::string error = "this end has no transport for it";
      if (attempt.transport != nullptr) attempt.buffer = buffer_of(*attempt.transport, error);
      if (attempt.buffer != nullptr) {
        if (auto opened = attempt.transport->open(attempt.peer)) {
          address = *std::move(opened);
        } else {
          error = opened.error().message;
        }
      }
      if (address.empty()) attempt.set_failed(error);
      addresses_.push_back(std::move(address));
      attempts.push_back(std::move(attempt));
    }
    return attempts;
  }

  /// Exchanges addresses and connects. Returns true if rank 0 ends the rounds.
  Result<bool> exchange(std::vector<Attempt>& attempts, bool stop) {
    comm::ByteWriter writer;
    writer.put(static_cast<std::uint8_t>(stop));
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      writer.put_bytes(addresses_[i]);
      writer.put_text(attempts[i].trial.error);
      const transport::RemoteRegion remote =
          attempts[i].buffer != nullptr ? attempts[i].buffer->region.remote : transport::RemoteRegion{};
      for (const std::uint64_t word : remote.key) writer.put(word);
      writer.put(remote.bytes);
    }
    const auto all = bootstrap_.allgather(writer.blob());
    if (!all) return fail(all.error());
    comm::ByteReader root((*all)[0]);
    if (root.get<std::uint8_t>() != 0) return true;
    if (!attempts.empty()) {
      // All paths of a rank in a round lead to the same partner, and both list them in the same order.
      const ProbePath& first = attempts.front().trial.path;
      const Rank partner = first.a == bootstrap_.rank() ? first.b : first.a;
      comm::ByteReader reader((*all)[static_cast<std::size_t>(partner)]);
      (void)reader.get<std::uint8_t>();
      for (Attempt& attempt : attempts) connect(attempt, reader);
    }
    // Both ends are connected before either sends.
    const auto ready = bootstrap_.allgather({});
    if (!ready) return fail(ready.error());
    return false;
  }

  static void connect(Attempt& attempt, comm::ByteReader& reader) {
    const auto address = reader.get_bytes();
    const std::string problem = reader.get_text();
    for (std::uint64_t& word : attempt.remote.key) word = reader.get<std::uint64_t>();
    attempt.remote.bytes = reader.get<std::uint64_t>();
    if (attempt.failed) return;
    if (!problem.empty() || !reader.ok()) {
      attempt.set_failed("the other end cannot open it: " + problem);
      return;
    }
    if (Status status = attempt.transport->connect(attempt.peer, address); !status.ok())
      attempt.set_failed(std::move(status).message);
  }

  void ping(std::vector<Attempt>& attempts) {
    std::vector<Transport*> transports;
    for (Attempt& attempt : attempts) {
      if (attempt.failed) continue;
      send_next(attempt);
      if (std::find(transports.begin(), transports.end(), attempt.transport) == transports.end())
        transports.push_back(attempt.transport);
    }
    const std::int64_t deadline_ns = now_ns() + options_.timeout_ns;
    const auto done = [&] {
      return std::all_of(attempts.begin(), attempts.end(), [](const Attempt& one) { return one.done(); });
    };
    while (!done() && now_ns() < deadline_ns) {
      for (Attempt& attempt : attempts) flush(attempt);
      bool idle = true;
      for (Transport* transport : transports) idle = poll(*transport, attempts) && idle;
      wait(idle);
    }
    for (Attempt& attempt : attempts) settle(attempt);
  }

  /// Returns true if there was no event.
  static bool poll(Transport& transport, std::vector<Attempt>& attempts) {
    std::array<Event, 16> events;
    const std::size_t count = transport.poll(events);
    for (std::size_t i = 0; i < count; ++i) {
      for (Attempt& attempt : attempts) {
        const bool whole_port = events[i].kind == Event::Kind::kPortDown;
        if (attempt.transport == &transport && (whole_port || attempt.peer == events[i].peer) &&
            !attempt.done())
          take(attempt, events[i]);
      }
    }
    return count == 0;
  }

  /// Waits between polls. A NIC's answer arrives while this spins. If it takes longer, the CPU is needed
  /// elsewhere: a software device sends from kernel threads, which get no time from ranks that only yield.
  void wait(bool idle) {
    constexpr std::int64_t kSpinNs = 100'000;
    constexpr timespec kNap{0, 20'000};
    const std::int64_t now = now_ns();
    if (!idle) {
      busy_ns_ = now;
    } else if (now - busy_ns_ < kSpinNs) {
      (void)sched_yield();
    } else {
      nanosleep(&kNap, nullptr);
    }
  }

  void settle(Attempt& attempt) const {
    if (!attempt.done()) {
      attempt.set_failed(
          attempt.answered == kNumPings && attempt.echoed < kNumPings
              ? "the other end answers, but its own messages do not arrive"
              : fmt::format("no answer within {:g} s", static_cast<double>(options_.timeout_ns) / 1e9));
    }
    Trial& trial = attempt.trial;
    trial.small_ok = attempt.answered >= kNumSmall;
    trial.large_ok = attempt.answered == kNumPings && !attempt.failed;
    // The minimum, because longer times show other load rather than the path.
    const auto& times = attempt.round_trips_us;
    if (!times.empty()) trial.rtt_us = *std::min_element(times.begin(), times.end());
  }

  static void close(std::vector<Attempt>& attempts) {
    for (Attempt& attempt : attempts)
      if (attempt.transport != nullptr) attempt.transport->close(attempt.peer);
  }

  comm::Bootstrap& bootstrap_;
  const ProbeTransports& transports_;
  ProbeOptions options_;
  std::vector<transport::Address> addresses_;
  std::map<Transport*, ProbeBuffer> buffers_;
  std::int64_t busy_ns_ = 0;  ///< time of the last event
};

const comm::TransportEntry* entry(std::string_view name) {
  const auto entries = comm::transport_entries();
  const auto at =
      std::find_if(entries.begin(), entries.end(), [&](const auto& one) { return one.name == name; });
  return at == entries.end() ? nullptr : &*at;
}

}  // namespace

ProbeTransports ProbeTransports::make(const Config& config, RankReport& report) {
  // A broken path is detected within two seconds: 8 * 4.096 us * 2^16.
  constexpr std::int32_t kQuickTimeout = 16;
  Config quick = config;
  quick.rdma.timeout = std::min(quick.rdma.timeout, kQuickTimeout);
  ProbeTransports made;
  if (auto shm = entry("shm")->make(quick)) {
    made.shm_ = *std::move(shm);
  } else {
    report.findings.push_back({FindingLevel::kError, "shm", shm.error().message, "ulimit -n 4096"});
  }
  if (report.rails.empty() || !report.no_rails.empty() || config.transport == "shm" ||
      config.transport == "tcp")
    return made;
  if (auto verbs = entry("verbs")->make(quick)) {
    made.verbs_ = *std::move(verbs);
  } else {
    report.no_rails = verbs.error().message;
    report.rails.clear();
    const bool memory = verbs.error().code == Code::kOutOfMemory;
    report.findings.push_back({FindingLevel::kError, "verbs", verbs.error().message,
                               memory ? "ulimit -l unlimited" : "dmesg | tail; rdma link"});
  }
  return made;
}

Transport* ProbeTransports::on(Rail rail) const {
  if (rail == kNoRail) return shm_.transports.empty() ? nullptr : shm_.transports.front().get();
  if (verbs_.by_rail.empty() || static_cast<std::size_t>(rail) >= verbs_.by_rail.size()) return nullptr;
  return verbs_.transports[verbs_.by_rail[static_cast<std::size_t>(rail)]].get();
}

Result<ProbeResult> probe(comm::Bootstrap& bootstrap, const ProbeTransports& transports,
                          std::span<const ProbePath> paths, const ProbeOptions& options) {
  return Prober(bootstrap, transports, options).run(paths);
}

}  // namespace hips::doctor
