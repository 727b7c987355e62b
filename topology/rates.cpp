#include "topology/rates.hpp"

#include <charconv>

#include <fmt/format.h>

namespace hips::topology {
namespace {

constexpr double kBytesPerGb = 1e9 / 8;

/// Removes the number at the beginning of `text`, which keeps the unit. from_chars alone would also accept
/// "-1", "inf" and "nan".
std::optional<double> take_number(std::string_view& text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// The value with the fewest digits that are read as `exact`: division need not restore the decimal digits.
template <typename Read>
std::string shortest(double value, const char* unit, double exact, Read read) {
  for (int digits = 1; digits < 17; ++digits) {
    std::string text = fmt::format("{:.{}g}{}", value, digits, unit);
    if (read(text) == exact) return text;
  }
  return fmt::format("{}{}", value, unit);
}

}  // namespace

std::optional<double> read_rate(std::string_view text) {
  auto value = take_number(text);
  if (!value) return std::nullopt;
  if (text == "Mb") {
    *value /= 1000;
  } else if (text != "Gb") {
    return std::nullopt;
  }
  if (!(*value >= 1e-3 && *value <= 100'000)) return std::nullopt;
  return *value * kBytesPerGb;
}

std::optional<double> read_latency_ns(std::string_view text) {
  auto value = take_number(text);
  if (!value) return std::nullopt;
  double unit_ns = 1;
  if (text == "us") {
    unit_ns = 1e3;
  } else if (text == "ms") {
    unit_ns = 1e6;
  } else if (text != "ns") {
    return std::nullopt;
  }
  if (!(*value * unit_ns <= 1e10)) return std::nullopt;
  return *value * unit_ns;
}

std::string rate_text(double bytes_per_s) {
  return shortest(bytes_per_s / kBytesPerGb, "Gb", bytes_per_s, read_rate);
}

std::string latency_text(double ns) {
  const bool micro = ns >= 1000 || ns == 0;
  return shortest(micro ? ns / 1000 : ns, micro ? "us" : "ns", ns, read_latency_ns);
}

}  // namespace hips::topology
