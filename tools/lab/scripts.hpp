#pragma once

#include <string_view>

namespace hips::lab {

/// Text of make_image.sh and init.sh; the build makes the definitions from the files.
extern const std::string_view kMakeImage;
extern const std::string_view kInit;

}  // namespace hips::lab
