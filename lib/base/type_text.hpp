#pragma once

#include <string>

#include <hips/types.hpp>

namespace hips {

/// to_string(), and "24 bytes" for bytes_type(24).
std::string type_text(DataType type);

}  // namespace hips
