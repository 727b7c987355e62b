#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/result.hpp"

namespace hips::topology {

/// A line of a file of Slurm, with those that continue it.
struct SlurmLine {
  std::size_t number = 0;  ///< of the first of them
  std::string text{};      ///< without comments and the spaces around "="
  bool is_cut = false;     ///< a "\" continues it, and the text ends
};

/// The lines of a topology.conf or a slurm.conf, or of what `scontrol show topology` prints. "\" at the end continues a line with the
/// next one, including its spaces. Of text that was copied from a terminal, prompts are left out, and lines that the terminal has
/// folded are joined: those that begin within a list, and those behind a line of the full width.
///
/// Cost     linear in the text.
/// Example  SlurmLines lines(text); while (const auto line = lines.next()) use(line->number, line->text);
class SlurmLines {
 public:
  explicit SlurmLines(std::string_view text);

  /// The next line, which may be empty.
  std::optional<SlurmLine> next();

 private:
  std::string_view take_line();
  [[nodiscard]] std::optional<std::string_view> joint_with_next(std::string_view joined, std::ptrdiff_t open,
                                                                std::size_t length) const;

  std::string_view rest_;
  std::size_t number_ = 0;
  std::size_t width_ = 0;  ///< of the longest line
};

/// A key and its value.
struct SlurmPair {
  std::string_view key{}, value{};  ///< a value without quotes
};

/// Takes the first KEY=VALUE off a line; none at its end.
///
/// Errors   kInvalidArgument: a word that is none, or a quote without its end.
Result<std::optional<SlurmPair>> take_pair(std::string_view& line);

}  // namespace hips::topology
