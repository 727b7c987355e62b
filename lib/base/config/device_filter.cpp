#include "lib/base/config/device_filter.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace hips {

Result<DeviceFilter> DeviceFilter::parse(std::string_view text, const Syntax& syntax) {
  DeviceFilter filter;
  std::string_view rest = text;
  const auto wrong = [&](std::string_view what) {
    return fail(Code::kInvalidArgument,
                fmt::format("{}=\"{}\" is wrong: {}; give names such as {} separated by "
                            "commas, with = before them for exact names or ^ for all others",
                            syntax.variable, text, what, syntax.example));
  };
  if (rest.starts_with('^')) {
    filter.exclude_ = true;
    rest.remove_prefix(1);
  }
  if (rest.starts_with('=')) {
    filter.exact_ = true;
    rest.remove_prefix(1);
  }
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const std::size_t colon = syntax.ports ? item.rfind(':') : item.npos;
    Entry entry{.name = std::string(item.substr(0, colon))};
    if (entry.name.empty()) return wrong("a name is missing");
    if (entry.name.find_first_of("^= \t") != std::string::npos)
      return wrong(fmt::format("\"{}\" is not a name of {}", entry.name, syntax.noun));
    if (colon != item.npos) {
      const std::string_view digits = item.substr(colon + 1);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), entry.port);
      if (error != std::errc() || end != digits.data() + digits.size() || entry.port < 1 || entry.port > 255)
        return wrong(fmt::format("invalid port \"{}\" (valid: 1 to 255)", digits));
    }
    filter.entries_.push_back(std::move(entry));
    if (comma == rest.npos) return filter;
    rest.remove_prefix(comma + 1);
  }
}

bool DeviceFilter::matches(const Entry& entry, std::string_view device, std::uint8_t port) const {
  if (entry.port >= 0 && entry.port != port) return false;
  return exact_ ? device == entry.name : device.starts_with(entry.name);
}

std::vector<std::int32_t> DeviceFilter::positions_of(std::string_view device, std::uint8_t port) const {
  const auto first = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return matches(entry, device, port); });
  if (exclude_ || entries_.empty())
    return first == entries_.end() ? std::vector<std::int32_t>{0} : std::vector<std::int32_t>{};
  std::vector<std::int32_t> places;
  for (auto it = first; it != entries_.end(); ++it) {
    if (*it == *first) places.push_back(static_cast<std::int32_t>(it - entries_.begin()));
  }
  return places;
}

}  // namespace hips
