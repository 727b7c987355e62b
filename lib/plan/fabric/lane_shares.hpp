#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <hips/plan.hpp>

namespace hips::plan {

/// A level for lane_orders().
struct LevelRate {
  std::int64_t radix = 0;
  double bandwidth = 0;  ///< of all its NICs of one server, one direction; any unit
};

/// An order in which lanes visit the levels, and the part of the vector [begin, end) that these lanes carry.
struct LaneOrder {
  std::vector<std::int32_t> levels;
  Fraction begin, end;
};

/// The orders of levels, with shares that load every level's NICs in proportion to their bandwidth.
///
/// Order p of the K cyclic ones visits the levels p, p+1, ... (mod K) and carries
///
///   f_p = (B_p * n_p/(n_p-1) - B_{p-1}/(n_{p-1}-1)) / sum of B
///
/// With these shares every NIC direction is busy for 2(N-1)W / (N * sum of B), the lower bound of any
/// algorithm. On equal links all f_p are positive. Where a level is so slow that some f_p is negative, a
/// linear program weighs all orders of up to 6 levels. Its result is optimal: it meets the bound of any
/// algorithm, the largest 2 (prod n_l - 1) W / (N * sum B_l) over all sets of levels l (lib/cost/bound.hpp).
/// For more levels, and should the program not reach its optimum, the cheaper of two is taken: the cyclic
/// orders without the negative shares, or one order, fastest level first, of equally fast levels the larger
/// radix later. Orders without a share are left out.
///
/// Shapes   levels: K >= 1, radices >= 2. Result: 1..K orders, begin 0 and end 1 over all.
/// Cost     K*K; with the program K! columns of K.
/// Threads  pure; any thread.
std::vector<LaneOrder> lane_orders(std::span<const LevelRate> levels);

/// The K cyclic orders of K levels with equal shares.
std::vector<LaneOrder> equal_orders(std::size_t num_levels);

/// The busiest level's time per byte of vector and phase, in 1 / unit of bandwidth, when `orders` carry their
/// shares.
double busiest_level(std::span<const LevelRate> levels, std::span<const LaneOrder> orders);

/// Cuts [begin, end) into `num_parts` equal parts and returns part `part`.
LaneOrder part_of(const LaneOrder& order, std::int32_t part, std::int32_t num_parts);

}  // namespace hips::plan
