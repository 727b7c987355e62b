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

/// Runs a plan with numbers, all ranks in one thread, in a random order. Uses only the plan's data structure
/// and nothing else of the library, so that it is independent of the checker.
///
/// The moments that are separate in a real run are separate here, and others may come in between:
///   send             posted | source read | locally completed; independently of that, arrived
///   reduce and copy  sources read | destination written, slots returned
///
/// Returns "" if every rank ends with the sum of all inputs, otherwise the error: a wrong sum, a deadlock, a
/// message that was not received, two with one name, ends that disagree on the size, an overwritten input.
std::string brute_force(const Plan& plan, const BruteForceOptions& options);

}  // namespace hips::tests
