#include "topology/spec.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace hips::topology {

namespace {

/// Longer texts are cut in messages; the longest usual spec has about 60 characters.
constexpr std::size_t kMaxQuoted = 80;

/// "1st", "2nd", "3rd", "4th", ..., "11th", ..., "21st"
std::string ordinal(std::size_t number) {
  const char* suffix = "th";
  if (number / 10 % 10 != 1) {
    if (number % 10 == 1) suffix = "st";
    if (number % 10 == 2) suffix = "nd";
    if (number % 10 == 3) suffix = "rd";
  }
  return fmt::format("{}{}", number, suffix);
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, kMaxQuoted)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  if (text.size() > kMaxQuoted) out += "...";
  return out + '"';
}

tl::unexpected<Status> bad_spec(std::string_view spec, std::string_view problem) {
  return fail(Code::kInvalidArgument, fmt::format("topology {}: {}", in_quotes(spec), problem));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    pieces.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return pieces;
    begin = end + 1;
  }
}

Result<std::int64_t> read_number(std::string_view spec, std::string_view what, std::string_view text,
                                 std::int64_t min, std::int64_t max) {
  const std::string range = fmt::format("it must be a whole number from {} to {}", min, max);
  if (text.empty()) return bad_spec(spec, fmt::format("{} is missing; {}", what, range));
  // from_chars would accept a minus sign; only digits are valid here.
  const bool digits_only = std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits_only) return bad_spec(spec, fmt::format("{} is {}; {}", what, in_quotes(text), range));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < min || value > max) {
    return bad_spec(spec, fmt::format("{} is {}; {}", what, in_quotes(text), range));
  }
  return value;
}

Result<std::int64_t> count_servers(std::string_view spec, const std::vector<std::int64_t>& radices) {
  std::int64_t servers = 1;
  for (const std::int64_t radix : radices) {
    if (servers > kMaxRanks / radix) {
      return bad_spec(spec, fmt::format("too many servers (valid: up to {})", kMaxRanks));
    }
    servers *= radix;
  }
  return servers;
}

Result<std::vector<std::int64_t>> read_radices(const Spec& spec, std::string_view what) {
  std::vector<std::int64_t> radices;
  std::size_t position = 0;
  for (const std::string_view piece : split(spec.args, 'x')) {
    const auto radix =
        read_number(spec.text, fmt::format("the {} {}", ordinal(++position), what), piece, 1, kMaxRanks);
    if (!radix) return fail(radix.error());
    if (*radix > 1) radices.push_back(*radix);
  }
  if (radices.empty()) {
    return bad_spec(
        spec.text,
        fmt::format("no {} is above 1, so there is only one server; write switch:1 for one server", what));
  }
  if (auto servers = count_servers(spec.text, radices); !servers) return fail(servers.error());
  return radices;
}

}  // namespace hips::topology
