#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::topology {

/// The files that the lines of a topology.conf are from.
struct SlurmSource {
  /// Lines from `first` on are those of `file` from `line` on.
  struct Piece {
    std::size_t first = 1;
    std::string file;
    std::size_t line = 1;
  };

  std::string name;             ///< of the file that includes the others
  std::vector<Piece> pieces{};  ///< ascending; empty: all lines are of `name`

  /// "topology.conf: line 3", of the file that a line of the text is from.
  [[nodiscard]] std::string where(std::size_t line) const;
};

/// The text of a topology.conf with the files that it includes in the places of its lines `Include FILE`.
struct SlurmText {
  SlurmSource source;
  std::string text{};
};

/// Limits of all files together.
inline constexpr std::size_t kMostSlurmBytes = std::size_t{64} << 20U;
inline constexpr std::size_t kMostSlurmIncludes = 1000;

/// Replaces the lines `Include FILE`, in any case, by the files. A path that does not begin with "/" is relative to the folder of
/// the including file. A comment may follow.
///
/// Errors   kInvalidArgument: FILE:LINE of the including line, if the file cannot be read or includes itself, if nothing or more
///          than a path follows, or beyond the limits.
/// Source   s_p_parse_file() of Slurm.
Result<SlurmText> with_includes(const std::string& path, std::string_view text);

/// Is this a line `Include FILE`, with or without a path?
bool is_include_line(std::string_view line);

}  // namespace hips::topology
