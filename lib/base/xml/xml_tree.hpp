#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/result.hpp"

namespace hips {

/// An element of an XML text with its attributes and children, which is all that the files that we read use.
struct XmlElement {
  std::string name;
  std::size_t line = 1;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<XmlElement> children;

  /// Null if there is none.
  [[nodiscard]] const std::string* attribute(std::string_view key) const;
};

/// Limits of a text: enough for a plan of a few million steps, while no text exhausts memory.
inline constexpr std::size_t kMostXmlElements = 4'000'000;
inline constexpr std::size_t kMostXmlDepth = 16;
inline constexpr std::size_t kMostXmlAttributes = 64;  ///< of an element

/// Reads one element with all its children, by pugixml. Skips comments, declarations and a document type before it. Rejects text between
/// elements, entities and document types with declarations of their own, with which a few bytes could expand to many.
///
/// Cost     linear in the text.
/// Threads  pure; any thread.
/// Errors   kInvalidArgument: the line, the text seen there and what would be right.
Result<XmlElement> read_xml(std::string_view text);

}  // namespace hips
