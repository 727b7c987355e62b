#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/choices.hpp"

namespace hips::tests {

/// All ordered mixes of radices with at most `max_servers` servers, as in specs: "2", "2x2", ..., "64". Half
/// as many servers if the tests run a sample.
inline std::vector<std::string> radix_mixes(std::int64_t max_servers) {
  if (test::runs_a_sample()) max_servers /= 2;
  std::vector<std::string> mixes;
  const auto extend = [&](const auto& self, const std::string& prefix, std::int64_t servers) -> void {
    for (std::int64_t radix = 2; servers * radix <= max_servers; ++radix) {
      const std::string mix = prefix.empty() ? fmt::format("{}", radix) : fmt::format("{}x{}", prefix, radix);
      mixes.push_back(mix);
      self(self, mix, servers * radix);
    }
  };
  extend(extend, "", 1);
  return mixes;
}

/// "bcube:2x4"; a single level is written as the papers do, "bcube:2,0".
inline std::string bcube_spec(const std::string& mix) {
  return fmt::format("bcube:{}{}", mix, mix.find('x') == std::string::npos ? ",0" : "");
}

}  // namespace hips::tests
