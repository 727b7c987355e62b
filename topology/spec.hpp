#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::topology {

/// A spec that is being read: what a family needs to read its own part and to complain in the user's words.
struct Spec {
  std::string_view text;    ///< all of it, as the user wrote it
  std::string_view family;  ///< "bcube"
  std::string_view args;    ///< between ":" and the suffixes: "3,1"
  std::string_view usage;   ///< what would be right: "rail:servers,rails (such as rail:9,2)"
};

/// More ranks than a Rank can number are refused.
inline constexpr std::int64_t kMaxRanks = 2'147'483'647;
/// NICs of one server.
inline constexpr std::int64_t kMaxRails = 64;

/// `text` for use inside an error message: control and non-ASCII bytes as \xNN, and no longer than a line.
std::string in_quotes(std::string_view text);

/// Errors   kInvalidArgument: `topology "<spec>": <problem>`.
tl::unexpected<Status> bad_spec(std::string_view spec, std::string_view problem);

/// The pieces of `text` between separators, empty ones included: "3,,1" has three.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Reads a whole number in [min, max]; `what` names it in the error ("n", "the 2nd radix").
Result<std::int64_t> read_number(std::string_view spec, std::string_view what, std::string_view text,
                                 std::int64_t min, std::int64_t max);

/// Reads "AxBx...", each at least 1, and leaves out those that are 1; `what` names one of them: "radix",
/// "side".
///
/// Errors   kInvalidArgument: not a number, more than kMaxRanks servers in all, or one server only.
Result<std::vector<std::int64_t>> read_radices(const Spec& spec, std::string_view what);

/// The product of `radices`. Errors kInvalidArgument: above kMaxRanks.
Result<std::int64_t> count_servers(std::string_view spec, const std::vector<std::int64_t>& radices);

}  // namespace hips::topology
