#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/result.hpp"

namespace hips::topology {

/// A word of the DOT language.
struct DotToken {
  enum class Kind : std::uint8_t {
    kName,  ///< a plain word, a string in quotes, or HTML in angle brackets
    kEdge,  ///< "--" or "->"
    kSign,  ///< one of { } [ ] ; , = : +
    kEnd,
  };
  Kind kind = Kind::kEnd;
  std::string text{};
  bool is_quoted = false;
  std::int64_t line = 1;

  [[nodiscard]] bool is(char sign) const { return kind == Kind::kSign && text.front() == sign; }
  [[nodiscard]] bool is_word(std::string_view word) const {
    return kind == Kind::kName && !is_quoted && text == word;
  }
};

/// Splits a text of the DOT language into its words. Leaves out comments: "//", "/* */", and "#" up to the end of the line.
class DotTokens {
 public:
  DotTokens(std::string_view file, std::string_view text);

  /// Errors   kInvalidArgument: a string or a comment without its end, or a character that begins no word.
  Result<DotToken> next();

 private:
  Result<void> skip();
  Result<DotToken> take_string();
  Result<DotToken> take_html();

  std::string_view file_, rest_;
  std::int64_t line_ = 1;
};

}  // namespace hips::topology
