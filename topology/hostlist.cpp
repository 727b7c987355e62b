#include "topology/hostlist.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "topology/spec.hpp"

namespace hips::topology {
namespace {

/// Numbers of this many digits fit 64 bits, sums of their ranges too.
constexpr std::size_t kMostDigits = 18;
/// DNS names are no longer. It bounds a whole name: many pieces of this length would make a small text
/// stand for gigabytes.
constexpr std::size_t kMostCharacters = 255;
constexpr std::uint64_t kMostNames = std::numeric_limits<std::int64_t>::max();

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_of_a_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
}

}  // namespace

/// Reads a text from left to right; every complaint says where it stands.
class HostlistReader {
 public:
  explicit HostlistReader(std::string_view text) : text_(text) {}

  Result<Hostlist> read() {
    Hostlist list;
    list.text_ = std::string(text_.substr(0, kMostCharacters));
    if (text_.empty()) return bad("is empty; write names such as n[01-08,12],login");
    for (;;) {
      auto entry = read_entry();
      if (!entry) return fail(entry.error());
      std::uint64_t names = 1;
      for (const Hostlist::Piece& piece : *entry) {
        if (piece.count > kMostNames / names) return bad("stands for more names than can be numbered");
        names *= piece.count;
      }
      if (names > kMostNames - list.size_) return bad("stands for more names than can be numbered");
      list.size_ += names;
      list.entries_.push_back(std::move(*entry));
      if (at_ == text_.size()) return list;
      ++at_;  // the comma
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
      while (is_of_a_name(here())) ++at_;
      piece.literal = std::string(text_.substr(literal, at_ - literal));
      const bool bracket = here() == '[';
      if (bracket) {
        ++at_;
        if (auto read = read_bracket(piece); !read) return fail(read.error());
      }
      if (bracket || !piece.literal.empty()) entry.push_back(std::move(piece));
      if (bracket) continue;
      if (at_ < text_.size() && here() != ',') {
        return bad_here(here() == ']' ? "no \"[\" is open before it"
                                      : "names have letters, digits, \".\", \"-\", \"_\" and [numbers]");
      }
      if (at_ == begin) return bad_here("a name is missing; write one on either side of a comma");
      if (const std::size_t length = longest_name(entry); length > kMostCharacters) {
        return bad(fmt::format("{} has names of {} characters; {} are the most",
                               in_quotes(text_.substr(begin, at_ - begin)), length, kMostCharacters));
      }
      return entry;
    }
  }

  /// Characters of the longest name of an entry.
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

  /// The numbers up to the closing bracket.
  Result<void> read_bracket(Hostlist::Piece& piece) {
    piece.count = 0;
    for (;;) {
      auto range = read_range();
      if (!range) return fail(range.error());
      range->before = piece.count;
      piece.count += range->last - range->first + 1;
      if (piece.count > kMostNames) return bad("stands for more names than can be numbered");
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
      return bad(fmt::format("the range {}-{} goes down; write {}-{}", *first, last, last, *first));
    }
    // 08-12 is padded to two digits, 8-12 is not; 01-8 and 1-08 are neither.
    const bool padded = first->size() > 1 && first->front() == '0';
    if (last.size() < first->size() || (last.size() > first->size() && last.front() == '0')) {
      return bad(
          fmt::format("the range {}-{} is padded at one end; write as many digits at both", *first, last));
    }
    return Hostlist::Range{.first = from, .last = to, .width = padded ? first->size() : 1, .before = 0};
  }

  Result<std::string_view> read_digits() {
    const std::size_t begin = at_;
    while (is_digit(here())) ++at_;
    if (at_ == begin) return bad_here("a number belongs here, as in [01-08,12]");
    if (at_ - begin > kMostDigits)
      return bad(fmt::format("a number has {} digits; {} are the most", at_ - begin, kMostDigits));
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
    return fail(Code::kInvalidArgument, fmt::format("hostlist {}: stands for {} names; {} are the most",
                                                    in_quotes(text_), size_, most));
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

}  // namespace hips::topology
