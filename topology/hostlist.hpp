#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::topology {

/// Names of hosts as Slurm writes them, kept as they are written: "n[01-08,12],login" is ten names in two
/// entries, and "r[0-999]n[0-999]" a million in one.
///
/// Order    entries as written; within an entry the last bracket runs fastest; names may repeat.
/// Threads  a value; any thread.
/// Source   the hostlist expressions of slurm.conf(5) and topology.conf(5).
class Hostlist {
 public:
  /// Reads entries with commas between them. Names have letters, digits, ".", "-" and "_", 255 of them at
  /// most; in a bracket stand numbers and ranges of numbers, whose first number gives the padding: [08-12] is
  /// 08, 09, 10, 11, 12.
  ///
  /// Cost     the text, however many names it stands for.
  /// Errors   kInvalidArgument: names the text, the place, what stands there and what would be right.
  static Result<Hostlist> parse(std::string_view text);

  /// How many names; repeated ones count each time.
  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// All names. Errors kInvalidArgument: more than `most`; nothing is expanded then.
  [[nodiscard]] Result<std::vector<std::string>> expand(std::uint64_t most) const;

 private:
  struct Range {
    std::uint64_t first = 0, last = 0;
    std::size_t width = 0;     ///< digits at least, zeros in front
    std::uint64_t before = 0;  ///< numbers in the ranges before this one
  };
  /// A literal, and the numbers that follow it; none at the end of a name.
  struct Piece {
    std::string literal;
    std::vector<Range> ranges;
    std::uint64_t count = 1;  ///< of numbers; 1 where there are none
  };
  using Entry = std::vector<Piece>;

  friend class HostlistReader;
  static std::string number_at(const Piece& piece, std::uint64_t index);

  std::string text_;  ///< for errors
  std::vector<Entry> entries_;
  std::uint64_t size_ = 0;
};

}  // namespace hips::topology
