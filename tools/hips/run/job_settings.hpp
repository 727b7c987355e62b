#pragma once

#include <optional>
#include <string>

#include <hips/status.hpp>
#include <hips/topology.hpp>

#include "lib/base/config/config.hpp"

namespace hips::cli {

/// What names the plan of a job, on the command line of `hips run`. What the command line does not name comes from
/// the environment and the settings files.
struct NamedByCommandLine {
  std::optional<std::string> algorithm;
  std::optional<std::string> pattern;
};

/// Checks what names the plan of a job before its program starts: algorithm, pattern, stored plan and selection
/// table. The library would find the same errors in the first collective call, on every rank.
///
/// `topology` is that of the job; nullopt if its number of ranks is not known yet. Then names and files are
/// checked, but not whether they fit.
///
/// Errors   those of plan::make_builder(), plan::read_plan_file(), plan::prove_stored() and
///          cost::SelectTable::read(), with the option or variable in front: `HIPS_ALGORITHM: unknown algorithm ...`.
Status check_job_settings(const NamedByCommandLine& named, const Config& config,
                          const std::optional<Topology>& topology);

}  // namespace hips::cli
