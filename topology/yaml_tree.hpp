#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::topology {

/// A value of a YAML text and the line where it, or its key, begins.
struct YamlNode {
  enum class Kind : std::uint8_t { kScalar, kSequence, kMapping };
  Kind kind = Kind::kScalar;
  std::size_t line = 1;
  std::string key;              ///< what a mapping calls it; empty elsewhere
  std::string scalar;           ///< as written, without quotes
  std::vector<YamlNode> items;  ///< of a sequence, or the values of a mapping, in the order of the text
};

/// What a text may cost at most: whoever wrote it, it is read in a second and in 64 MiB.
inline constexpr std::size_t kMostYamlBytes = std::size_t{16} << 20U;
inline constexpr std::size_t kMostYamlNodes = 400'000;
inline constexpr std::size_t kMostYamlDepth = 8;

/// Reads one YAML document of mappings, sequences and scalars. Anchors, aliases and tags are refused, since a
/// few of them can stand for more values than there is memory, and so are keys that occur twice.
///
/// Cost     linear in the text; values beyond the limits above are never stored.
/// Threads  pure; any thread.
/// Errors   kInvalidArgument: `name` of the text, line, what is wrong and what would be right.
Result<YamlNode> read_yaml(std::string_view name, std::string_view text);

/// `text` as a YAML scalar that reads back as itself: plain where that is safe, else in double quotes.
std::string yaml_scalar(std::string_view text);

}  // namespace hips::topology
