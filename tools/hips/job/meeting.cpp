#include "tools/hips/job/meeting.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

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

/// A port computed from the id of the Slurm step: the same for all its tasks, and different for the next
/// step.
std::uint16_t port_of_step(const Environment& environment) {
  constexpr std::uint32_t kFirst = 20000, kCount = 10000;
  std::uint32_t sum = 0;
  for (const char* name : {"SLURM_JOB_ID", "SLURM_STEP_ID"}) {
    std::uint32_t value = 0;
    if (const std::string* text = find(environment, name))
      (void)std::from_chars(text->data(), text->data() + text->size(), value);
    sum = sum * 31 + value;
  }
  return static_cast<std::uint16_t>(kFirst + sum % kCount);
}

}  // namespace

std::string first_host(std::string_view list) {
  const std::size_t bracket = list.find('[');
  const std::size_t comma = list.find(',');
  if (bracket == std::string_view::npos || comma < bracket) return std::string(list.substr(0, comma));
  const std::string_view numbers = list.substr(bracket + 1);
  return std::string(list.substr(0, bracket)) + std::string(numbers.substr(0, numbers.find_first_of("-,]")));
}

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
      if (const std::string* hosts = find(environment, "SLURM_STEP_NODELIST");
          hosts != nullptr && launcher.size) {
        meeting.root = fmt::format("{}:{}", first_host(*hosts), port_of_step(environment));
        return at_root(meeting, environment);
      }
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
