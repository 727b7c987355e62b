#include "topology/cabling/rate_words.hpp"

#include <array>
#include <charconv>
#include <string>

#include "topology/cabling/ib_rate.hpp"
#include "topology/cabling/text_lines.hpp"

namespace hips::topology {

double rate_of_words(std::string_view text) {
  text = without_blanks(text);
  // Arista's "forced 100gfull" and "auto 25gfull".
  for (const std::string_view how : {"forced ", "auto "}) {
    if (in_lower_case(text.substr(0, how.size())) == how) text = without_blanks(text.substr(how.size()));
  }
  if (const double rate = ib_rate(text); rate > 0) return rate;
  if (const double rate = ib_rate("4x", text); rate > 0) return rate;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  // The upper limit is that of topology files: 100 Tb/s.
  constexpr double kMostMegabits = 1e8;
  if (error != std::errc() || !(number > 0)) return 0;
  std::string unit = in_lower_case(without_blanks(text.substr(static_cast<std::size_t>(end - text.data()))));
  const bool is_bare = unit.empty();
  constexpr std::string_view kFullDuplex = "full";
  if (unit.ends_with(kFullDuplex)) unit.resize(unit.size() - kFullDuplex.size());
  // "25gbase-cr" is a kind of Ethernet, as "1000base-t" is.
  if (const std::size_t base = unit.find("base"); base != std::string::npos) unit.resize(base);
  // "100g-2" has two lanes.
  if (const std::size_t lanes = unit.find('-');
      lanes != std::string::npos && lanes > 0 && lanes + 2 == unit.size() && is_digit(unit.back()))
    unit.resize(lanes);
  double megabits = 0;
  // Without a unit people write 400 and mean Gb/s, and SONiC writes 400000.
  constexpr double kLeastMegabits = 1000;
  if (is_bare && number < kLeastMegabits) unit = "g";
  for (const std::string_view known : {"", "m", "mb", "mbps", "mbit", "mbit/s", "mb/s"}) {
    if (unit == known) megabits = number;
  }
  for (const std::string_view known : {"g", "gb", "gbe", "ge", "gbps", "gbit", "gbit/s", "gb/s"}) {
    if (unit == known) megabits = number * 1e3;
  }
  for (const std::string_view known : {"t", "tb", "tbps", "tbit/s", "tb/s"}) {
    if (unit == known) megabits = number * 1e6;
  }
  return megabits >= 1 && megabits <= kMostMegabits ? megabits * 1e6 / 8 : 0;
}

}  // namespace hips::topology
