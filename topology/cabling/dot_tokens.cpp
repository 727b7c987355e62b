#include "topology/cabling/dot_tokens.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "topology/cabling/text_lines.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

/// A character of a plain word; names of hosts may have "-" inside.
bool is_word_char(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
         byte >= 0x80;
}

}  // namespace

DotTokens::DotTokens(std::string_view file, std::string_view text) : file_(file), rest_(without_mark(text)) {}

Result<void> DotTokens::skip() {
  for (;;) {
    while (!rest_.empty() &&
           (rest_.front() == '\n' || kBlanks.find(rest_.front()) != std::string_view::npos)) {
      if (rest_.front() == '\n') ++line_;
      rest_.remove_prefix(1);
    }
    if (rest_.starts_with("//") || rest_.starts_with('#')) {
      rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
    } else if (rest_.starts_with("/*")) {
      const std::size_t end = rest_.find("*/", 2);
      if (end == std::string_view::npos) return bad_line(file_, line_, "the comment has no end; add \"*/\"");
      line_ += std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(end), '\n');
      rest_.remove_prefix(end + 2);
    } else {
      return {};
    }
  }
}

Result<DotToken> DotTokens::take_string() {
  DotToken token{.kind = DotToken::Kind::kName, .is_quoted = true, .line = line_};
  rest_.remove_prefix(1);
  for (;;) {
    const std::size_t end = rest_.find_first_of("\"\\\n");
    if (end == std::string_view::npos) {
      return bad_line(file_, token.line, "a \" is missing at the end of the string; add it");
    }
    token.text += rest_.substr(0, end);
    const char at = rest_[end];
    rest_.remove_prefix(end + 1);
    if (at == '"') return token;
    if (at == '\n') {
      ++line_;
      token.text += '\n';
    } else if (!rest_.empty()) {
      // As in DOT: only \" is an escape; HiPS writes \\, too. A backslash at the end of a line continues it.
      if (rest_.front() == '\n') ++line_;
      if (rest_.front() != '"' && rest_.front() != '\\' && rest_.front() != '\n') token.text += '\\';
      if (rest_.front() != '\n') token.text += rest_.front();
      rest_.remove_prefix(1);
    }
  }
}

Result<DotToken> DotTokens::take_html() {
  DotToken token{.kind = DotToken::Kind::kName, .is_quoted = true, .line = line_};
  std::size_t depth = 0, end = 0;
  for (; end < rest_.size(); ++end) {
    if (rest_[end] == '\n') ++line_;
    if (rest_[end] == '<') ++depth;
    if (rest_[end] == '>' && --depth == 0) break;
  }
  if (end == rest_.size())
    return bad_line(file_, token.line, "a \">\" is missing at the end of the text; add it");
  token.text = rest_.substr(1, end - 1);
  rest_.remove_prefix(end + 1);
  return token;
}

Result<DotToken> DotTokens::next() {
  if (auto skipped = skip(); !skipped) return fail(skipped.error());
  if (rest_.empty()) return DotToken{.line = line_};
  const char first = rest_.front();
  if (first == '"') return take_string();
  if (first == '<') return take_html();
  if (rest_.starts_with("--") || rest_.starts_with("->")) {
    DotToken token{.kind = DotToken::Kind::kEdge, .text = std::string(rest_.substr(0, 2)), .line = line_};
    rest_.remove_prefix(2);
    return token;
  }
  if (std::string_view("{}[];,=:+").find(first) != std::string_view::npos) {
    rest_.remove_prefix(1);
    return DotToken{.kind = DotToken::Kind::kSign, .text = std::string(1, first), .line = line_};
  }
  std::size_t end = first == '-' ? 1 : 0;
  while (end < rest_.size() && (is_word_char(rest_[end]) || (rest_[end] == '-' && end + 1 < rest_.size() &&
                                                             end > 0 && is_word_char(rest_[end + 1])))) {
    ++end;
  }
  if (end == 0 || (first == '-' && end == 1)) {
    return bad_line(file_, line_,
                    fmt::format("{} begins no word; write names in quotes, such as \"leaf1\":\"swp1\"",
                                in_quotes(rest_.substr(0, 1))));
  }
  DotToken token{.kind = DotToken::Kind::kName, .text = std::string(rest_.substr(0, end)), .line = line_};
  rest_.remove_prefix(end);
  return token;
}

}  // namespace hips::topology
