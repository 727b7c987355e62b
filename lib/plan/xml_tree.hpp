#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::plan {

/// An element of an XML text: what algorithm files have of XML, which is elements with attributes.
struct XmlElement {
  std::string name;
  std::size_t line = 1;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<XmlElement> children;

  /// Null where there is none.
  [[nodiscard]] const std::string* attribute(std::string_view key) const;
};

/// What a text may have at most: a few million steps are read, nothing exhausts memory.
inline constexpr std::size_t kMostXmlElements = 4'000'000;
inline constexpr std::size_t kMostXmlDepth = 16;

/// Reads one element with all that is in it. Comments and declarations are passed over; text between
/// elements, entities and document types, with which a few bytes could stand for many, are refused.
///
/// Cost     linear in the text.
/// Threads  pure; any thread.
/// Errors   kInvalidArgument: line, what stands there and what would be right.
Result<XmlElement> read_xml(std::string_view text);

}  // namespace hips::plan
