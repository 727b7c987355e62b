#pragma once

#include <span>
#include <string>

namespace hips::topology {

/// Names in the notation of hostlists: "n[1-3,08],login" of n1, n2, n3, n08 and login. The last number of neighbouring names may
/// differ; they keep their order.
std::string folded(std::span<const std::string> names);

}  // namespace hips::topology
