#include "tools/hips/compare/size_range.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "lib/base/config/config.hpp"
#include "lib/cost/loads.hpp"
#include "topology/spec.hpp"

namespace hips::compare {
namespace {

Result<std::uint64_t> read_size(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return fail(Code::kInvalidArgument,
                fmt::format("--bytes: invalid size {}; {}", topology::in_quotes(text), why));
  };
  const std::optional<std::uint64_t> bytes = parse_bytes(text);
  if (!bytes) return refuse("write 4096, 64K, 4M, 1G, or a range such as 1K:1G");
  if (*bytes == 0) return refuse("write 4 or more");
  if (*bytes % static_cast<std::uint64_t>(kElementBytes) != 0)
    return refuse("write a multiple of 4, the size of a float32");
  if (*bytes > cost::kMostVectorBytes) return refuse("the maximum is 1024G");
  return *bytes;
}

}  // namespace

Result<std::vector<std::uint64_t>> parse_size_range(std::string_view text, std::int64_t factor) {
  if (factor < 2 || factor > 1024) {
    return fail(Code::kInvalidArgument,
                fmt::format("--factor: {} is out of range [2, 1024]; usual values are 2 and 4", factor));
  }
  std::vector<std::uint64_t> sizes;
  for (const std::string_view part : topology::split(text, ',')) {
    const auto ends = topology::split(part, ':');
    if (ends.size() > 2) {
      return fail(Code::kInvalidArgument,
                  fmt::format("--bytes: range {} has {} parts; write LEAST:MOST, such "
                              "as 1K:1G, and the ratio of sizes as --factor",
                              topology::in_quotes(part), ends.size()));
    }
    const Result<std::uint64_t> least = read_size(ends.front());
    if (!least) return fail(least.error());
    const Result<std::uint64_t> most = read_size(ends.back());
    if (!most) return fail(most.error());
    if (*least > *most) {
      return fail(Code::kInvalidArgument, fmt::format("--bytes: range {} is descending; write {}:{}",
                                                      topology::in_quotes(part), ends.back(), ends.front()));
    }
    for (std::uint64_t bytes = *least; bytes <= *most; bytes *= static_cast<std::uint64_t>(factor))
      sizes.push_back(bytes);
  }
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::string size_text(std::uint64_t bytes) {
  for (const auto& [unit, shift] : {std::pair('G', 30U), std::pair('M', 20U), std::pair('K', 10U)}) {
    if (bytes >> shift << shift == bytes && bytes != 0) return fmt::format("{}{}", bytes >> shift, unit);
  }
  return fmt::format("{}", bytes);
}

}  // namespace hips::compare
