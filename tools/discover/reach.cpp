#include "tools/discover/reach.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "lib/base/wait/clock.hpp"
#include "lib/comm/setup/process_info.hpp"
#include "tools/discover/packets.hpp"

namespace hips::discover {
namespace {

using topology::SeenPath;

/// One direction of a path: server and NIC of the sender, server and NIC of the receiver.
using Direction = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>;

Direction forward(const SeenPath& path) {
  return {path.a, path.a_nic, path.b, path.b_nic};
}
Direction backward(const SeenPath& path) {
  return {path.b, path.b_nic, path.a, path.a_nic};
}

/// Sends and receives the packets of a rank. Ranks that are not the leader of their server only take part in
/// the exchanges.
class PacketRounds {
 public:
  PacketRounds(comm::Bootstrap& bootstrap, std::span<const RankView> views,
               std::span<const JobServer> servers, std::span<const SeenPath> paths)
      : bootstrap_(bootstrap), views_(views), servers_(servers), paths_(paths) {
    for (std::size_t server = 0; server < servers.size(); ++server)
      if (servers[server].leader() == bootstrap.rank()) self_ = server;
  }

  Result<std::vector<SeenPath>> run() {
    if (auto opened = open(); !opened) return fail(opened.error());
    constexpr std::array<int, 4> kWaitsMs{30, 100, 250, 500};
    for (std::size_t round = 0; round < kWaitsMs.size(); ++round) {
      send();
      receive(kWaitsMs[round]);
      auto enough = all_subnets_heard();
      if (!enough) return fail(std::move(enough).error());
      // Packets through routers arrive later, so that one round is not enough.
      if (*enough && round > 0) break;
    }
    return gather();
  }

 private:
  [[nodiscard]] const JobNic& nic(std::size_t server, std::size_t number) const {
    return views_[static_cast<std::size_t>(servers_[server].leader())].nics[number];
  }
  [[nodiscard]] std::uint16_t port_of(std::size_t server, std::size_t number) const {
    const auto& ports = ports_[static_cast<std::size_t>(servers_[server].leader())];
    return number < ports.size() ? ports[number] : std::uint16_t{0};
  }
  [[nodiscard]] bool is_tried(const SeenPath& path) const {
    return port_of(path.a, path.a_nic) != 0 && port_of(path.b, path.b_nic) != 0;
  }

  /// Opens a socket for each NIC and all-gathers the ports; 0 if a socket cannot be opened.
  Result<void> open() {
    comm::ByteWriter writer;
    writer.put(comm::ProcessUid::random().low);
    if (self_) {
      for (const JobNic& one : views_[static_cast<std::size_t>(bootstrap_.rank())].nics) {
        auto socket = PacketSocket::open(one.seen.address, one.interface);
        writer.put(socket ? socket->port() : std::uint16_t{0});
        sockets_.push_back(socket ? std::optional(*std::move(socket)) : std::nullopt);
      }
    }
    const auto all = bootstrap_.allgather(writer.blob());
    if (!all) return fail(all.error());
    for (const comm::Blob& blob : *all) {
      comm::ByteReader reader(blob);
      const auto number = reader.get<std::uint64_t>();
      if (ports_.empty()) job_ = number;  // rank 0's number identifies the job
      auto& ports = ports_.emplace_back();
      while (!reader.rest().empty() && reader.ok()) ports.push_back(reader.get<std::uint16_t>());
    }
    return {};
  }

  void send_one(const Direction& direction) const {
    const auto& [from, from_nic, to, to_nic] = direction;
    if (from != self_ || !sockets_[from_nic]) return;
    sockets_[from_nic]->send(nic(to, to_nic).seen.address, port_of(to, to_nic),
                             {job_, static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(from_nic),
                              static_cast<std::uint32_t>(to), static_cast<std::uint32_t>(to_nic)});
  }
  void send() const {
    if (!self_) return;
    for (const SeenPath& path : paths_) {
      if (!is_tried(path)) continue;
      send_one(forward(path));
      send_one(backward(path));
    }
  }

  void receive(int wait_ms) {
    const auto now_ns = [] { return SystemClock::instance().now_ns(); };
    const std::int64_t end_ns = now_ns() + std::int64_t{wait_ms} * 1'000'000;
    std::vector<pollfd> fds;
    for (const auto& socket : sockets_)
      if (socket) fds.push_back({socket->fd(), POLLIN, 0});
    while (true) {
      // The time is checked for each packet, so that a flood of foreign packets cannot delay the round.
      for (std::size_t number = 0; number < sockets_.size() && now_ns() < end_ns; ++number)
        while (const auto arrival =
                   sockets_[number] && now_ns() < end_ns ? sockets_[number]->receive() : std::nullopt)
          take(number, *arrival);
      const std::int64_t left_ms = (end_ns - now_ns()) / 1'000'000;
      if (left_ms <= 0) return;
      (void)poll(fds.data(), fds.size(), static_cast<int>(left_ms));
    }
  }

  void take(std::size_t number, const Arrival& arrival) {
    const PacketLabel& label = arrival.label;
    if (label.job != job_ || label.to_server != self_ || label.to_nic != number) return;
    std::int32_t& hops = heard_[{label.from_server, label.from_nic, label.to_server, label.to_nic}];
    hops = std::max(hops, arrival.hops);
  }

  /// Has every server received packets of all NICs in the subnets of its own NICs?
  Result<bool> all_subnets_heard() {
    bool mine = true;
    for (const SeenPath& path : paths_) {
      if (!self_ || !is_tried(path)) continue;
      if (nic(path.a, path.a_nic).seen.subnet != nic(path.b, path.b_nic).seen.subnet) continue;
      if (path.a == *self_) mine = mine && heard_.contains(backward(path));
      if (path.b == *self_) mine = mine && heard_.contains(forward(path));
    }
    const std::array<std::byte, 1> word{std::byte{mine}};
    const auto all = bootstrap_.allgather(word);
    if (!all) return fail(all.error());
    return std::ranges::all_of(
        *all, [](const comm::Blob& blob) { return !blob.empty() && blob.front() != std::byte{0}; });
  }

  Result<std::vector<SeenPath>> gather() {
    comm::ByteWriter writer;
    for (const auto& [direction, hops] : heard_) {
      const auto& [from, from_nic, to, to_nic] = direction;
      for (const std::size_t number : {from, from_nic, to, to_nic})
        writer.put(static_cast<std::uint32_t>(number));
      writer.put(hops);
    }
    const auto all = bootstrap_.allgather(writer.blob());
    if (!all) return fail(all.error());
    std::map<Direction, std::int32_t> heard;
    for (const comm::Blob& blob : *all) {
      comm::ByteReader reader(blob);
      while (!reader.rest().empty() && reader.ok()) {
        std::array<std::size_t, 4> numbers{};
        for (std::size_t& number : numbers) number = reader.get<std::uint32_t>();
        heard[{numbers[0], numbers[1], numbers[2], numbers[3]}] = reader.get<std::int32_t>();
      }
    }
    std::vector<SeenPath> tried;
    if (heard.empty()) return tried;
    for (const SeenPath& path : paths_) {
      if (!is_tried(path)) continue;
      const auto there = heard.find(forward(path)), back = heard.find(backward(path));
      SeenPath seen = path;
      // A path that works in only one direction is useless.
      seen.reached = there != heard.end() && back != heard.end();
      if (seen.reached) seen.hops = std::max(there->second, back->second);
      tried.push_back(seen);
    }
    return tried;
  }

  comm::Bootstrap& bootstrap_;
  std::span<const RankView> views_;
  std::span<const JobServer> servers_;
  std::span<const SeenPath> paths_;
  std::optional<std::size_t> self_;  ///< the server of which this rank is the leader
  std::uint64_t job_ = 0;
  std::vector<std::optional<PacketSocket>> sockets_;
  std::vector<std::vector<std::uint16_t>> ports_;  ///< by rank and NIC
  std::map<Direction, std::int32_t> heard_;        ///< hops
};

}  // namespace

Result<std::vector<SeenPath>> try_by_packets(comm::Bootstrap& bootstrap, std::span<const RankView> views,
                                             std::span<const JobServer> servers,
                                             std::span<const SeenPath> paths) {
  return PacketRounds(bootstrap, views, servers, paths).run();
}

std::vector<doctor::ProbePath> rdma_paths(std::span<const RankView> views, std::span<const JobServer> servers,
                                          std::span<const SeenPath> paths) {
  std::vector<doctor::ProbePath> chosen;
  for (const SeenPath& path : paths) {
    const Rank a = servers[path.a].leader(), b = servers[path.b].leader();
    const JobNic& one = views[static_cast<std::size_t>(a)].nics[path.a_nic];
    const JobNic& other = views[static_cast<std::size_t>(b)].nics[path.b_nic];
    if (!one.rdma || !other.rdma || one.seen.subnet != other.seen.subnet) continue;
    chosen.push_back({a, b, static_cast<Rail>(path.a_nic), static_cast<Rail>(path.b_nic)});
  }
  return chosen;
}

void add_trials(std::span<const JobServer> servers, std::span<const doctor::Trial> trials,
                std::vector<SeenPath>& paths) {
  std::map<Rank, std::size_t> server_of;
  for (std::size_t server = 0; server < servers.size(); ++server)
    server_of[servers[server].leader()] = server;
  struct RdmaResult {
    bool ok = true;  // at both ends
    double latency_ns = 0;
  };
  std::map<Direction, RdmaResult> results;
  for (const doctor::Trial& trial : trials) {
    const doctor::ProbePath& path = trial.path;
    const auto a = server_of.find(path.a), b = server_of.find(path.b);
    if (path.shm() || a == server_of.end() || b == server_of.end()) continue;
    const Direction key{a->second, static_cast<std::size_t>(path.a_rail), b->second,
                        static_cast<std::size_t>(path.b_rail)};
    RdmaResult& result = results[key];
    result.ok = result.ok && trial.ok();
    // The shorter time of both ends: the longer one includes other delays.
    const double latency_ns = trial.rtt_us * 1000 / 2;
    if (latency_ns > 0 && (result.latency_ns == 0 || latency_ns < result.latency_ns))
      result.latency_ns = latency_ns;
  }
  for (SeenPath& path : paths) {
    const auto found = results.find(forward(path));
    if (found == results.end()) continue;
    path.reached = found->second.ok;
    path.latency_ns = found->second.latency_ns;
    results.erase(found);
  }
  for (const auto& [key, result] : results) {
    const auto& [a, a_nic, b, b_nic] = key;
    paths.push_back({a, a_nic, b, b_nic, result.ok, 0, result.latency_ns});
  }
}

}  // namespace hips::discover
