#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "lib/base/result.hpp"

namespace hips::topology {

inline constexpr std::string_view kBlanks = " \t\r\v\f";

/// `text` without blanks at its ends.
inline std::string_view without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// `text` in lower case; bytes that are not ASCII stay.
inline std::string in_lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// `text` without the byte order mark that editors of Windows write.
inline std::string_view without_mark(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

/// Takes the first word off `text` and returns it; empty at the end.
inline std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::size_t end = std::min(text.find_first_of(kBlanks), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

/// The lines of a text, without their ends: "\n" or "\r\n".
///
/// Example  TextLines lines(text); while (const auto line = lines.next()) use(*line, lines.number());
class TextLines {
 public:
  explicit TextLines(std::string_view text) : rest_(without_mark(text)) {}

  std::optional<std::string_view> next() {
    if (rest_.empty()) return std::nullopt;
    ++number_;
    const std::size_t end = rest_.find('\n');
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

  /// Of the line that next() returned last; the first is 1.
  [[nodiscard]] std::int64_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
};

/// Errors   kInvalidArgument: `FILE:LINE: problem`.
inline tl::unexpected<Status> bad_line(std::string_view file, std::int64_t line, std::string_view problem) {
  return fail(Code::kInvalidArgument, fmt::format("{}:{}: {}", file, line, problem));
}

}  // namespace hips::topology
