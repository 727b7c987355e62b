#include "tools/hips/job/meeting.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lib/comm/setup/slurm_step.hpp"

namespace hips::cli {
namespace {

const std::string* find(const Environment& environment, std::string_view name) {
  const auto at = std::find_if(environment.begin(), environment.end(),
                               [&](const auto& one) { return one.first == name; });
  return at == environment.end() ? nullptr : &at->second;
}

Result<Meeting> at_root(const Config& config, const Environment& environment) {
  auto rendezvous = comm::rendezvous_from(config, environment);
  if (!rendezvous) return fail(std::move(rendezvous).error());
  if (rendezvous->size == 1) return Meeting{};
  return Meeting{Meeting::How::kRendezvous, *std::move(rendezvous)};
}

}  // namespace

Result<Meeting> find_meeting(std::string_view command, const Config& config, const Environment& environment,
                             const Launcher& launcher) {
  if (config.rank || config.size) return at_root(config, environment);
  if (launcher.size && *launcher.size == 1) return Meeting{};
  if (launcher.kind == LauncherKind::kNone) {
    const bool torchrun = find(environment, "RANK") != nullptr && find(environment, "WORLD_SIZE") != nullptr;
    return torchrun ? at_root(config, environment) : Meeting{};
  }
  Config meeting = config;
  meeting.rank = launcher.rank;
  meeting.size = launcher.size;
  if (!config.root.empty() && launcher.size) return at_root(meeting, environment);
  switch (launcher.kind) {
    case LauncherKind::kOpenMpi:
    case LauncherKind::kPmix:
      return Meeting{Meeting::How::kByPmix};
    case LauncherKind::kPmi2:
    case LauncherKind::kSrun:
      if (comm::slurm_step(environment)) return at_root(config, environment);
      break;
    case LauncherKind::kHydra:
    case LauncherKind::kNone:
      break;
  }
  return fail(Code::kUnsupported,
              fmt::format("{}: {} does not tell the address of rank 0; set HIPS_ROOT to a free port of its "
                          "node: mpiexec.hydra -genv HIPS_ROOT node0:18500 -n {} hips {}",
                          command, to_string(launcher.kind), launcher.size.value_or(2), command));
}

}  // namespace hips::cli
