#pragma once

#include <string>

#include "topology/discover/draft.hpp"
#include "topology/discover/observation.hpp"

namespace hips::discover {

/// Text for people: servers, their NICs, and which NICs of each subnet reach each other.
std::string job_text(const topology::Observation& seen, const topology::Draft& draft);
/// The same as JSON, with every path that was tried.
std::string job_json(const topology::Observation& seen, const topology::Draft& draft);

}  // namespace hips::discover
