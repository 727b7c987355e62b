#include "topology/parts/folded.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hips::topology {
namespace {

/// A name around its last number.
struct Name {
  std::string_view before, digits, after;
};

Name split(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  const std::size_t last = text.find_last_of(kDigits);
  if (last == std::string_view::npos) return {.before = text, .digits = {}, .after = {}};
  const std::size_t end = last + 1, other = text.substr(0, end).find_last_not_of(kDigits);
  const std::size_t begin = other == std::string_view::npos ? 0 : other + 1;
  return {
      .before = text.substr(0, begin), .digits = text.substr(begin, end - begin), .after = text.substr(end)};
}

/// The digits of the next number, as the notation of a range would write it; none for numbers of more than 18 digits.
std::string after(std::string_view digits) {
  constexpr std::size_t kMostDigits = 18;
  std::int64_t value = 0;
  if (digits.empty() || digits.size() > kMostDigits) return "";
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return fmt::format("{:0{}}", value + 1, digits.size());
}

struct Range {
  std::string_view first, last;
};

std::string text_of(const Name& name, const std::vector<Range>& ranges) {
  if (name.digits.empty()) return std::string(name.before);
  std::vector<std::string> texts;
  for (const Range& range : ranges)
    texts.push_back(range.first == range.last ? std::string(range.first)
                                              : fmt::format("{}-{}", range.first, range.last));
  const bool single = ranges.size() == 1 && ranges[0].first == ranges[0].last;
  return fmt::format("{}{}{}{}{}", name.before, single ? "" : "[", fmt::join(texts, ","), single ? "" : "]",
                     name.after);
}

}  // namespace

std::string folded(std::span<const std::string> names) {
  std::vector<std::string> entries;
  for (std::size_t i = 0; i < names.size();) {
    const Name first = split(names[i]);
    std::vector<Range> ranges{{first.digits, first.digits}};
    for (++i; i < names.size() && !first.digits.empty(); ++i) {
      const Name next = split(names[i]);
      if (next.digits.empty() || next.before != first.before || next.after != first.after) break;
      if (next.digits == after(ranges.back().last)) {
        ranges.back().last = next.digits;
      } else {
        ranges.push_back({next.digits, next.digits});
      }
    }
    entries.push_back(text_of(first, ranges));
  }
  return fmt::format("{}", fmt::join(entries, ","));
}

}  // namespace hips::topology
