#include "lib/mpi/tuning/guard_mode.hpp"

namespace hips::mpi {

GuardMode guard_mode_of(const Config& config, bool one_node) {
  if (config.guard && !*config.guard) return {false, false, "off: HIPS_GUARD=off"};
  if (config.reproducible == Reproducible::kAny) return {false, false, "off: HIPS_REPRODUCIBLE=any"};
  if (!config.guard && one_node && names_a_plan(config))
    return {false, false, "off: a topology or a plan is named for ranks on one node"};
  if (!config.guard && names_how(config)) return {false, false, "off: a plan is named"};
  if (config.reproducible == Reproducible::kRun) {
    const bool has_table = !config.guard_table.empty();
    return {false, has_table,
            has_table ? "without trials (HIPS_REPRODUCIBLE=run): decisions of HIPS_GUARD_TABLE only"
                      : "off: HIPS_REPRODUCIBLE=run, without HIPS_GUARD_TABLE"};
  }
  return {true, !config.guard_table.empty(), "on"};
}

}  // namespace hips::mpi
