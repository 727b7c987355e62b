#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::compare {

/// Vectors are priced as float32.
inline constexpr std::int64_t kElementBytes = 4;

/// Reads sizes as users of nccl-tests and OSU write them: "64M", "1K:1G" (from the least, times `factor`,
/// while not above the most), or several of these with commas.
///
/// Shapes   ascending, each once; at least one.
/// Units    bytes; K, M and G are powers of 1024. Each is a multiple of 4, the size of a float32.
/// Errors   kInvalidArgument: names the option, the part, the value seen and what would be right.
/// Example  auto sizes = parse_size_range("1K:1G", 4);  // 1024, 4096, ..., 1073741824
Result<std::vector<std::uint64_t>> parse_size_range(std::string_view text, std::int64_t factor);

/// "1K", "64M", "1536": as parse_size_range() reads it.
std::string size_text(std::uint64_t bytes);

}  // namespace hips::compare
