#pragma once

#include <string_view>

namespace hips::picture {

/// The files of page/, embedded by the build; page.cpp replaces the names between @ signs in kPage.
extern const std::string_view kPage, kPageStyle, kPageScript;

}  // namespace hips::picture
