#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::topology {

/// A list of host names in Slurm's notation, stored without expanding it: "n[01-08,12],login" is ten names in
/// two entries, and "r[0-999]n[0-999]" a million in one.
///
/// Order    entries as written; within an entry the last bracket varies fastest; names may repeat.
/// Threads  a value; any thread.
/// Source   the hostlist expressions of slurm.conf(5) and topology.conf(5).
class Hostlist {
 public:
  /// Reads entries separated by commas. Names have up to 255 letters, digits and ".-_:/@+". Brackets
  /// contain numbers and ranges of numbers. The first number of a range determines the padding: [08-12] is
  /// 08, 09, 10, 11, 12.
  ///
  /// Cost     linear in the text, not in the number of names.
  /// Errors   kInvalidArgument: the text, the position, the character seen and what would be right.
  static Result<Hostlist> parse(std::string_view text);

  /// The number of names, including repeated ones.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// The characters of all names, or a little more; 2^64 - 1 where they are more than that.
  [[nodiscard]] std::uint64_t num_characters() const { return num_characters_; }

  /// All names. Errors kInvalidArgument: more than `most`; then nothing is expanded.
  [[nodiscard]] Result<std::vector<std::string>> expand(std::uint64_t most) const;

 private:
  struct Range {
    std::uint64_t first = 0, last = 0;
    std::size_t width = 0;     ///< minimum number of digits, padded with zeros
    std::uint64_t before = 0;  ///< numbers in the ranges before this one
  };
  /// A literal, and the numbers that follow it; none at the end of a name.
  struct Piece {
    std::string literal;
    std::vector<Range> ranges;
    std::uint64_t count = 1;  ///< of numbers; 1 if there are none
  };
  using Entry = std::vector<Piece>;

  friend class HostlistReader;
  static std::string number_at(const Piece& piece, std::uint64_t index);

  std::string text_;  ///< for errors
  std::vector<Entry> entries_;
  std::uint64_t size_ = 0;
  std::uint64_t num_characters_ = 0;
};

/// Expands the hostlists of one file, within limits for all of them together.
class HostlistExpander {
 public:
  static constexpr std::uint64_t kMostCharacters = std::uint64_t{1} << 26U;

  /// Errors   kInvalidArgument: "has 2000000 names (valid: up to 1048576 in the file)", or too many characters.
  Result<std::vector<std::string>> expand(const Hostlist& list);

 private:
  std::uint64_t num_names_ = 0, num_characters_ = 0;
};

}  // namespace hips::topology
