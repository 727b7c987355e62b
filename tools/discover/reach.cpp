#include "tools/discover/reach.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "lib/base/clock.hpp"
#include "lib/comm/process_info.hpp"
#include "tools/discover/packets.hpp"

namespace hips::discover {
namespace {

using topology::SeenPath;

/// From a NIC to a NIC, by servers.
using Direction = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>;

Direction forth(const SeenPath& way) {
  return {way.a, way.a_nic, way.b, way.b_nic};
}
Direction back(const SeenPath& way) {
  return {way.b, way.b_nic, way.a, way.a_nic};
}

/// A rank's part; one that does not speak for its server only takes part in the exchanges.
class PacketRounds {
 public:
  PacketRounds(comm::Bootstrap& bootstrap, std::span<const RankView> views,
               std::span<const JobServer> servers, std::span<const SeenPath> ways)
      : bootstrap_(bootstrap), views_(views), servers_(servers), ways_(ways) {
    for (std::size_t server = 0; server < servers.size(); ++server)
      if (servers[server].speaker() == bootstrap.rank()) self_ = server;
  }

  Result<std::vector<SeenPath>> run() {
    if (auto opened = open(); !opened) return fail(opened.error());
    constexpr std::array<int, 4> kWaitsMs{30, 100, 250, 500};
    for (std::size_t round = 0; round < kWaitsMs.size(); ++round) {
      send();
      receive(kWaitsMs[round]);
      auto enough = everybody_heard_all();
      if (!enough) return fail(std::move(enough).error());
      // What passes routers is heard a moment later, so that one round is not enough.
      if (*enough && round > 0) break;
    }
    return gather();
  }

 private:
  [[nodiscard]] const JobNic& nic(std::size_t server, std::size_t number) const {
    return views_[static_cast<std::size_t>(servers_[server].speaker())].nics[number];
  }
  [[nodiscard]] std::uint16_t port_of(std::size_t server, std::size_t number) const {
    const auto& ports = ports_[static_cast<std::size_t>(servers_[server].speaker())];
    return number < ports.size() ? ports[number] : std::uint16_t{0};
  }
  [[nodiscard]] bool is_tried(const SeenPath& way) const {
    return port_of(way.a, way.a_nic) != 0 && port_of(way.b, way.b_nic) != 0;
  }

  /// Opens a socket for each NIC, and tells all ranks its port; 0 where there is none.
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
      if (ports_.empty()) job_ = number;  // rank 0's names the job
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
    for (const SeenPath& way : ways_) {
      if (!is_tried(way)) continue;
      send_one(forth(way));
      send_one(back(way));
    }
  }

  void receive(int wait_ms) {
    const auto now_ns = [] { return SystemClock::instance().now_ns(); };
    const std::int64_t end_ns = now_ns() + std::int64_t{wait_ms} * 1'000'000;
    std::vector<pollfd> fds;
    for (const auto& socket : sockets_)
      if (socket) fds.push_back({socket->fd(), POLLIN, 0});
    while (true) {
      // A stranger who floods a port does not hold up the round.
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

  /// Has every server heard all NICs in the subnets of its own?
  Result<bool> everybody_heard_all() {
    bool mine = true;
    for (const SeenPath& way : ways_) {
      if (!self_ || !is_tried(way)) continue;
      if (nic(way.a, way.a_nic).seen.subnet != nic(way.b, way.b_nic).seen.subnet) continue;
      if (way.a == *self_) mine = mine && heard_.contains(back(way));
      if (way.b == *self_) mine = mine && heard_.contains(forth(way));
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
    for (const SeenPath& way : ways_) {
      if (!is_tried(way)) continue;
      const auto there = heard.find(forth(way)), here = heard.find(back(way));
      SeenPath seen = way;
      // What arrives in one direction only carries no data.
      seen.reached = there != heard.end() && here != heard.end();
      if (seen.reached) seen.hops = std::max(there->second, here->second);
      tried.push_back(seen);
    }
    return tried;
  }

  comm::Bootstrap& bootstrap_;
  std::span<const RankView> views_;
  std::span<const JobServer> servers_;
  std::span<const SeenPath> ways_;
  std::optional<std::size_t> self_;  ///< the server that this rank speaks for
  std::uint64_t job_ = 0;
  std::vector<std::optional<PacketSocket>> sockets_;
  std::vector<std::vector<std::uint16_t>> ports_;  ///< by rank and NIC
  std::map<Direction, std::int32_t> heard_;        ///< hops
};

}  // namespace

Result<std::vector<SeenPath>> try_by_packets(comm::Bootstrap& bootstrap, std::span<const RankView> views,
                                             std::span<const JobServer> servers,
                                             std::span<const SeenPath> ways) {
  return PacketRounds(bootstrap, views, servers, ways).run();
}

std::vector<doctor::Way> rdma_ways(std::span<const RankView> views, std::span<const JobServer> servers,
                                   std::span<const SeenPath> ways) {
  std::vector<doctor::Way> chosen;
  for (const SeenPath& way : ways) {
    const Rank a = servers[way.a].speaker(), b = servers[way.b].speaker();
    const JobNic& one = views[static_cast<std::size_t>(a)].nics[way.a_nic];
    const JobNic& other = views[static_cast<std::size_t>(b)].nics[way.b_nic];
    if (!one.rdma || !other.rdma || one.seen.subnet != other.seen.subnet) continue;
    chosen.push_back({a, b, static_cast<Rail>(way.a_nic), static_cast<Rail>(way.b_nic)});
  }
  return chosen;
}

void add_trials(std::span<const JobServer> servers, std::span<const doctor::Trial> trials,
                std::vector<SeenPath>& ways) {
  std::map<Rank, std::size_t> server_of;
  for (std::size_t server = 0; server < servers.size(); ++server)
    server_of[servers[server].speaker()] = server;
  struct Verdict {
    bool ok = true;  // at both ends
    double latency_ns = 0;
  };
  std::map<Direction, Verdict> passes;
  for (const doctor::Trial& trial : trials) {
    const doctor::Way& way = trial.way;
    const auto a = server_of.find(way.a), b = server_of.find(way.b);
    if (way.shm() || a == server_of.end() || b == server_of.end()) continue;
    const Direction key{a->second, static_cast<std::size_t>(way.a_rail), b->second,
                        static_cast<std::size_t>(way.b_rail)};
    Verdict& verdict = passes[key];
    verdict.ok = verdict.ok && trial.ok();
    // The less delayed of both ends says more about the way.
    const double latency_ns = trial.rtt_us * 1000 / 2;
    if (latency_ns > 0 && (verdict.latency_ns == 0 || latency_ns < verdict.latency_ns))
      verdict.latency_ns = latency_ns;
  }
  for (SeenPath& way : ways) {
    const auto found = passes.find(forth(way));
    if (found == passes.end()) continue;
    way.reached = found->second.ok;
    way.latency_ns = found->second.latency_ns;
    passes.erase(found);
  }
  for (const auto& [key, verdict] : passes) {
    const auto& [a, a_nic, b, b_nic] = key;
    ways.push_back({a, a_nic, b, b_nic, verdict.ok, 0, verdict.latency_ns});
  }
}

}  // namespace hips::discover
