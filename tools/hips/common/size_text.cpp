#include "tools/hips/common/size_text.hpp"

#include <utility>

#include <fmt/format.h>

namespace hips::cli {

std::vector<std::uint64_t> sizes_of_tables() {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t bytes = 4; bytes <= std::uint64_t{1} << 30U; bytes *= 4) sizes.push_back(bytes);
  return sizes;
}

std::string size_text(std::uint64_t bytes) {
  for (const auto& [unit, factor] :
       {std::pair("GiB", 1U << 30U), std::pair("MiB", 1U << 20U), std::pair("KiB", 1U << 10U)}) {
    if (bytes >= factor) return fmt::format("{} {}", bytes / factor, unit);
  }
  return fmt::format("{} B", bytes);
}

std::string exact_size_text(std::uint64_t bytes) {
  for (const std::uint64_t unit : {1U << 30U, 1U << 20U, 1U << 10U}) {
    if (bytes >= unit && bytes % unit == 0) return size_text(bytes);
  }
  return fmt::format("{} B", bytes);
}

}  // namespace hips::cli
