#include "topology/clusters/hostlist.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "topology/formats/server_names.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

/// Numbers of this many digits, and sums of their ranges, fit 64 bits.
constexpr std::size_t kMostDigits = 18;
constexpr std::uint64_t kMostNames = std::numeric_limits<std::int64_t>::max();

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

/// Reads a text from left to right. Errors name the position.
class HostlistReader {
 public:
  explicit HostlistReader(std::string_view text) : text_(text) {}

  Result<Hostlist> read() {
    Hostlist list;
    list.text_ = std::string(text_.substr(0, kMaxNameLength));
    if (text_.empty()) return bad("is empty; write names such as n[01-08,12],login");
    for (;;) {
      // Slurm takes several commas for one.
      while (here() == ',') ++at_;
      if (at_ == text_.size() && at_ > 0) {
        if (list.entries_.empty()) return bad("has no name; write names such as n[01-08,12],login");
        return list;
      }
      auto entry = read_entry();
      if (!entry) return fail(entry.error());
      std::uint64_t names = 1;
      for (const Hostlist::Piece& piece : *entry) {
        if (piece.count > kMostNames / names) return bad("has too many names (valid: up to 2^63 - 1)");
        names *= piece.count;
      }
      if (names > kMostNames - list.size_) return bad("has too many names (valid: up to 2^63 - 1)");
      list.size_ += names;
      const std::uint64_t length = longest_name(*entry), left = UINT64_MAX - list.num_characters_;
      list.num_characters_ += length != 0 && names > left / length ? left : names * length;
      list.entries_.push_back(std::move(*entry));
    }
  }

 private:
  [[nodiscard]] tl::unexpected<Status> bad(std::string_view problem) const {
    return fail(Code::kInvalidArgument, fmt::format("hostlist {}: {}", in_quotes(text_), problem));
  }
  [[nodiscard]] tl::unexpected<Status> bad_here(std::string_view problem) const {
    const std::string seen = at_ < text_.size() ? in_quotes(text_.substr(at_, 1)) : "the end";
    return bad(fmt::format("character {} is {}; {}", at_ + 1, seen, problem));
  }
  [[nodiscard]] char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  Result<Hostlist::Entry> read_entry() {
    Hostlist::Entry entry;
    const std::size_t begin = at_;
    for (;;) {
      Hostlist::Piece piece;
      const std::size_t literal = at_;
      while (is_name_character(here())) ++at_;
      piece.literal = std::string(text_.substr(literal, at_ - literal));
      const bool bracket = here() == '[';
      if (bracket) {
        ++at_;
        if (auto read = read_bracket(piece); !read) return fail(read.error());
      }
      if (bracket || !piece.literal.empty()) entry.push_back(std::move(piece));
      if (bracket) continue;
      if (at_ < text_.size() && here() != ',') {
        return bad_here(here() == ']' ? "there is no \"[\" before it"
                                      : "names have letters, digits, any of .-_:/@+ and [numbers]");
      }
      if (const std::size_t length = longest_name(entry); length > kMaxNameLength) {
        return bad(fmt::format("{} has names of {} characters (valid: up to {})",
                               in_quotes(text_.substr(begin, at_ - begin)), length, kMaxNameLength));
      }
      return entry;
    }
  }

  /// The number of characters of the longest name of an entry.
  static std::size_t longest_name(const Hostlist::Entry& entry) {
    std::size_t length = 0;
    for (const Hostlist::Piece& piece : entry) {
      std::size_t digits = 0;
      for (const Hostlist::Range& range : piece.ranges)
        digits = std::max(digits, fmt::formatted_size("{:0{}}", range.last, range.width));
      length += piece.literal.size() + digits;
    }
    return length;
  }

  /// Reads the numbers up to the closing bracket.
  Result<void> read_bracket(Hostlist::Piece& piece) {
    piece.count = 0;
    for (;;) {
      auto range = read_range();
      if (!range) return fail(range.error());
      range->before = piece.count;
      piece.count += range->last - range->first + 1;
      if (piece.count > kMostNames) return bad("has too many names (valid: up to 2^63 - 1)");
      piece.ranges.push_back(*range);
      const char after = here();
      if (after != ',' && after != ']') return bad_here("write \",\" and another number, or \"]\"");
      ++at_;
      if (after == ']') return {};
    }
  }

  Result<Hostlist::Range> read_range() {
    const auto first = read_digits();
    if (!first) return fail(first.error());
    std::string_view last = *first;
    if (here() == '-') {
      ++at_;
      const auto read = read_digits();
      if (!read) return fail(read.error());
      last = *read;
    }
    const std::uint64_t from = number(*first), to = number(last);
    if (from > to) {
      return bad(fmt::format("the range {}-{} descends; write {}-{}", *first, last, last, *first));
    }
    // 08-12 is padded to two digits, 8-12 is not; 01-8 and 1-08 are neither.
    const bool padded = first->size() > 1 && first->front() == '0';
    if (last.size() < first->size() || (last.size() > first->size() && last.front() == '0')) {
      return bad(fmt::format("the range {}-{} is padded at one end; write the same number of digits at both",
                             *first, last));
    }
    return Hostlist::Range{.first = from, .last = to, .width = padded ? first->size() : 1, .before = 0};
  }

  Result<std::string_view> read_digits() {
    const std::size_t begin = at_;
    while (is_digit(here())) ++at_;
    if (at_ == begin) return bad_here("expected a number, as in [01-08,12]");
    if (at_ - begin > kMostDigits)
      return bad(fmt::format("a number has {} digits (valid: up to {})", at_ - begin, kMostDigits));
    return text_.substr(begin, at_ - begin);
  }

  static std::uint64_t number(std::string_view digits) {
    std::uint64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

Result<Hostlist> Hostlist::parse(std::string_view text) {
  return HostlistReader(text).read();
}

std::string Hostlist::number_at(const Piece& piece, std::uint64_t index) {
  if (piece.ranges.empty()) return {};
  const auto next = std::ranges::upper_bound(piece.ranges, index, {}, &Range::before);
  const Range& range = *std::prev(next);
  return fmt::format("{:0{}}", range.first + index - range.before, range.width);
}

Result<std::vector<std::string>> Hostlist::expand(std::uint64_t most) const {
  if (size_ > most) {
    return fail(Code::kInvalidArgument,
                fmt::format("hostlist {}: has {} names (valid: up to {})", in_quotes(text_), size_, most));
  }
  std::vector<std::string> names;
  names.reserve(size_);
  for (const Entry& entry : entries_) {
    std::uint64_t count = 1;
    for (const Piece& piece : entry) count *= piece.count;
    for (std::uint64_t index = 0; index < count; ++index) {
      std::string name;
      std::uint64_t below = count, rest = index;
      for (const Piece& piece : entry) {
        below /= piece.count;
        name += piece.literal;
        name += number_at(piece, rest / below);
        rest %= below;
      }
      names.push_back(std::move(name));
    }
  }
  return names;
}

Result<std::vector<std::string>> HostlistExpander::expand(const Hostlist& list) {
  if (list.size() > kMaxServerNames - num_names_)
    return fail(Code::kInvalidArgument,
                fmt::format("has {} names (valid: up to {} in the file)", list.size(), kMaxServerNames));
  if (list.num_characters() > kMostCharacters - num_characters_)
    return fail(Code::kInvalidArgument,
                fmt::format("has {} names of {} characters together (valid: up to {} in the file)",
                            list.size(), list.num_characters(), kMostCharacters));
  num_names_ += list.size();
  num_characters_ += list.num_characters();
  return list.expand(kMaxServerNames);
}

}  // namespace hips::topology
