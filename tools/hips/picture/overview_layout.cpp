#include "tools/hips/picture/overview_layout.hpp"

#include "tools/hips/picture/drawable.hpp"

#include <algorithm>
#include <cstddef>

namespace hips::picture {
namespace {

constexpr double kMargin = 24;    ///< around the picture
constexpr double kTierRow = 104;  ///< between tiers
constexpr double kHalfRow = 48;   ///< between the rows of a tier
constexpr double kLeast = 520, kWidest = 132;
constexpr int kSweeps = 6;

/// The boxes of each tier from left to right. Each tier is sorted by the mean position of the neighbours, from below and from
/// above in turn.
/// Source   Sugiyama, Tagawa, Toda 1981, doi:10.1109/TSMC.1981.4308636.
std::vector<std::vector<std::size_t>> ordered(const Overview& overview) {
  std::vector<std::vector<std::size_t>> tiers, across(overview.boxes.size());
  for (std::size_t box = 0; box < overview.boxes.size(); ++box) {
    const std::size_t tier = overview.boxes[box].tier;
    if (tier >= tiers.size()) tiers.resize(tier + 1);
    tiers[tier].push_back(box);
  }
  for (const OverviewCable& cable : overview.cables) {
    across[cable.lower].push_back(cable.upper);
    across[cable.upper].push_back(cable.lower);
  }
  std::vector<double> place(overview.boxes.size(), 0), wanted(place);
  const auto spread = [&](const std::vector<std::size_t>& tier) {
    for (std::size_t i = 0; i < tier.size(); ++i)
      place[tier[i]] = (static_cast<double>(i) + 0.5) / static_cast<double>(tier.size());
  };
  const auto sort_tier = [&](std::size_t t, bool from_below) {
    for (const std::size_t box : tiers[t]) {
      double sum = 0, count = 0;
      for (const std::size_t other : across[box]) {
        const std::size_t tier = overview.boxes[other].tier;
        if (from_below ? tier >= t : tier <= t) continue;
        sum += place[other];
        ++count;
      }
      wanted[box] = count > 0 ? sum / count : place[box];
    }
    std::ranges::stable_sort(tiers[t], {}, [&](std::size_t box) { return wanted[box]; });
    spread(tiers[t]);
  };
  for (const auto& tier : tiers) spread(tier);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t t = 1; t < tiers.size(); ++t) sort_tier(t, true);
    for (std::size_t t = tiers.size(); t-- > 0;) sort_tier(t, false);
  }
  return tiers;
}

/// Moves the boxes of a tier over the middle of their neighbours below, as far as they have room.
void centre(const Overview& overview, const std::vector<std::size_t>& tier, double pitch,
            OverviewLayout& layout) {
  std::vector<double> wanted(overview.boxes.size(), 0), count(wanted);
  for (const OverviewCable& cable : overview.cables) {
    if (overview.boxes[cable.lower].tier >= overview.boxes[cable.upper].tier) continue;
    wanted[cable.upper] += layout.at[cable.lower].x;
    ++count[cable.upper];
  }
  for (const std::size_t box : tier)
    wanted[box] = count[box] > 0 ? wanted[box] / count[box] : layout.at[box].x;
  std::vector<std::size_t> order = tier;
  std::ranges::stable_sort(order, {}, [&](std::size_t box) { return wanted[box]; });
  double least = kMargin + pitch / 2;
  for (const std::size_t box : order) {
    layout.at[box].x = std::max(wanted[box], least);
    least = layout.at[box].x + pitch;
  }
  double most = layout.width - kMargin - pitch / 2;
  for (std::size_t i = order.size(); i-- > 0;) {
    layout.at[order[i]].x = std::min(layout.at[order[i]].x, most);
    most = layout.at[order[i]].x - pitch;
  }
  // Together, boxes above the same ones are in the middle of them.
  double wish = 0, place = 0;
  for (const std::size_t box : tier) {
    wish += wanted[box];
    place += layout.at[box].x;
  }
  if (order.empty()) return;
  const double shift = std::clamp((wish - place) / static_cast<double>(tier.size()),
                                  kMargin + pitch / 2 - layout.at[order.front()].x,
                                  layout.width - kMargin - pitch / 2 - layout.at[order.back()].x);
  for (const std::size_t box : tier) layout.at[box].x += shift;
}

}  // namespace

OverviewLayout layout_of(const Overview& overview) {
  const auto tiers = ordered(overview);
  std::size_t widest = 1;
  double height = kTitleHeight + 2 * kMargin + kOverviewBoxHeight;
  for (std::size_t t = 0; t < tiers.size(); ++t) {
    const std::size_t rows = (std::max<std::size_t>(tiers[t].size(), 1) + kMostInRow - 1) / kMostInRow;
    widest = std::max(widest, (tiers[t].size() + rows - 1) / rows);
    height += static_cast<double>(rows - 1) * kHalfRow + (t > 0 ? kTierRow : 0);
  }
  OverviewLayout layout;
  const double inner =
      std::clamp(static_cast<double>(widest) * kWidest, kLeast - 2 * kMargin, kMostWidth - 2 * kMargin);
  layout.width = inner + 2 * kMargin;
  layout.height = height;
  layout.box_width = std::min(inner / static_cast<double>(widest) - 12, kWidest - 12);
  layout.at.resize(overview.boxes.size());
  double y = height - kMargin - kOverviewBoxHeight / 2;
  for (const auto& tier : tiers) {
    if (tier.empty()) continue;
    const std::size_t rows = (std::max<std::size_t>(tier.size(), 1) + kMostInRow - 1) / kMostInRow;
    for (std::size_t i = 0; i < tier.size(); ++i) {
      // Neighbours alternate between the rows, so that the order from left to right is kept.
      const double share =
          (static_cast<double>(i / rows) + 0.5) / static_cast<double>((tier.size() + rows - 1) / rows);
      layout.at[tier[i]] = {kMargin + share * inner, y - static_cast<double>(i % rows) * kHalfRow};
    }
    if (rows == 1 && overview.boxes[tier.front()].tier > 0)
      centre(overview, tier, layout.box_width + 12, layout);
    y -= static_cast<double>(rows - 1) * kHalfRow + kTierRow;
  }
  return layout;
}

}  // namespace hips::picture
