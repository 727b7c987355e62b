#include "tools/hips/picture/label.hpp"

#include <algorithm>

namespace hips::picture {
namespace {

/// Is this no first byte of a character?
bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
}

/// The byte where character `index` begins.
std::size_t byte_of(std::string_view text, std::size_t index) {
  for (std::size_t at = 0; at < text.size(); ++at)
    if (!continues(text[at]) && index-- == 0) return at;
  return text.size();
}

}  // namespace

std::size_t num_characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char byte) { return !continues(byte); }));
}

std::string shortened(std::string_view text, std::size_t most) {
  const std::size_t all = num_characters(text);
  if (all <= most) return std::string(text);
  const std::size_t head = (most - 1) / 2, tail = most - 1 - head;
  return std::string(text.substr(0, byte_of(text, head))) + "…" +
         std::string(text.substr(byte_of(text, all - tail)));
}

}  // namespace hips::picture
