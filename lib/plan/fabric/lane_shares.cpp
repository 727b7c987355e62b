#include "lib/plan/fabric/lane_shares.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "lib/plan/fabric/packing_lp.hpp"
#include "lib/plan/wide.hpp"

namespace hips::plan {
namespace {

// Ratios of bandwidths that are not small integers are kept to 20 bits: a share that is a millionth off costs
// a millionth of the time, and products of shares with radices stay far from overflow.
constexpr double kRateSteps = 1 << 20;
// The denominator of shares that do not come from the closed form, or whose own denominator is larger.
constexpr std::int64_t kShareSteps = std::int64_t{1} << 40;

struct WideFraction {
  Int128 num, den;
};

Int128 gcd(Int128 a, Int128 b) {
  while (b != 0) {
    const Int128 rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/// The fraction in lowest terms; rounded down to 1/kShareSteps where its denominator is larger.
Fraction narrow(WideFraction wide) {
  const Int128 divisor = wide.num == 0 ? wide.den : gcd(wide.num, wide.den);
  wide.num /= divisor;
  wide.den /= divisor;
  if (wide.den > kShareSteps) {
    // A numerator above 2^87 comes with a denominator as large: halving both changes no visible digit.
    while (wide.den > (Int128{1} << 80)) {
      wide.num /= 2;
      wide.den /= 2;
    }
    return narrow({wide.num * kShareSteps / wide.den, kShareSteps});
  }
  return {static_cast<std::int64_t>(wide.num), static_cast<std::int64_t>(wide.den)};
}

/// Bandwidths as small integers in the same ratio: exact where they are multiples of one another or equal.
std::vector<std::int64_t> integer_rates(std::span<const LevelRate> levels) {
  double largest = 0;
  bool all_known = true;
  for (const LevelRate& level : levels) {
    largest = std::max(largest, level.bandwidth);
    all_known = all_known && std::isfinite(level.bandwidth) && level.bandwidth > 0;
  }
  std::vector<std::int64_t> rates(levels.size(), 1);
  if (!all_known) return rates;  // rates are unknown: treat them as equal
  std::int64_t divisor = 0;
  bool whole = true;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    whole = whole && levels[l].bandwidth < 0x1p53 && levels[l].bandwidth == std::floor(levels[l].bandwidth);
    rates[l] = whole ? static_cast<std::int64_t>(levels[l].bandwidth) : 1;
    divisor = std::gcd(divisor, rates[l]);
  }
  if (whole && largest / static_cast<double>(divisor) <= kRateSteps) {
    for (std::int64_t& rate : rates) rate /= divisor;
    return rates;
  }
  for (std::size_t l = 0; l < levels.size(); ++l) {
    rates[l] = std::max<std::int64_t>(1, std::llround(levels[l].bandwidth / largest * kRateSteps));
  }
  return rates;
}

using Order = std::vector<std::int32_t>;

Order cyclic_order(std::int32_t first, std::int32_t num_levels) {
  Order levels(num_levels);
  for (std::int32_t i = 0; i < num_levels; ++i) levels[i] = (first + i) % num_levels;
  return levels;
}

/// Orders with shares proportional to `weights`; those of weight 0 are left out.
std::vector<LaneOrder> by_weights(const std::vector<Order>& all, std::span<const double> weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<LaneOrder> orders;
  double before = 0;
  Fraction begin{0, 1};
  for (std::size_t p = 0; p < weights.size(); ++p) {
    before += weights[p];
    const auto steps = static_cast<double>(kShareSteps);
    const bool last = std::all_of(weights.begin() + static_cast<std::ptrdiff_t>(p) + 1, weights.end(),
                                  [](double w) { return w <= 0; });
    const Fraction end = last ? Fraction{1, 1} : narrow({std::llround(before / total * steps), kShareSteps});
    if (end == begin) continue;
    orders.push_back({all[p], begin, end});
    begin = end;
    if (last) break;
  }
  return orders;
}

/// All orders of up to this many levels are weighed: 720 of 6.
constexpr std::int32_t kMostLevelsWeighed = 6;
/// Smaller shares come from rounding.
constexpr double kLeastShareOfALane = 1e-7;

/// The shares of all orders with which the busiest level is least busy, by a linear program. Of an order's
/// share, level l carries (1 - 1/n_l) / (product of the radices that the order visits before l). With f for
/// the shares times 1/T, the program maximises their sum while no level is busy for more than 1. Nothing
/// if it does not reach the optimum.
std::optional<std::vector<LaneOrder>> weighed_orders(std::span<const LevelRate> levels,
                                                     std::span<const std::int64_t> rates) {
  const double fastest = static_cast<double>(*std::ranges::max_element(rates));
  std::vector<double> capacity;
  for (const std::int64_t rate : rates) capacity.push_back(static_cast<double>(rate) / fastest);
  PackingLp program(capacity);
  std::vector<Order> orders;
  Order order(levels.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    std::vector<double> column(levels.size(), 0.0);
    double live = 1;
    for (const std::int32_t level : order) {
      const auto radix = static_cast<double>(levels[level].radix);
      column[level] = live * (1 - 1 / radix);
      live /= radix;
    }
    program.add_column(column);
    orders.push_back(order);
  } while (std::ranges::next_permutation(order).found);
  // Far more than the programs of 6 levels take.
  constexpr std::int64_t kMostWork = std::int64_t{1} << 28;
  if (program.solve(kMostWork) != LpEnd::kOptimal) return std::nullopt;
  std::vector<double> weights = program.x();
  for (double& weight : weights) weight = weight < kLeastShareOfALane * program.value() ? 0 : weight;
  return by_weights(orders, weights);
}

}  // namespace

std::vector<LaneOrder> lane_orders(std::span<const LevelRate> levels) {
  const auto num_levels = static_cast<std::int32_t>(levels.size());
  const std::vector<std::int64_t> rates = integer_rates(levels);
  const std::int64_t total = std::accumulate(rates.begin(), rates.end(), std::int64_t{0});
  const auto before = [&](std::int32_t p) { return (p + num_levels - 1) % num_levels; };

  bool all_positive = true;
  std::vector<double> shares(num_levels);
  for (std::int32_t p = 0; p < num_levels; ++p) {
    const std::int32_t q = before(p);
    const Int128 a = levels[p].radix - 1, b = levels[q].radix - 1;
    const Int128 numerator = rates[p] * levels[p].radix * b - rates[q] * a;
    all_positive = all_positive && numerator >= 0;
    shares[p] = static_cast<double>(numerator) / (static_cast<double>(total) * static_cast<double>(a * b));
  }

  if (all_positive) {
    // The shares before order p sum to (sum of B_q, q < p, + B_{p-1}/(n_{p-1}-1) - B_{K-1}/(n_{K-1}-1)) / sum
    // B.
    const Int128 last = levels[num_levels - 1].radix - 1;
    std::vector<Fraction> starts(num_levels + 1, Fraction{0, 1});
    std::int64_t rate_before = 0;
    for (std::int32_t p = 1; p < num_levels; ++p) {
      rate_before += rates[p - 1];
      const Int128 previous = levels[p - 1].radix - 1;
      starts[p] =
          narrow({rate_before * previous * last + rates[p - 1] * last - rates[num_levels - 1] * previous,
                  total * previous * last});
    }
    starts[num_levels] = {1, 1};
    std::vector<LaneOrder> orders;
    for (std::int32_t p = 0; p < num_levels; ++p) {
      if (starts[p] == starts[p + 1]) continue;
      orders.push_back({cyclic_order(p, num_levels), starts[p], starts[p + 1]});
    }
    return orders;
  }

  if (num_levels <= kMostLevelsWeighed) {
    if (auto weighed = weighed_orders(levels, rates)) return *weighed;
  }
  std::vector<double> clamped = shares;
  std::vector<Order> cyclic;
  for (std::int32_t p = 0; p < num_levels; ++p) {
    clamped[p] = std::max(clamped[p], 0.0);
    cyclic.push_back(cyclic_order(p, num_levels));
  }
  std::vector<LaneOrder> mixed = by_weights(cyclic, clamped);
  LaneOrder one{cyclic_order(0, num_levels), {0, 1}, {1, 1}};
  std::ranges::stable_sort(one.levels, [&](std::int32_t a, std::int32_t b) {
    return rates[a] != rates[b] ? rates[a] > rates[b] : levels[a].radix < levels[b].radix;
  });
  std::vector<LaneOrder> single{one};
  return busiest_level(levels, single) < busiest_level(levels, mixed) ? single : mixed;
}

std::vector<LaneOrder> equal_orders(std::size_t num_levels) {
  std::vector<LaneOrder> orders;
  const auto levels = static_cast<std::int32_t>(num_levels);
  const auto at = [&](std::int32_t p) {
    return p == 0 ? Fraction{0, 1} : p == levels ? Fraction{1, 1} : Fraction{p, levels};
  };
  for (std::int32_t p = 0; p < levels; ++p) orders.push_back({cyclic_order(p, levels), at(p), at(p + 1)});
  return orders;
}

double busiest_level(std::span<const LevelRate> levels, std::span<const LaneOrder> orders) {
  std::vector<double> load(levels.size(), 0.0);
  for (const LaneOrder& order : orders) {
    double live = static_cast<double>(order.end.num) / static_cast<double>(order.end.den) -
                  static_cast<double>(order.begin.num) / static_cast<double>(order.begin.den);
    for (const std::int32_t level : order.levels) {
      const auto radix = static_cast<double>(levels[level].radix);
      load[level] += live * (1 - 1 / radix);
      live /= radix;
    }
  }
  double busiest = 0;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    busiest = std::max(busiest, load[l] / (levels[l].bandwidth > 0 ? levels[l].bandwidth : 1));
  }
  return busiest;
}

LaneOrder part_of(const LaneOrder& order, std::int32_t part, std::int32_t num_parts) {
  const auto cut = [&](std::int64_t at) {
    if (at == 0) return order.begin;
    if (at == num_parts) return order.end;
    // begin * (1 - at/parts) + end * at/parts over one denominator.
    const Int128 common =
        static_cast<Int128>(order.begin.den) / std::gcd(order.begin.den, order.end.den) * order.end.den;
    const auto wide = [&](const Fraction& fraction) { return common / fraction.den * fraction.num; };
    if (common > (Int128{1} << 100)) {  // times num_parts this could overflow: round first
      const auto share = [](const Fraction& f) {
        return static_cast<double>(f.num) / static_cast<double>(f.den);
      };
      const double mixed = share(order.begin) + (share(order.end) - share(order.begin)) *
                                                    static_cast<double>(at) / static_cast<double>(num_parts);
      return narrow({static_cast<std::int64_t>(mixed * static_cast<double>(kShareSteps)), kShareSteps});
    }
    return narrow({wide(order.begin) * (num_parts - at) + wide(order.end) * at, common * num_parts});
  };
  return {order.levels, cut(part), cut(part + 1)};
}

}  // namespace hips::plan
