#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::topology {

/// A spec that is being read, with what a family needs to read its part and to report errors.
struct Spec {
  std::string_view text;    ///< the whole spec, as the user wrote it
  std::string_view family;  ///< "bcube"
  std::string_view args;    ///< between ":" and the suffixes: "3,1"
  std::string_view usage;   ///< the valid form: "rail:servers,rails (such as rail:9,2)"
};

/// The most ranks that a Rank can number.
inline constexpr std::int64_t kMaxRanks = 2'147'483'647;
/// The most NICs of one server.
inline constexpr std::int64_t kMaxRails = 64;

/// Quotes `text` for an error message: control and non-ASCII bytes as \xNN, cut to the length of a line.
std::string in_quotes(std::string_view text);

/// Errors   kInvalidArgument: `topology "<spec>": <problem>`.
tl::unexpected<Status> bad_spec(std::string_view spec, std::string_view problem);

/// The pieces of `text` between separators, including empty ones: "3,,1" has three.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Reads a whole number in [min, max]; `what` names it in the error ("n", "the 2nd radix").
Result<std::int64_t> read_number(std::string_view spec, std::string_view what, std::string_view text,
                                 std::int64_t min, std::int64_t max);

/// Reads "AxBx...", each at least 1, and drops those that are 1. `what` names one of them: "radix", "side".
///
/// Errors   kInvalidArgument: not a number, more than kMaxRanks servers, or only one server.
Result<std::vector<std::int64_t>> read_radices(const Spec& spec, std::string_view what);

/// The product of `radices`. Errors kInvalidArgument: above kMaxRanks.
Result<std::int64_t> count_servers(std::string_view spec, const std::vector<std::int64_t>& radices);

}  // namespace hips::topology
