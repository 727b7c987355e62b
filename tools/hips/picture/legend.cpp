#include "tools/hips/picture/legend.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "lib/base/counted.hpp"
#include "tools/hips/picture/drawing.hpp"
#include "tools/hips/picture/label.hpp"

namespace hips::picture {
namespace {

/// The width of a character is an estimate that fits the widest common sans-serif fonts.
constexpr double kLegendCharacter = 6.6, kLegendLeft = 24, kSample = 26, kEntryGap = 18;

/// "slow: 3 cables, such as leaf3 -- n11 at 25Gb"
std::string entry_text(const char* word, std::size_t count, const std::string& first) {
  if (count == 1) return fmt::format("{}: {}", word, first);
  return fmt::format("{}: {} cables, such as {}", word, count, first);
}

}  // namespace

std::string legend(const LegendCounts& counts, double y, double width) {
  struct Entry {
    const char* style;
    std::string text;
  };
  std::vector<Entry> entries{{" usual", counted(counts.cables, "cable")}};
  if (counts.slow > 0) entries.push_back({" slow", entry_text("slow", counts.slow, counts.first_slow)});
  if (counts.down > 0) entries.push_back({" down", entry_text("down", counts.down, counts.first_down)});
  if (counts.assumed) entries.push_back({" assumed", "cables that the file does not tell"});
  const double space = width - 2 * kLegendLeft - static_cast<double>(entries.size()) * (kSample + kEntryGap);
  std::string text;
  double x = kLegendLeft;
  std::size_t left =
      std::max<std::size_t>(static_cast<std::size_t>(std::max(space, 0.0) / kLegendCharacter), 12);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string shown =
        shortened(entries[i].text, std::max<std::size_t>(left / (entries.size() - i), 8));
    text += fmt::format(
        "<path class=\"key{0}\" d=\"M{1:.0f} {2:.0f}h{3:.0f}\"/><text class=\"key-text\" x=\"{4:.0f}\" "
        "y=\"{5:.0f}\">{6}</text>\n",
        entries[i].style, x, y + 10, kSample - 6, x + kSample, y + 14, xml_text(shown));
    const std::size_t length = num_characters(shown);
    x += kSample + kEntryGap + static_cast<double>(length) * kLegendCharacter;
    left -= std::min(left, length);
  }
  return text;
}

}  // namespace hips::picture
