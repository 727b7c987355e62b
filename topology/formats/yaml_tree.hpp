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
  std::string key;              ///< its key in a mapping; otherwise empty
  std::string scalar;           ///< as written, without quotes
  std::vector<YamlNode> items;  ///< of a sequence, or the values of a mapping, in the order of the text
};

/// Limits of a text: any text is read in a second and in 64 MiB.
inline constexpr std::size_t kMostYamlBytes = std::size_t{16} << 20U;
inline constexpr std::size_t kMostYamlNodes = 400'000;
inline constexpr std::size_t kMostYamlDepth = 8;

/// Reads one YAML document of mappings, sequences and scalars. Rejects anchors, aliases and tags, as a few of
/// them can expand to more values than there is memory, and keys that occur twice.
///
/// Cost     linear in the text; values beyond the limits are never stored.
/// Threads  pure; any thread.
/// Errors   kInvalidArgument: `name` of the text, the line, what is wrong and what would be right.
Result<YamlNode> read_yaml(std::string_view name, std::string_view text);

/// Writes `text` as a YAML scalar: plain if that is safe, otherwise in double quotes.
std::string yaml_scalar(std::string_view text);

}  // namespace hips::topology
