#include "lib/plan/ring_search.hpp"

#include <array>
#include <bit>
#include <utility>

namespace hips::plan {
namespace {

/// Moves that a search may try before it gives up.
constexpr std::int64_t kMaxMoves = 120'000;
/// A move that leaves w more cycles is kept once in 2^(w*c); the coldness c grows from 1 to kColdest over
/// each period. There is no straight way down: a move of an even number of arcs changes the parity of both
/// cycles.
constexpr std::int64_t kPeriod = 15'000;
constexpr std::int64_t kColdest = 6;

/// SplitMix64: the same numbers on every machine, unlike the distributions of the standard library.
class Random {
 public:
  std::int32_t below(std::int64_t bound) {
    return static_cast<std::int32_t>(next() % static_cast<std::uint64_t>(bound));
  }
  bool once_in_power_of_two(std::int64_t exponent) {
    return exponent < 64 && (next() & ((std::uint64_t{1} << exponent) - 1)) == 0;
  }

 private:
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint64_t state_ = 0;
};

/// Is a move that adds `more` cycles kept?
bool keeps(Random& random, std::int64_t move, std::int32_t more) {
  if (more <= 0) return true;
  const std::int64_t coldness = 1 + move % kPeriod * kColdest / kPeriod;
  return random.once_in_power_of_two(more * coldness);
}

struct Grid {
  std::vector<std::int32_t> radix, stride;
  std::int32_t num_servers = 1;

  explicit Grid(std::span<const std::int64_t> radices) {
    for (const std::int64_t r : radices) {
      radix.push_back(static_cast<std::int32_t>(r));
      stride.push_back(num_servers);
      num_servers *= static_cast<std::int32_t>(r);
    }
  }
  [[nodiscard]] std::int32_t num_levels() const { return static_cast<std::int32_t>(radix.size()); }
  [[nodiscard]] std::int32_t moved(std::int32_t server, std::int32_t level, std::int32_t by) const {
    const std::int32_t from = server / stride[level] % radix[level];
    return server + ((from + by + radix[level]) % radix[level] - from) * stride[level];
  }
};

using Servers = std::array<std::int32_t, kMaxSearchedServers>;

struct PortRing {
  Servers next{}, previous{}, port{};  ///< port: by which the ring leaves a server

  void join(std::int32_t from, std::int32_t to, std::int32_t by) {
    next[from] = to;
    previous[to] = from;
    port[from] = by;
  }
  [[nodiscard]] std::int32_t count_cycles(std::int32_t num_servers) const {
    std::int32_t cycles = 0;
    std::uint64_t left = ~std::uint64_t{0} >> (64 - num_servers);
    for (; left != 0; ++cycles) {
      const std::int32_t start = std::countr_zero(left);
      std::int32_t at = start;
      do {
        left &= ~(std::uint64_t{1} << at);
        at = next[at];
      } while (at != start);
    }
    return cycles;
  }
};

/// Exchanges arcs of two rings: p's arc out of `start` and q's arc into the same server, and so on round.
/// Done twice, it changes nothing.
void exchange_arcs(PortRing& p, PortRing& q, std::int32_t start) {
  struct Arc {
    std::int32_t from, to_p, by_p, to_q, by_q;
  };
  std::array<Arc, kMaxSearchedServers> arcs;
  std::size_t count = 0;
  std::int32_t at = start;
  do {
    arcs[count++] = {at, p.next[at], p.port[at], q.next[at], q.port[at]};
    at = q.previous[p.next[at]];
  } while (at != start);
  for (std::size_t i = 0; i < count; ++i) {
    p.join(arcs[i].from, arcs[i].to_q, arcs[i].by_q);
    q.join(arcs[i].from, arcs[i].to_p, arcs[i].by_p);
  }
}

}  // namespace

std::optional<std::vector<RingStops>> search_port_rings(std::span<const std::int64_t> radices,
                                                        std::span<const RingPort> ports,
                                                        std::int32_t num_rings) {
  const Grid grid(radices);
  const auto num_ports = static_cast<std::int32_t>(ports.size());
  const std::int32_t num_servers = grid.num_servers;
  std::vector<PortRing> rings(num_ports);
  std::vector<std::int32_t> cycles;
  for (std::int32_t p = 0; p < num_ports; ++p) {
    for (std::int32_t s = 0; s < num_servers; ++s)
      rings[p].join(s, grid.moved(s, ports[p].level, ports[p].sign), p);
    cycles.push_back(rings[p].count_cycles(num_servers));
  }
  // Rings beyond the wanted ones only lend arcs: how many cycles they fall into does not count.
  const auto count = [&](std::int32_t p) { return p < num_rings ? rings[p].count_cycles(num_servers) : 1; };
  const auto all_done = [&] {
    for (std::int32_t p = 0; p < num_rings; ++p) {
      if (cycles[p] != 1) return false;
    }
    return true;
  };

  Random random;
  for (std::int64_t move = 0; !all_done(); ++move) {
    if (move == kMaxMoves) return std::nullopt;
    const std::int32_t p = random.below(num_ports);
    const std::int32_t server = random.below(num_servers);
    PortRing& ring = rings[p];
    const std::int32_t port = ring.port[server], level = ports[port].level;
    // Behind a switch of 2 or 3 an exchange of ends would leave a server that sends to itself.
    const bool ends = !ports[port].is_cable && grid.radix[level] > 3 && random.below(2) == 0;
    if (!ends && num_ports > 1) {
      const std::int32_t q = (p + 1 + random.below(num_ports - 1)) % num_ports;
      exchange_arcs(rings[p], rings[q], server);
      const std::int32_t cycles_p = count(p), cycles_q = count(q);
      if (keeps(random, move, cycles_p + cycles_q - cycles[p] - cycles[q])) {
        cycles[p] = cycles_p;
        cycles[q] = cycles_q;
      } else {
        exchange_arcs(rings[p], rings[q], server);
      }
      continue;
    }
    const std::int32_t other = grid.moved(server, level, 1 + random.below(grid.radix[level] - 1));
    if (ring.port[other] != port) continue;
    const std::int32_t to = ring.next[server], other_to = ring.next[other];
    if (to == other || other_to == server) continue;  // nobody sends to itself
    ring.join(server, other_to, port);
    ring.join(other, to, port);
    const std::int32_t cycles_p = count(p);
    if (keeps(random, move, cycles_p - cycles[p])) {
      cycles[p] = cycles_p;
    } else {
      ring.join(server, to, port);
      ring.join(other, other_to, port);
    }
  }

  std::vector<RingStops> found;
  for (std::int32_t p = 0; p < num_rings; ++p) {
    RingStops stops;
    std::int32_t at = 0;
    do {
      const RingPort& out = ports[rings[p].port[at]];
      const RingPort& came = ports[rings[p].port[rings[p].previous[at]]];
      stops.push_back({at, out.level, out.sign, came.level, came.is_cable ? -came.sign : came.sign});
      at = rings[p].next[at];
    } while (at != 0);
    found.push_back(std::move(stops));
  }
  return found;
}

std::optional<std::vector<RingStops>> search_cable_rings(std::span<const std::int64_t> sides) {
  const Grid grid(sides);
  const std::int32_t num_dims = grid.num_levels(), num_servers = grid.num_servers;
  std::vector<Servers> owner(
      num_dims);  // [dimension][server]: the cycle that has the cable from the "+" port
  for (std::int32_t d = 0; d < num_dims; ++d) owner[d].fill(d);

  /// Goes round cycle `c` from `start`; calls visit(server, out dimension, out sign, in dimension, in sign).
  const auto go_round = [&](std::int32_t c, std::int32_t start, auto&& visit) {
    // A server has two cables of the cycle; it came by one, whose port is (dimension, sign), and leaves by
    // the other.
    const auto other_port = [&](std::int32_t server, std::int32_t dim, std::int32_t sign) {
      for (std::int32_t d = 0; d < num_dims; ++d) {
        if (owner[d][server] == c && !(d == dim && sign > 0)) return std::pair{d, +1};
        if (owner[d][grid.moved(server, d, -1)] == c && !(d == dim && sign < 0)) return std::pair{d, -1};
      }
      return std::pair{-1, 0};
    };
    const std::pair<std::int32_t, std::int32_t> first = other_port(start, -1, 0);
    std::pair<std::int32_t, std::int32_t> in = other_port(start, first.first, first.second), out = first;
    std::int32_t at = start;
    do {
      visit(at, out, in);
      at = grid.moved(at, out.first, out.second);
      in = {out.first, -out.second};
      out = other_port(at, in.first, in.second);
    } while (at != start || out != first);
  };
  const auto count_cycles = [&](std::int32_t c) {
    std::int32_t cycles = 0;
    std::uint64_t left = ~std::uint64_t{0} >> (64 - num_servers);
    for (; left != 0; ++cycles) {
      go_round(c, std::countr_zero(left),
               [&](std::int32_t server, auto, auto) { left &= ~(std::uint64_t{1} << server); });
    }
    return cycles;
  };

  std::vector<std::int32_t> cycles;
  std::int32_t in_all = 0;
  for (std::int32_t c = 0; c < num_dims; ++c) in_all += cycles.emplace_back(count_cycles(c));
  Random random;
  for (std::int64_t move = 0; in_all != num_dims; ++move) {
    if (move == kMaxMoves || num_dims < 2) return std::nullopt;
    // The square of `server` in dimensions i and j:   corner j --i-- .
    //                                                   |            |
    //                                                 server --i-- corner i
    // Along a side of 2 each of its sides is one of two cables: that of the "+" port of either end.
    const std::int32_t server = random.below(num_servers);
    const std::int32_t i = random.below(num_dims);
    const std::int32_t j = (i + 1 + random.below(num_dims - 1)) % num_dims;
    const auto cable = [&](std::int32_t from, std::int32_t dim) -> std::int32_t& {
      return owner[dim][grid.radix[dim] == 2 && random.below(2) == 0 ? grid.moved(from, dim, 1) : from];
    };
    std::int32_t &near_i = cable(server, i), &far_i = cable(grid.moved(server, j, 1), i);
    std::int32_t &near_j = cable(server, j), &far_j = cable(grid.moved(server, i, 1), j);
    const std::int32_t p = near_i, q = near_j;
    if (p == q || far_i != p || far_j != q) continue;
    const auto give = [&](std::int32_t along_i, std::int32_t along_j) {
      near_i = far_i = along_i;
      near_j = far_j = along_j;
    };
    give(q, p);
    const std::int32_t cycles_p = count_cycles(p), cycles_q = count_cycles(q);
    const std::int32_t more = cycles_p + cycles_q - cycles[p] - cycles[q];
    if (keeps(random, move, more)) {
      cycles[p] = cycles_p;
      cycles[q] = cycles_q;
      in_all += more;
    } else {
      give(p, q);
    }
  }

  std::vector<RingStops> found(num_dims);
  for (std::int32_t c = 0; c < num_dims; ++c) {
    go_round(c, 0, [&](std::int32_t server, auto out, auto in) {
      found[c].push_back({server, out.first, out.second, in.first, in.second});
    });
  }
  return found;
}

}  // namespace hips::plan
