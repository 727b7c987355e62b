#pragma once

#include <cstdint>
#include <string>

#include <hips/plan.hpp>

namespace hips::tests {

struct BruteForceOptions {
  std::int64_t count = 0;     ///< elements of the vector
  std::int32_t segments = 1;  ///< of the longest message
  std::int32_t credits = 1;
  bool in_place = false;
  std::uint64_t seed = 0;  ///< of the input and of the schedule
};

/// Runs a plan with numbers, all ranks in one thread, in an order drawn from the seed. It knows the plan's
/// data structure and nothing else of the library, so that it can bear witness against the checker.
///
/// Moments that a real run keeps apart are apart here, and anything may come in between:
///   send             posted | source read | locally completed, and apart from that: arrived
///   reduce and copy  sources read | destination written, slots given back
///
/// Returns "" when every rank ends with the sum of all inputs, else what went wrong: a wrong sum, a deadlock,
/// a message that nobody took, two of one name, ends that disagree on the size, an input overwritten.
std::string brute_force(const Plan& plan, const BruteForceOptions& options);

}  // namespace hips::tests
