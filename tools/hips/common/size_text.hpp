#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hips::cli {

/// The sizes of tables: 4 B, 16 B, ... 1 GiB.
std::vector<std::uint64_t> sizes_of_tables();

/// In the largest unit of which it has at least one, rounded down: "64 KiB".
std::string size_text(std::uint64_t bytes);

/// "64 KiB" if that is exact, else "65000 B".
std::string exact_size_text(std::uint64_t bytes);

}  // namespace hips::cli
