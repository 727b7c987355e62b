#include "lib/plan/fabric/ring_search.hpp"

#include <array>
#include <bit>
#include <utility>

namespace hips::plan {
namespace {

/// Moves that a search tries before it gives up.
constexpr std::int64_t kMaxMoves = 120'000;
/// A move that adds w cycles is kept once in 2^(w*c). The coldness c grows from 1 to kColdest over each
/// period. Moves that only reduce the number of cycles are not enough: a move of an even number of arcs
/// changes the parity of both cycles.
constexpr std::int64_t kPeriod = 15'000;
constexpr std::int64_t kColdest = 6;

/// SplitMix64: the same numbers on every machine, which the distributions of the standard library do not
/// promise.
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

struct SearchedGrid {
  std::vector<std::int32_t> radix, stride;
  std::int32_t num_servers = 1;

  explicit SearchedGrid(std::span<const std::int64_t> radices) {
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
  Servers next{}, previous{}, port{};  ///< by server; port: by which the ring leaves it

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

/// Exchanges arcs of two rings: p's arc out of `start`, q's arc into the server where that ends, p's arc out
/// of the server where this began, and so on until it is back. Done twice, it changes nothing.
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

/// See search_port_rings().
class PortRingSearch {
 public:
  PortRingSearch(std::span<const std::int64_t> radices, std::span<const RingPort> ports,
                 std::int32_t num_rings)
      : grid_(radices), ports_(ports), num_rings_(num_rings), rings_(ports.size()) {
    for (std::int32_t p = 0; p < num_ports(); ++p) {
      for (std::int32_t s = 0; s < grid_.num_servers; ++s)
        rings_[p].join(s, grid_.moved(s, ports[p].level, ports[p].sign), p);
      cycles_.push_back(rings_[p].count_cycles(grid_.num_servers));
    }
  }

  std::optional<std::vector<RingStops>> run() {
    for (move_ = 0; !is_done(); ++move_) {
      if (move_ == kMaxMoves) return std::nullopt;
      try_move();
    }
    std::vector<RingStops> found;
    for (std::int32_t p = 0; p < num_rings_; ++p) found.push_back(stops_of(rings_[p]));
    return found;
  }

 private:
  [[nodiscard]] std::int32_t num_ports() const { return static_cast<std::int32_t>(ports_.size()); }

  [[nodiscard]] bool is_done() const {
    for (std::int32_t p = 0; p < num_rings_; ++p) {
      if (cycles_[p] != 1) return false;
    }
    return true;
  }

  /// Rings beyond those that are wanted only supply arcs: the number of their cycles does not count.
  [[nodiscard]] std::int32_t count(std::int32_t p) const {
    return p < num_rings_ ? rings_[p].count_cycles(grid_.num_servers) : 1;
  }

  void try_move() {
    const std::int32_t p = random_.below(num_ports());
    const std::int32_t server = random_.below(grid_.num_servers);
    const std::int32_t port = rings_[p].port[server], level = ports_[port].level;
    // Behind a switch of 2 or 3 an exchange of ends would make a server send to itself.
    const bool ends = !ports_[port].is_cable && grid_.radix[level] > 3 && random_.below(2) == 0;
    if (!ends && num_ports() > 1) {
      try_arcs(p, server);
    } else {
      try_ends(p, server);
    }
  }

  /// Ring p exchanges arcs with another ring.
  void try_arcs(std::int32_t p, std::int32_t server) {
    const std::int32_t q = (p + 1 + random_.below(num_ports() - 1)) % num_ports();
    exchange_arcs(rings_[p], rings_[q], server);
    const std::int32_t cycles_p = count(p), cycles_q = count(q);
    if (keeps(random_, move_, cycles_p + cycles_q - cycles_[p] - cycles_[q])) {
      cycles_[p] = cycles_p;
      cycles_[q] = cycles_q;
    } else {
      exchange_arcs(rings_[p], rings_[q], server);
    }
  }

  /// Two arcs of ring p through one switch exchange their ends.
  void try_ends(std::int32_t p, std::int32_t server) {
    PortRing& ring = rings_[p];
    const std::int32_t port = ring.port[server], level = ports_[port].level;
    const std::int32_t other = grid_.moved(server, level, 1 + random_.below(grid_.radix[level] - 1));
    if (ring.port[other] != port) return;
    const std::int32_t to = ring.next[server], other_to = ring.next[other];
    if (to == other || other_to == server) return;  // a server would send to itself
    ring.join(server, other_to, port);
    ring.join(other, to, port);
    const std::int32_t cycles_p = count(p);
    if (keeps(random_, move_, cycles_p - cycles_[p])) {
      cycles_[p] = cycles_p;
    } else {
      ring.join(server, to, port);
      ring.join(other, other_to, port);
    }
  }

  [[nodiscard]] RingStops stops_of(const PortRing& ring) const {
    RingStops stops;
    std::int32_t at = 0;
    do {
      const RingPort& out = ports_[ring.port[at]];
      const RingPort& in = ports_[ring.port[ring.previous[at]]];
      stops.push_back({at, out.level, out.sign, in.level, in.is_cable ? -in.sign : in.sign});
      at = ring.next[at];
    } while (at != 0);
    return stops;
  }

  SearchedGrid grid_;
  std::span<const RingPort> ports_;
  std::int32_t num_rings_;
  std::vector<PortRing> rings_;       ///< by port
  std::vector<std::int32_t> cycles_;  ///< of each ring
  Random random_;
  std::int64_t move_ = 0;
};

/// See search_cable_rings().
class CableRingSearch {
 public:
  explicit CableRingSearch(std::span<const std::int64_t> sides)
      : grid_(sides), num_dims_(grid_.num_levels()), owner_(static_cast<std::size_t>(num_dims_)) {
    for (std::int32_t d = 0; d < num_dims_; ++d) owner_[d].fill(d);
    for (std::int32_t c = 0; c < num_dims_; ++c) total_ += cycles_.emplace_back(count_cycles(c));
  }

  std::optional<std::vector<RingStops>> run() {
    for (move_ = 0; total_ != num_dims_; ++move_) {
      if (move_ == kMaxMoves || num_dims_ < 2) return std::nullopt;
      try_square();
    }
    std::vector<RingStops> found(static_cast<std::size_t>(num_dims_));
    for (std::int32_t c = 0; c < num_dims_; ++c) {
      go_round(c, 0, [&](std::int32_t server, CablePort out, CablePort in) {
        found[c].push_back({server, out.dim, out.sign, in.dim, in.sign});
      });
    }
    return found;
  }

 private:
  struct CablePort {
    std::int32_t dim = -1, sign = 0;
    friend bool operator==(const CablePort&, const CablePort&) = default;
  };

  /// A server has two cables of cycle c: the port of the one that is not `port`, or of the first for an unset
  /// `port`.
  [[nodiscard]] CablePort other_port(std::int32_t c, std::int32_t server, CablePort port) const {
    for (std::int32_t d = 0; d < num_dims_; ++d) {
      if (owner_[d][server] == c && !(d == port.dim && port.sign > 0)) return {d, +1};
      if (owner_[d][grid_.moved(server, d, -1)] == c && !(d == port.dim && port.sign < 0)) return {d, -1};
    }
    return {};
  }

  /// Follows cycle c from `start`; calls visit(server, port out, port in).
  template <typename Visit>
  void go_round(std::int32_t c, std::int32_t start, Visit&& visit) const {
    const CablePort first = other_port(c, start, {});
    CablePort in = other_port(c, start, first), out = first;
    std::int32_t at = start;
    do {
      visit(at, out, in);
      at = grid_.moved(at, out.dim, out.sign);
      in = {out.dim, -out.sign};
      out = other_port(c, at, in);
    } while (at != start || out != first);
  }

  [[nodiscard]] std::int32_t count_cycles(std::int32_t c) const {
    std::int32_t cycles = 0;
    std::uint64_t left = ~std::uint64_t{0} >> (64 - grid_.num_servers);
    for (; left != 0; ++cycles) {
      go_round(c, std::countr_zero(left),
               [&](std::int32_t server, CablePort, CablePort) { left &= ~(std::uint64_t{1} << server); });
    }
    return cycles;
  }

  /// The owner of a cable of `from` in a dimension. Along a side of 2 there are two cables, one from the "+"
  /// port of either end; draws one of them.
  std::int32_t& drawn_cable(std::int32_t from, std::int32_t dim) {
    return owner_[dim][grid_.radix[dim] == 2 && random_.below(2) == 0 ? grid_.moved(from, dim, 1) : from];
  }

  void try_square() {
    // The square of `server` in dimensions i and j:   corner j --i-- .
    //                                                   |            |
    //                                                 server --i-- corner i
    const std::int32_t server = random_.below(grid_.num_servers);
    const std::int32_t i = random_.below(num_dims_);
    const std::int32_t j = (i + 1 + random_.below(num_dims_ - 1)) % num_dims_;
    std::int32_t& near_i = drawn_cable(server, i);
    std::int32_t& far_i = drawn_cable(grid_.moved(server, j, 1), i);
    std::int32_t& near_j = drawn_cable(server, j);
    std::int32_t& far_j = drawn_cable(grid_.moved(server, i, 1), j);
    const std::int32_t p = near_i, q = near_j;
    if (p == q || far_i != p || far_j != q) return;
    const auto assign = [&](std::int32_t along_i, std::int32_t along_j) {
      near_i = far_i = along_i;
      near_j = far_j = along_j;
    };
    assign(q, p);
    const std::int32_t cycles_p = count_cycles(p), cycles_q = count_cycles(q);
    const std::int32_t more = cycles_p + cycles_q - cycles_[p] - cycles_[q];
    if (keeps(random_, move_, more)) {
      cycles_[p] = cycles_p;
      cycles_[q] = cycles_q;
      total_ += more;
    } else {
      assign(p, q);
    }
  }

  SearchedGrid grid_;
  std::int32_t num_dims_;
  std::vector<Servers> owner_;  ///< [dimension][server]: the cycle that has the cable from the "+" port
  std::vector<std::int32_t> cycles_;
  std::int32_t total_ = 0;
  Random random_;
  std::int64_t move_ = 0;
};

}  // namespace

std::optional<std::vector<RingStops>> search_port_rings(std::span<const std::int64_t> radices,
                                                        std::span<const RingPort> ports,
                                                        std::int32_t num_rings) {
  return PortRingSearch(radices, ports, num_rings).run();
}

std::optional<std::vector<RingStops>> search_cable_rings(std::span<const std::int64_t> sides) {
  return CableRingSearch(sides).run();
}

}  // namespace hips::plan
