#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace hips {

/// "1 cable", "2 cables", "2 switches".
inline std::string counted(std::int64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : thing.ends_with("ch") ? "es" : "s");
}

}  // namespace hips
