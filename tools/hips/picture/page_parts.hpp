#pragma once

#include <string_view>

namespace hips::picture {

/// The files of page/ as the build embeds them; names between @ signs in the first are filled in by page.cpp.
extern const std::string_view kPage, kPageStyle, kPageScript;

}  // namespace hips::picture
