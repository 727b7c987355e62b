#pragma once

#include <string>

#include "topology/discover/draft.hpp"
#include "topology/discover/observation.hpp"

namespace hips::discover {

/// Servers, their NICs, and who of each subnet reaches whom, for people.
std::string job_text(const topology::Observation& seen, const topology::Draft& draft);
/// The same for machines, with every way that was tried.
std::string job_json(const topology::Observation& seen, const topology::Draft& draft);

}  // namespace hips::discover
