#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::compare {

/// Vectors are estimated as float32.
inline constexpr std::int64_t kElementBytes = 4;

/// Parses sizes in the syntax of nccl-tests and OSU: "64M", "1K:1G" (multiplied by `factor` up to the limit),
/// or a list of these with commas.
///
/// Shapes   ascending, without duplicates; at least one.
/// Units    bytes; K, M and G are powers of 1024. Each is a multiple of 4, the size of a float32.
/// Errors   kInvalidArgument: names the option, the value seen and the valid values.
/// Example  auto sizes = parse_size_range("1K:1G", 4);  // 1024, 4096, ..., 1073741824
Result<std::vector<std::uint64_t>> parse_size_range(std::string_view text, std::int64_t factor);

/// A size in the syntax of parse_size_range(): "1K", "64M", "1536".
std::string size_text(std::uint64_t bytes);

}  // namespace hips::compare
