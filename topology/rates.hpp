#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hips::topology {

/// The valid values for errors about rates and times: "it must be ...".
inline constexpr std::string_view kRightRate =
    "from 1Mb to 100000Gb, written such as 25Gb or 2.5Gb (10^9 bits per second)";
inline constexpr std::string_view kRightLatency = "from 0 to 10 s, written such as 500ns, 1.5us or 2ms";

/// Reads "25Gb", "2.5Gb", "100Mb" (bits per second) as bytes/s. None if it is not a rate.
std::optional<double> read_rate(std::string_view text);
/// Reads "500ns", "1.5us", "2ms" as ns.
std::optional<double> read_latency_ns(std::string_view text);

/// The shortest text that is read as exactly this value.
std::string rate_text(double bytes_per_s);
std::string latency_text(double ns);

}  // namespace hips::topology
