#include "topology/clusters/slurm_lines.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "topology/cabling/node_role.hpp"
#include "topology/cabling/text_lines.hpp"
#include "topology/clusters/slurm_source.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

/// Terminals are at least one column wider.
constexpr std::size_t kLeastWidth = 79;

std::string_view without_end(std::string_view line) {
  return line.substr(0, line.find_last_not_of("\r") + 1);
}

/// A line without its comment and the blanks at its end.
std::string_view without_comment(std::string_view line) {
  line = line.substr(0, line.find('#'));
  return line.substr(0, line.find_last_not_of(kBlanks) + 1);
}

/// Does a shell ask for a command here: "$ scontrol show topology", "[user@host ~]$"?
bool is_prompt(std::string_view line) {
  line = without_blanks(line);
  if (line.empty() || line.front() == '#') return false;
  if (line.find('=') == std::string_view::npos &&
      std::string_view("$#%>").find(line.back()) != std::string_view::npos)
    return true;
  constexpr std::string_view kCommand = "scontrol ";
  const std::size_t at = line.find(kCommand);
  if (at == 0 || at == std::string_view::npos) return at == 0;
  // A comment behind keys may name the command, too.
  return std::string_view(" \t/").find(line[at - 1]) != std::string_view::npos &&
         line.substr(0, at).find('=') == std::string_view::npos;
}

/// Keys behind the first of a line, as scontrol shows them.
bool is_later_key(std::string_view key) {
  return is_one_of(in_lower_case(key),
                   {"nodes", "switches", "level", "linkspeed", "blockindex", "blocksize"});
}

/// Without the spaces around "=", and without those in values in quotes, where no name has one.
std::string tidied(std::string_view text) {
  std::string out;
  bool is_quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') is_quoted = !is_quoted;
    if (c != ' ' && c != '\t') {
      out += c;
      continue;
    }
    // One space of several does.
    const std::size_t next = std::min(text.find_first_not_of(" \t", at), text.size());
    const std::string_view word =
        text.substr(next, std::min(text.find_first_of(" \t", next), text.size()) - next);
    at = next - 1;
    // A key without a value stays one.
    const bool behind_sign = out.ends_with('=') && word.find('=') == std::string_view::npos;
    if (!is_quoted && !word.starts_with('=') && !behind_sign) out += ' ';
  }
  return out;
}

}  // namespace

SlurmLines::SlurmLines(std::string_view text) : rest_(without_mark(text)) {
  for (std::string_view rest = rest_; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.find('#') == std::string_view::npos) width_ = std::max(width_, without_end(line).size());
  }
}

std::string_view SlurmLines::take_line() {
  const std::string_view line = rest_.substr(0, rest_.find('\n'));
  rest_.remove_prefix(std::min(line.size() + 1, rest_.size()));
  ++number_;
  return without_end(line);
}

std::optional<SlurmLine> SlurmLines::next() {
  if (rest_.empty()) return std::nullopt;
  SlurmLine made{.number = number_ + 1};
  std::string joined;
  std::ptrdiff_t open = 0;  // brackets
  for (;;) {
    const std::string_view whole = take_line();
    const bool is_first = number_ == made.number;
    std::string_view line = is_first && is_prompt(whole) ? std::string_view() : without_comment(whole);
    const bool is_continued = line.ends_with('\\');
    if (is_continued) line.remove_suffix(1);
    joined += line;
    open += std::ranges::count(line, '[') - std::ranges::count(line, ']');
    if (is_continued && !rest_.empty()) continue;
    made.is_cut = is_continued;
    if (is_continued || joined.empty()) break;
    const auto joint = joint_with_next(joined, open, whole.size());
    if (!joint) break;
    joined += *joint;
  }
  if (made.is_cut) made.number = number_;
  made.text = tidied(joined);
  return made;
}

/// What is between a line of some `length` and the next one, which continues it; none if that is a line of its own. `joined` is the
/// line with those that it continues, `open` how many brackets are open in it.
std::optional<std::string_view> SlurmLines::joint_with_next(std::string_view joined, std::ptrdiff_t open,
                                                            std::size_t length) const {
  std::string_view next = without_end(rest_.substr(0, rest_.find('\n')));
  if (is_prompt(next) || is_include_line(next)) return std::nullopt;
  next = without_comment(next);
  const std::string_view word = take_word(next);
  if (word.empty()) return std::nullopt;
  const bool is_wide = width_ >= kLeastWidth;
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) {
    const bool is_within =
        open > 0 || joined.ends_with(',') || joined.ends_with('=') || word.starts_with(',');
    return is_within || (is_wide && length == width_) ? std::optional(std::string_view()) : std::nullopt;
  }
  // A blank at the end of the full line may be lost.
  if (!is_wide || length + 1 < width_) return std::nullopt;
  const std::size_t blank = joined.find_last_of(kBlanks);
  const std::string_view last = joined.substr(blank == std::string_view::npos ? 0 : blank + 1);
  if (last.find('=') == std::string_view::npos)
    return is_later_key(std::string(last) + std::string(word.substr(0, equals)))
               ? std::optional(std::string_view())
               : std::nullopt;
  return is_later_key(word.substr(0, equals)) ? std::optional(std::string_view(" ")) : std::nullopt;
}

Result<std::optional<SlurmPair>> take_pair(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  if (line.empty()) return std::nullopt;
  // A value in quotes may have spaces.
  constexpr std::string_view kBlanksAndQuote = " \t\r\v\f\"";
  std::size_t end = std::min(line.find_first_of(kBlanksAndQuote), line.size());
  const bool is_quoted = end < line.size() && end > 0 && line[end] == '"' && line[end - 1] == '=';
  if (is_quoted) {
    end = line.find('"', end + 1);
    if (end == std::string_view::npos)
      return fail(Code::kInvalidArgument, "a \" is missing at the end of a value in quotes");
    ++end;
  } else {
    end = std::min(line.find_first_of(kBlanks), line.size());
  }
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return fail(
        Code::kInvalidArgument,
        fmt::format(
            "{} is not KEY=VALUE; write such as SwitchName=leaf0, and join lines that a terminal has folded",
            in_quotes(word)));
  std::string_view value = word.substr(equals + 1);
  if (is_quoted) value = value.substr(1, value.size() - 2);
  return SlurmPair{word.substr(0, equals), value};
}

}  // namespace hips::topology
