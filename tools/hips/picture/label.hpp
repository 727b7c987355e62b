#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hips::picture {

/// Text of at most `most` characters (at least 3): of a longer one the middle is left out, because names differ in their ends.
std::string shortened(std::string_view text, std::size_t most);

/// The characters of a UTF-8 text.
std::size_t num_characters(std::string_view text);

}  // namespace hips::picture
